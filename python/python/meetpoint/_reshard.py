"""The rest of an epoch for another number of ranks: no sample lost, and as few twice as can be.

All batches of an epoch form one sequence, for any number of ranks: rank r of G has every G-th
of them, from r on. So the batches that G ranks consumed are known positions of the sequence, and
the rest is divided again.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Set, Tuple

from .errors import StateError

Ranges = List[Tuple[int, int]]


class Epoch(NamedTuple):
    """An epoch of this loader."""

    samples: int
    batch_size: int
    drop_last: bool
    rank: int
    world_size: int
    steps: int

    @property
    def row(self) -> int:
        """Batches of all ranks, without repeats."""
        if self.drop_last:
            return self.steps * self.world_size
        return -(-self.samples // self.batch_size)


class Rest(NamedTuple):
    """The batches that count as consumed by this rank."""

    consumed: Ranges
    repeated: int
    """Batches of all ranks that are repeated, so that all ranks take equal steps."""
    left_out: int
    """Batches of all ranks that ``drop_last`` drops for the same reason."""


def consumed_in_row(states: Sequence[Dict[str, Any]]) -> Set[int]:
    """Which batches of the row ranks consumed, by the states of all of them, or by one.

    :raises StateError: a single state is not sufficient, or states of some ranks are missing.
    """
    before = int(states[0]["world_size"])
    by_rank: Dict[int, Ranges] = {int(state["rank"]): state["consumed"] for state in states}
    if len(states) == 1 and before > 1:
        own: Ranges = states[0]["consumed"]
        if len(own) > 1 or (own and own[0][0] != 0):
            raise StateError(
                f"the state is of one of {before} ranks, and with strategy "
                f"{states[0].get('strategy')!r} it does not contain what the others consumed",
                remedy="give load_state_dict the states of all ranks as a list",
            )
        by_rank = {rank: own for rank in range(before)}
    if len(by_rank) != before or len(states) not in (1, before):
        raise StateError(
            f"these are states of ranks {sorted(by_rank)} of {before}",
            remedy="give one of each rank",
        )
    return {
        batch * before + rank
        for rank, ranges in by_rank.items()
        for start, end in ranges
        for batch in range(start, end)
    }


def rest(of: Epoch, consumed: Set[int]) -> Rest:
    """The batches of the epoch that this rank has consumed, if all ranks consumed these positions
    of the sequence."""
    left: List[List[int]] = [[] for _ in range(of.world_size)]
    for place in range(of.row):
        if place not in consumed:
            left[place % of.world_size].append(place // of.world_size)
    counts = [len(own) for own in left]
    total = sum(counts)
    if total == 0:
        return Rest([(0, of.steps)], 0, 0)
    steps = min(counts) if of.drop_last else max(counts)
    own = set(left[of.rank][:steps])
    # Batches to repeat for equal steps: first those that are repeated at the end of the epoch.
    again = (batch for batch in range(of.steps - 1, -1, -1) if batch not in own)
    own.update([next(again) for _ in range(steps - len(own))])
    repeated = max(0, steps * of.world_size - total)
    left_out = max(0, total - steps * of.world_size)
    return Rest(_ranges(batch for batch in range(of.steps) if batch not in own), repeated, left_out)


def _ranges(batches: Any) -> Ranges:
    """As few ranges as hold these, which rise."""
    ranges: Ranges = []
    for batch in batches:
        if ranges and ranges[-1][1] == batch:
            ranges[-1] = (ranges[-1][0], batch + 1)
        else:
            ranges.append((batch, batch + 1))
    return ranges
