"""The rank of this process, the number of ranks, and the source of both."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple, Optional, Tuple

from ._arguments import whole
from .errors import SettingError

PLACE = "MEETPOINT_RENDEZVOUS"

ARGUMENTS = "the arguments rank and world_size"
GROUP = "torch.distributed"
ENVIRONMENT = "RANK and WORLD_SIZE in the environment"
UNDECIDED = "WORLD_SIZE and LOCAL_RANK in the environment, torch.distributed not initialised"
ALONE = "neither torch.distributed nor the environment"

# A later source never replaces an earlier one: a process group may be destroyed.
_PRECEDENCE = (ARGUMENTS, GROUP, ENVIRONMENT, UNDECIDED, ALONE)


_RANKS_MAX = 65_536
"""Largest number of ranks."""


class World(NamedTuple):
    """A rank, the number of ranks, and where both come from."""

    rank: int
    size: int
    source: str

    @property
    def place(self) -> Tuple[int, int]:
        """Rank and number of ranks."""
        return self.rank, self.size

    def is_better_known_than(self, other: "World") -> bool:
        """Whether its source has precedence over that of the other."""
        return _PRECEDENCE.index(self.source) < _PRECEDENCE.index(other.source)

    def replaces(self, other: "World") -> bool:
        """Whether it differs from the other, whose source has no precedence over its own."""
        return self != other and not other.is_better_known_than(self)

    def check_decided(self) -> None:
        """Checks that the rank is known, as it must be when iteration begins.

        :raises SettingError: the launcher left the rank to torch.distributed, which is not
            initialised.
        """
        if self.source == UNDECIDED:
            raise _incomplete("WORLD_SIZE", "RANK")

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.size} ({self.source})"


def given(rank: Optional[int], world_size: Optional[int]) -> Optional[World]:
    """The rank from the arguments, if they are given.

    :raises SettingError: one argument without the other, or a rank out of range.
    """
    if (rank is None) != (world_size is None):
        raise SettingError("rank and world_size belong together", remedy="give both or neither")
    if rank is None or world_size is None:
        return None
    world = World(
        whole("rank", rank), whole("world_size", world_size, _RANKS_MAX, least=1), ARGUMENTS
    )
    if world.rank >= world.size:
        raise SettingError(
            f"rank is {world.rank}, and world_size is {world.size}",
            remedy="set rank to a number below world_size",
        )
    return world


def look(arguments: Optional[World], rendezvous: Optional[str]) -> World:
    """The present rank, from the arguments, torch.distributed or the environment.

    :raises SettingError: the arguments contradict torch.distributed, or the environment names an
        invalid rank, or only one of RANK and WORLD_SIZE.
    """
    group = _of_group()
    if arguments is not None:
        _check(arguments, group, rendezvous)
        return arguments
    return group or _of_environment() or World(0, 1, ALONE)


def _check(arguments: World, group: Optional[World], rendezvous: Optional[str]) -> None:
    # One process may load by itself, and some ranks of a group may share epochs, as those do
    # that hold the same part of a model. Ranks with a rendezvous are independent of the group.
    if group is None or arguments.size < max(2, group.size) or rendezvous or _has_place():
        return
    if arguments.place != group.place:
        raise SettingError(
            f"rank {arguments.rank} of {arguments.size} was given, but torch.distributed has "
            f"rank {group.rank} of {group.size}",
            remedy=(
                "leave rank and world_size out, give rank=0 and "
                "world_size=1 to load everything in this process, or give the ranks of this loader a "
                "rendezvous of their own"
            ),
        )


def _has_place() -> bool:
    return bool(os.environ.get(PLACE))


def _of_group() -> Optional[World]:
    distributed = process_group()
    if distributed is None:
        return None
    return World(int(distributed.get_rank()), int(distributed.get_world_size()), GROUP)


def _of_environment() -> Optional[World]:
    rank, size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if not rank and not size:
        return None
    if not rank and os.environ.get("LOCAL_RANK"):
        # Lightning starts processes with this environment; its strategy then initialises
        # torch.distributed.
        return World(0, 1, UNDECIDED)
    if not rank or not size:
        # One process per rank that loads everything would go unnoticed; torch.distributed refuses
        # such an environment too.
        raise _incomplete("RANK", "WORLD_SIZE") if rank else _incomplete("WORLD_SIZE", "RANK")
    if not (rank.isdecimal() and size.isdecimal() and int(rank) < int(size)):
        raise SettingError(
            f"RANK is {rank!r} and WORLD_SIZE is {size!r} in the environment, which is not a valid "
            "rank",
            remedy="correct or unset them, or give the arguments rank and world_size",
        )
    return World(int(rank), int(size), ENVIRONMENT)


def _incomplete(is_set: str, missing: str) -> SettingError:
    return SettingError(
        f"{is_set} is {os.environ.get(is_set)!r} in the environment, but {missing} is not set",
        remedy=(
            f"set {missing} or unset {is_set}, initialise torch.distributed first, or give "
            "the arguments rank and world_size"
        ),
    )


def process_group() -> Optional[Any]:
    """torch.distributed, if it is imported and initialised. This never imports torch."""
    torch: Any = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed
