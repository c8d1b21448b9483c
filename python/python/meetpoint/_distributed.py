"""The rendezvous of ranks that are processes: through torch.distributed, or at a given address.

In every step, they communicate over separate sockets, so they neither delay the collectives of the
training nor wait for them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

from . import _addresses, _native
from ._world import PLACE, World, process_group
from .errors import RankError, SettingError

if TYPE_CHECKING:
    from ._native import Meeting

TOKEN = "MEETPOINT_RENDEZVOUS_TOKEN"
TOKEN_FILE = "MEETPOINT_RENDEZVOUS_TOKEN_FILE"
ATTEMPT = "MEETPOINT_RENDEZVOUS_ATTEMPT"

_TOKEN_CHARS_MIN = 16
_TOKEN_BYTES = 32

_ATTEMPTS_MAX = 2**64 - 1

_HOW = "give all ranks the same file with a token, made with: openssl rand -hex 32"


class Rendezvous(NamedTuple):
    """The arguments of a loader that determine how its ranks connect."""

    place: Optional[str]
    """``unix:PATH`` or ``tcp://HOST:PORT``."""
    token_file: Optional[str]
    silence: Optional[float]
    """Longest silence of a connection, in seconds."""
    timeout: float
    """Longest wait for the other ranks, in seconds."""


class Said(NamedTuple):
    """What rank 0 sends to the others."""

    places: Dict[str, str]
    """Its address, for each machine."""
    token: Optional[bytes]
    """A random token; ``None`` if all ranks were given one."""
    attempt: Tuple[str, int]
    """Its run and attempt, which are those of all ranks of the process group."""
    error: Optional[str]
    """Why it cannot listen."""


def can_meet(rendezvous: Rendezvous) -> bool:
    """Whether the ranks can find each other yet: by a rendezvous or a process group."""
    return bool(rendezvous.place or os.environ.get(PLACE)) or process_group() is not None


def meeting(world: World, rendezvous: Rendezvous, job: str) -> "Meeting":
    """The rendezvous of this rank with the others.

    :raises SettingError: there is no rendezvous, or it has no token.
    :raises RankError: the ranks do not find each other.
    """
    place = os.environ.get(PLACE) if rendezvous.place is None else rendezvous.place
    token = _given_token(rendezvous.token_file)
    if place:
        if token is None and not place.startswith("unix:"):
            raise SettingError(
                f"ranks that connect at {place} have no token, so anybody could take part",
                remedy=f"{_HOW}; name it with rendezvous_token_file or {TOKEN_FILE}",
            )
        return _meeting(place, token, None, attempt(), rendezvous, job)
    distributed = process_group()
    if distributed is None:
        raise SettingError(
            f"{world.size} ranks with devices agree on every step, so they must connect",
            remedy=(
                "initialise torch.distributed before the loader is created, or give all ranks the "
                'same rendezvous="unix:PATH" (one machine) or "tcp://HOST:PORT" of rank 0, or '
                f"{PLACE}"
            ),
        )
    if (distributed.get_rank(), distributed.get_world_size()) != world.place:
        raise SettingError(
            f"rank {world.rank} of {world.size} differs from that of torch.distributed, which can "
            "only connect all of its own ranks",
            remedy="give the ranks of this loader a rendezvous of their own",
        )
    heard, place, listener = _introduced(distributed, world, token, rendezvous.timeout)
    random = token if heard.token is None else heard.token
    return _meeting(place, random, listener, heard.attempt, rendezvous, job)


def _meeting(
    place: str,
    token: Optional[bytes],
    listener: Optional[_native.RankListener],
    attempt: Tuple[str, int],
    rendezvous: Rendezvous,
    job: str,
) -> "Meeting":
    return {
        "place": place,
        "token": token,
        "listener": listener,
        "attempt": attempt,
        "job": job,
        "silence": rendezvous.silence,
    }


def attempt() -> Tuple[str, int]:
    """The launcher's name of the run, and the number of times that it has restarted the ranks.

    The agents of torchrun count restarts on their own and may differ, so their number is used only
    if all ranks are on one host.

    :raises SettingError: the environment names an invalid attempt.
    """
    run = os.environ.get("TORCHELASTIC_RUN_ID", "")
    names = [ATTEMPT]
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        names.append("TORCHELASTIC_RESTART_COUNT")
    for name in names:
        number = os.environ.get(name)
        if number and not (number.isdecimal() and int(number) <= _ATTEMPTS_MAX):
            raise SettingError(
                f"{name} is {number!r} in the environment, which is not the number of an attempt",
                remedy="set it to a whole number that increases with every restart, or unset it",
            )
        if number:
            return run, int(number)
    return run, 0


def _introduced(
    distributed: Any, world: World, token: Optional[bytes], timeout: float
) -> Tuple[Said, str, Optional[_native.RankListener]]:
    """Rank 0 listens and sends its address through a temporary gloo group.

    Returns what rank 0 sent, its address for this machine, and on rank 0 the listener.

    If the ranks have no token, the random one of rank 0 crosses the network unencrypted, like all
    other traffic of torch.distributed.
    """
    import datetime

    limit = datetime.timedelta(seconds=timeout)
    group = distributed.new_group(backend="gloo", timeout=limit)
    try:
        hosts: List[Any] = [None] * world.size
        mine = _addresses.Host(_addresses.machine(), _addresses.own(), token is not None)
        distributed.all_gather_object(hosts, tuple(mine), group=group)
        listener: Optional[_native.RankListener] = None
        said: List[Any] = [None]
        if world.rank == 0:
            listener, said[0] = _listen([_addresses.Host(*host) for host in hosts])
        distributed.broadcast_object_list(said, src=0, group=group)
    finally:
        distributed.destroy_process_group(group)
    heard: Said = said[0]
    if heard.error is not None:
        raise RankError(f"rank 0 cannot listen for the other ranks: {heard.error}")
    return heard, heard.places[mine.machine], listener


def _listen(hosts: List[_addresses.Host]) -> Tuple[Optional[_native.RankListener], Said]:
    """The listener and what the other ranks need, or the error, so that they do not wait."""
    without = [rank for rank, host in enumerate(hosts) if not host.has_token]
    if 0 < len(without) < len(hosts):
        return None, _failed(f"ranks {without} have no token, the others do; {_HOW}")
    import secrets

    try:
        bind, by_machine = _addresses.of_rank_0(hosts)
        listener = _native.RankListener(f"tcp://{bind}:0")
    except (OSError, RankError) as error:
        return None, _failed(str(error))
    places = {machine: f"tcp://{host}:{listener.port}" for machine, host in by_machine.items()}
    random = secrets.token_bytes(_TOKEN_BYTES) if without else None
    return listener, Said(places, random, attempt(), None)


def _failed(error: str) -> Said:
    return Said({}, None, ("", 0), error)


def _given_token(file: Optional[str]) -> Optional[bytes]:
    """The token in this file, in the file that the environment names, or in the environment.

    ``None`` if there is none.

    :raises SettingError: it is not a token.
    """
    file = os.environ.get(TOKEN_FILE) if file is None else file
    if file:
        return _native.rank_token(file)
    text = os.environ.get(TOKEN)
    if not text:
        return None
    if len(text) < _TOKEN_CHARS_MIN:
        raise SettingError(
            f"{TOKEN} has fewer than {_TOKEN_CHARS_MIN} characters", remedy=_HOW
        )
    import hashlib

    return hashlib.sha256(text.encode()).digest()
