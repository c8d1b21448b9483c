"""The rendezvous of ranks that are processes: through torch.distributed, or at a given address.

In every step, they communicate over separate sockets, so they neither delay the collectives of the
training nor wait for them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from . import _native
from ._world import PLACE, process_group
from .errors import RankError, SettingError

if TYPE_CHECKING:
    from ._native import Meeting

TOKEN = "MEETPOINT_RENDEZVOUS_TOKEN"
_TOKEN_BYTES = 32


def can_meet(rendezvous: Optional[str]) -> bool:
    """Whether the ranks can find each other yet: by a rendezvous or a process group."""
    return bool(rendezvous or os.environ.get(PLACE)) or process_group() is not None


def meeting(
    rank: int, world_size: int, rendezvous: Optional[str], job: str, timeout: float
) -> "Meeting":
    """The rendezvous of this rank with the others.

    :raises SettingError: there is no rendezvous.
    :raises RankError: the ranks do not find each other.
    """
    place = os.environ.get(PLACE) if rendezvous is None else rendezvous
    if place:
        return {"place": place, "token": _given_token(place), "listener": None, "job": job}
    distributed = process_group()
    if distributed is None:
        raise SettingError(
            f"{world_size} ranks with devices agree on every step, so they have to meet",
            remedy=(
                "initialise torch.distributed before the loader is created, or give all ranks the "
                'same rendezvous="unix:PATH" (one machine) or "tcp:HOST:PORT" of rank 0, or '
                f"{PLACE}"
            ),
        )
    if (distributed.get_rank(), distributed.get_world_size()) != (rank, world_size):
        raise SettingError(
            f"rank {rank} of {world_size} is another than torch.distributed says, which can only "
            "introduce all of its ranks to each other",
            remedy="give the ranks of this loader a rendezvous of their own",
        )
    return _introduced(distributed, rank, world_size, job, timeout)


def _introduced(
    distributed: Any, rank: int, world_size: int, job: str, timeout: float
) -> "Meeting":
    """Rank 0 listens and tells the others where, through a gloo group that lasts no longer."""
    import datetime

    limit = datetime.timedelta(seconds=timeout)
    group = distributed.new_group(backend="gloo", timeout=limit)
    try:
        machines: List[Any] = [None] * world_size
        distributed.all_gather_object(machines, _machine(), group=group)
        listener: Optional[_native.RankListener] = None
        said: List[Any] = [None]
        if rank == 0:
            listener, said = _listen(is_one_machine=len(set(machines)) == 1)
        distributed.broadcast_object_list(said, src=0, group=group)
    finally:
        distributed.destroy_process_group(group)
    place, token = said[0]
    if place is None:
        raise RankError(f"rank 0 found no place to meet: {token}")
    return {"place": place, "token": token, "listener": listener, "job": job}


def _listen(*, is_one_machine: bool) -> Tuple[Optional[_native.RankListener], List[Any]]:
    import secrets
    import socket

    host = "127.0.0.1"
    try:
        if not is_one_machine:
            host = socket.gethostbyname(os.environ.get("MASTER_ADDR") or socket.getfqdn())
        listener = _native.RankListener(f"tcp:{host}:0")
    except (OSError, RankError) as error:
        # The others learn of it; else they would wait.
        return None, [(None, str(error))]
    return listener, [(f"tcp:{host}:{listener.port}", secrets.token_bytes(_TOKEN_BYTES))]


def _machine() -> Tuple[str, int]:
    """Something that is the same for all processes that share a loopback interface."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip(), os.stat("/proc/self/ns/net").st_ino


def _given_token(place: str) -> bytes:
    import hashlib

    text = os.environ.get(TOKEN, "")
    if not place.startswith("tcp:"):
        # Nobody but this user can connect to the socket.
        return hashlib.sha256(text.encode()).digest() if text else bytes(_TOKEN_BYTES)
    if len(text) < 16:
        raise SettingError(
            f"ranks that meet at {place} need a secret, so that nobody else connects",
            remedy=f"set {TOKEN} to the same 16 characters or more for all ranks",
        )
    return hashlib.sha256(text.encode()).digest()
