"""The rest of an epoch for another number of ranks: no sample lost, and as few twice as can be.

All batches of an epoch form one sequence, for any number of ranks: rank r of G has every G-th
of them, from r on. So the batches that G ranks consumed are known positions of the sequence, and
the rest is divided again.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

from ._uneven import EQUAL_STEPS, RESUME, Numbers, Sizes, batch_of
from .errors import StateError

Ranges = List[Tuple[int, int]]


class Epoch(NamedTuple):
    """An epoch of this loader."""

    sizes: Sizes
    rank: int


class Rest(NamedTuple):
    """The rest of an epoch, and the batches of this rank that count as consumed."""

    consumed: Ranges
    again: Ranges
    """Batches of this rank that are delivered again."""
    repeated: Numbers
    """Batches of all ranks that are delivered again, so that all ranks take equal steps."""
    omitted: Numbers
    """Batches that no rank delivers in this epoch."""


class Consumed(NamedTuple):
    """The batches that ranks delivered, according to their states."""

    places: Set[int]
    """Positions of the sequence."""
    repeated: Numbers
    """Batches that were delivered again."""


def consumed_in_row(states: Sequence[Dict[str, Any]], sizes: Sizes) -> Consumed:
    """Which batches of the sequence ranks consumed, by the states of all of them, or by one.

    ``sizes`` are those of the epoch; its number of ranks may differ from that of the states.

    :raises StateError: a single state is not sufficient, or states of some ranks are missing.
    """
    before = int(states[0]["world_size"])
    by_rank: Dict[int, Dict[str, Any]] = {int(state["rank"]): state for state in states}
    if len(states) == 1 and before > 1:
        only = states[0]
        if not is_shared(only):
            raise StateError(
                f"the state is of one of {before} ranks, and with strategy "
                f"{only.get('strategy')!r} it does not contain what the others consumed",
                remedy="give load_state_dict the states of all ranks as a list",
            )
        by_rank = {rank: {**only, "rank": rank} for rank in range(before)}
    if len(by_rank) != before or len(states) not in (1, before):
        raise StateError(
            f"these are states of ranks {sorted(by_rank)} of {before}",
            remedy="give one of each rank",
        )
    then = sizes._replace(ranks=before)
    places: Set[int] = set()
    repeated: Numbers = {EQUAL_STEPS: [], RESUME: []}
    division: Dict[str, Any] = states[0].get("division") or {}
    before_all: Numbers = division.get("repeated", {})
    for reason, numbers in before_all.items():
        repeated[reason] = list(numbers)
    for rank, state in sorted(by_rank.items()):
        delivered = _places(state["consumed"], rank, before)
        own: Dict[str, Any] = state.get("division") or {}
        again = _places(own.get("again", []), rank, before)
        for place in sorted(delivered):
            is_filling = place >= then.row
            if place in again or (is_filling and not division):
                repeated[EQUAL_STEPS if is_filling else RESUME].append(batch_of(place, sizes))
        places |= delivered | again
    # They count as consumed so that no rank of that part of the epoch delivers them.
    omitted: Numbers = division.get("omitted", {})
    skipped = set(omitted.get(RESUME, []))
    return Consumed({it for it in places if it < then.row and it not in skipped}, repeated)


def is_shared(state: Dict[str, Any]) -> bool:
    """Whether the state describes all ranks: each consumed the same number of its first batches."""
    ranges = state["consumed"]
    is_prefix = not ranges or (len(ranges) == 1 and ranges[0][0] == 0)
    return is_prefix and not state.get("division")


def rest(of: Epoch, consumed: Set[int]) -> Rest:
    """The rest of the epoch, if all ranks together consumed these positions of the sequence."""
    sizes, ranks = of.sizes, of.sizes.ranks
    left: List[List[int]] = [[] for _ in range(ranks)]
    for place in range(sizes.row):
        if place not in consumed:
            left[place % ranks].append(place // ranks)
    counts = [len(own) for own in left]
    steps = min(counts) if sizes.drop_last else max(counts)
    omitted = sizes.omitted(skip=consumed)
    late = sorted(at * ranks + rank for rank, own in enumerate(left) for at in own[steps:])
    if late:
        omitted = {**omitted, RESUME: late}
    repeated: Numbers = {}
    again: List[int] = []
    for rank, own in enumerate(left):
        missing = steps - len(own)
        if missing <= 0:
            continue
        has = set(own)
        # First those that are repeated at the end of every epoch.
        unused = (at for at in range(sizes.steps - 1, -1, -1) if at not in has)
        chosen = [next(unused) for _ in range(missing)]
        for at in chosen:
            place = at * ranks + rank
            reason = EQUAL_STEPS if place >= sizes.row else RESUME
            repeated.setdefault(reason, []).append(batch_of(place, sizes))
        if rank == of.rank:
            again = sorted(chosen)
    coming = set(left[of.rank][:steps]).union(again)
    done = _ranges(batch for batch in range(sizes.steps) if batch not in coming)
    return Rest(done, _ranges(again), {key: sorted(it) for key, it in repeated.items()}, omitted)


def _places(ranges: Any, rank: int, ranks: int) -> Set[int]:
    """The positions of these batches of a rank."""
    return {batch * ranks + rank for start, end in ranges for batch in range(start, end)}


def _ranges(batches: Iterable[int]) -> Ranges:
    """As few ranges as hold these, which rise."""
    ranges: Ranges = []
    for batch in batches:
        if ranges and ranges[-1][1] == batch:
            ranges[-1] = (ranges[-1][0], batch + 1)
        else:
            ranges.append((batch, batch + 1))
    return ranges
