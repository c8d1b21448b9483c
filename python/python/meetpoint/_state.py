"""Where a loader is in its epochs."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from .errors import StateError

_WORDS = {
    "dataset": "dataset (its dataset.json)",
    "recipe": "recipe",
    "batch_size": "batch size",
    "drop_last": "drop_last",
    "shuffle": "shuffle",
    "seed": "seed",
    "world_size": "world size",
}


class Position:
    """An epoch and the batches of it that were handed out, as few ranges of indices."""

    def __init__(
        self,
        epoch: int,
        ranges: Optional[List[Tuple[int, int]]] = None,
        record: Optional[str] = None,
        strategy: Optional[str] = None,
        errors: int = 0,
    ) -> None:
        self.epoch = epoch
        self.ranges: List[Tuple[int, int]] = ranges or []
        self.record = record
        self.strategy = strategy
        self.errors = errors
        """Damaged samples of the batches that were handed out."""
        self.is_begun = False

    def begun(self) -> "Position":
        """The same, of an iteration that has begun."""
        copy = Position(
            self.epoch, list(self.ranges), self.record, self.strategy, self.errors
        )
        copy.is_begun = True
        return copy

    def __len__(self) -> int:
        return sum(end - start for start, end in self.ranges)

    def add(self, batch: int, record: Optional[str]) -> None:
        """A batch was handed out; ``record`` fixes the order of the rest."""
        self.record = record
        ranges = self.ranges
        at = next((at for at, (start, _) in enumerate(ranges) if start > batch), len(ranges))
        joins_left = at > 0 and ranges[at - 1][1] == batch
        joins_right = at < len(ranges) and ranges[at][0] == batch + 1
        start = ranges[at - 1][0] if joins_left else batch
        end = ranges[at][1] if joins_right else batch + 1
        ranges[at - int(joins_left) : at + int(joins_right)] = [(start, end)]

    def to_dict(self) -> Dict[str, Any]:
        """For a state."""
        return {
            "epoch": self.epoch,
            "consumed": [list(pair) for pair in self.ranges],
            "record": self.record,
            "strategy": self.strategy,
            "errors": self.errors,
        }


def check_state(state: Dict[str, Any], fixed: Dict[str, Any], batches: int) -> Position:
    """The position that a state is of; it must be of this loader's batches."""
    if state.get("version") != 1:
        raise StateError(
            f"the state has version {state.get('version')!r}, this program reads version 1; "
            "load it with the version of meetpoint that made it"
        )
    for name, word in _WORDS.items():
        if state.get(name) != fixed[name]:
            raise StateError(
                f"the state is of another {word}: {state.get(name)!r}, this loader has "
                f"{fixed[name]!r}; make the loader as the one that the state was taken from"
            )
    ranges: List[Tuple[int, int]] = []
    for start, end in state["consumed"]:
        if not (0 <= start < end <= batches) or (ranges and start <= ranges[-1][1]):
            raise StateError("the state is damaged: its batches are not those of an epoch")
        ranges.append((int(start), int(end)))
    errors = int(state.get("errors", 0))
    return Position(int(state["epoch"]), ranges, state["record"], state["strategy"], errors)
