"""Addresses at which ranks on other hosts reach rank 0.

Addresses come from the system's routes: a datagram socket that is connected to another host has
the source address of the route to it. Nothing is sent.
"""

from __future__ import annotations

import os
import socket
from typing import Dict, List, NamedTuple, Optional, Tuple

from .errors import RankError

HOST = "MEETPOINT_RENDEZVOUS_HOST"

# Addresses that no host has (RFC 5737 and RFC 3849), which are reached by the default route.
_ELSEWHERE = ("192.0.2.1", "2001:db8::1")

# Any port: nothing is sent.
_PORT = 9


class Host(NamedTuple):
    """The host of a rank."""

    machine: str
    """Identifies the machine: the same for all processes that share a loopback interface."""
    address: Optional[str]
    """An address of the host on a network; ``None`` if it has none."""
    has_token: bool
    """Whether the rank was given a token."""


def machine() -> str:
    """An identifier that is the same for all processes that share a loopback interface."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{file.read().strip()} {os.stat('/proc/self/ns/net').st_ino}"


def own() -> Optional[str]:
    """An address of this host on the network of the ranks; ``None`` if there is none."""
    for other in (os.environ.get("MASTER_ADDR"), socket.gethostname(), *_ELSEWHERE):
        address = towards(other) if other else None
        if address is not None:
            return address
    return None


def towards(other: str) -> Optional[str]:
    """The address of this host on the route to another, without brackets; ``None`` if no route
    leaves this host."""
    try:
        found = socket.getaddrinfo(other, _PORT, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as probe:
            try:
                probe.connect(address)
                source = str(probe.getsockname()[0])
            except OSError:
                continue
        if not _is_local(source):
            return source
    return None


def of_rank_0(hosts: List[Host]) -> Tuple[str, Dict[str, str]]:
    """The address at which rank 0 listens, and the address at which each machine reaches it.

    :raises RankError: rank 0 has no address that another machine could reach.
    """
    here = hosts[0].machine
    others = {host.machine: host.address for host in hosts if host.machine != here}
    if not others:
        return "127.0.0.1", {here: "127.0.0.1"}
    named = os.environ.get(HOST)
    if named:
        return named, dict.fromkeys([here, *others], named)
    reached: Dict[str, str] = {}
    for name, address in others.items():
        mine = (towards(address) if address else None) or hosts[0].address
        if mine is None:
            raise RankError(
                "rank 0 has no address that the other hosts can reach",
                remedy=f"set {HOST} to one for rank 0",
            )
        reached[name] = _bracketed(mine)
    distinct = set(reached.values())
    only = distinct.pop() if len(distinct) == 1 else None
    reached[here] = only or "127.0.0.1"
    if only is not None:
        return only, reached
    # One socket for several networks; every connection must prove the token.
    is_mixed = any(address.startswith("[") for address in reached.values())
    return "[::]" if is_mixed else "0.0.0.0", reached


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _is_local(address: str) -> bool:
    """Whether it is reachable only from this host, or only with the name of an interface."""
    return address.startswith(("127.", "0.")) or address in ("::1", "::") or "%" in address
