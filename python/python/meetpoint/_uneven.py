"""Which batches of an epoch are delivered more than once, or not at all, and why."""

from __future__ import annotations

from typing import AbstractSet, Any, Dict, List, NamedTuple

EQUAL_STEPS = "equal_steps"
"""The batches of an epoch do not divide evenly among its ranks."""

RESUME = "resume"
"""The rest of an epoch does not divide evenly among the ranks that resume it."""

SHORT_BATCH = "short_batch"
"""The last batch is not full, and ``drop_last`` drops it."""

Numbers = Dict[str, List[int]]
"""Numbers of batches in the sequence of all ranks, by reason."""


class Sizes(NamedTuple):
    """The numbers that determine how an epoch is divided."""

    samples: int
    """Samples of an epoch, according to the sampler."""
    batch_size: int
    drop_last: bool
    ranks: int

    @property
    def total(self) -> int:
        """Different batches of an epoch, without those that ``drop_last`` drops as not full."""
        if self.drop_last:
            return self.samples // self.batch_size
        return -(-self.samples // self.batch_size)

    @property
    def steps(self) -> int:
        """Batches of each rank."""
        return self.total // self.ranks if self.drop_last else -(-self.total // self.ranks)

    @property
    def row(self) -> int:
        """Number of different batches that the ranks deliver: the first ones of the sequence."""
        return min(self.total, self.steps * self.ranks)

    def repeated(self) -> Numbers:
        """Batches that are repeated in every epoch so that all ranks take equal steps."""
        filling = range(self.row, self.steps * self.ranks)
        return {EQUAL_STEPS: [batch_of(place, self) for place in filling]} if filling else {}

    def omitted(self, skip: AbstractSet[int] = frozenset()) -> Numbers:
        """Batches that are omitted in every epoch, except those to skip."""
        found: Numbers = {}
        unequal = [place for place in range(self.row, self.total) if place not in skip]
        if unequal:
            found[EQUAL_STEPS] = unequal
        if self.drop_last and self.samples % self.batch_size:
            found[SHORT_BATCH] = [self.total]
        return found


def batch_of(place: int, sizes: Sizes) -> int:
    """The batch at a position of the sequence; past its end, the first ones are repeated."""
    return place % sizes.total


def entries(epoch: int, repeated: Numbers, omitted: Numbers) -> List[Dict[str, Any]]:
    """The entries of a report."""
    return [
        {"epoch": epoch, "kind": kind, "reason": reason, "batches": numbers}
        for kind, by_reason in (("repeated", repeated), ("omitted", omitted))
        for reason, numbers in by_reason.items()
        if numbers
    ]
