"""The position of a loader in its epochs."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union, cast

from .errors import StateError

_WORDS = {
    "dataset": "dataset (its dataset.json)",
    "recipe": "recipe",
    "batch_size": "batch size",
    "drop_last": "drop_last",
    "sampler": "sampler",
    "sampler_sha256": "table of the sampler (its weights, samples or labels)",
    "seed": "seed",
}

_EPOCH_MAX = 2**32 - 1
_ERRORS_MAX = 2**64 - 1

_RANKS_MAX = 2**16

_NAMED_MAX = 16
"""Maximum number of batches that a notice names."""

_DAMAGED = "load the state of another checkpoint"
"""The remedy for a state that no loader returned."""

State = Dict[str, Any]
States = Union[State, Sequence[State]]


class Position:
    """An epoch and the batches of it that were handed out, as few ranges of indices."""

    def __init__(
        self,
        epoch: int,
        ranges: Optional[List[Tuple[int, int]]] = None,
        record: Optional[str] = None,
        strategy: Optional[str] = None,
        errors: int = 0,
        division: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.epoch = epoch
        self.ranges: List[Tuple[int, int]] = ranges or []
        self.record = record
        self.strategy = strategy
        self.errors = errors
        """Damaged samples of the batches that were handed out."""
        self.division = division
        """How the epoch was divided again, if another number of ranks began it: ``repeated``, the
        batches that have already been delivered twice; ``planned`` and ``omitted``, those that all
        ranks together repeat and omit from now on, each by reason; ``again``, the ranges of this
        rank's batches that are repetitions."""
        self.is_begun = False
        # A batch was handed out since it began.
        self.is_used = False

    def begun(self) -> "Position":
        """The same, of an iteration that has begun."""
        copy = Position(
            self.epoch,
            list(self.ranges),
            self.record,
            self.strategy,
            self.errors,
            self.division,
        )
        copy.is_begun = True
        return copy

    def without(self, batches: Sequence[int]) -> "Position":
        """A copy with these batches consumed too, of an iteration that has not begun."""
        copy = self.begun()
        for batch in batches:
            copy.add(batch, None)
        copy.is_begun = copy.is_used = False
        return copy

    def __len__(self) -> int:
        return sum(end - start for start, end in self.ranges)

    def add(self, batch: int, record: Optional[str]) -> None:
        """A batch was handed out; ``record`` fixes the order of the rest."""
        self.record = record
        self.is_used = True
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
            "division": self.division,
        }

    def uneven(self) -> List[Dict[str, Any]]:
        """The batches of the divided epoch that are repeated or omitted, as entries of a report."""
        if self.division is None:
            return []
        from ._uneven import entries

        repeated = {reason: list(it) for reason, it in self.division["repeated"].items()}
        for reason, numbers in self.division["planned"].items():
            repeated[reason] = sorted([*repeated.get(reason, []), *numbers])
        return entries(self.epoch, repeated, self.division["omitted"])


def position_of(
    states: States, fixed: State, samples: int, batches: int
) -> Tuple[Position, List[Dict[str, Any]]]:
    """The position of this rank from its state, or from those of all ranks, and the notices.

    Each state must be of this loader's batches; the number of ranks may have been another.
    """
    given: Any = [states] if isinstance(states, dict) else states
    if not isinstance(given, (list, tuple)) or not all(
        isinstance(it, dict)
        for it in given  # pyright: ignore[reportUnknownVariableType]
    ):
        raise StateError(
            f"the state is {states!r}",
            remedy="pass the result of state_dict(), or a list of those of all ranks",
        )
    several: List[State] = list(given)  # pyright: ignore[reportUnknownArgumentType]
    if not several:
        raise StateError("there is no state in the list", remedy="give one of each rank")
    for state in several:
        _check_state(state, fixed, samples)
    first = several[0]
    for state in several:
        for name in ("epoch", "world_size"):
            if state.get(name) != first.get(name):
                raise StateError(
                    f"the states are of different epochs or numbers of ranks: {name} is "
                    f"{first.get(name)!r} and {state.get(name)!r}",
                    remedy="give those of one checkpoint",
                )
    rank, world_size = fixed["rank"], fixed["world_size"]
    # Importing this package is to take no time.
    from . import _reshard
    from ._uneven import Sizes

    if int(first["world_size"]) == world_size:
        own = [state for state in several if state["rank"] == rank]
        if own or not _reshard.is_shared(first):
            if not own:
                raise StateError(
                    f"the state is of rank {first['rank']}, this is rank {rank}: with strategy "
                    f"{first.get('strategy')!r} ranks do not consume the same",
                    remedy="load its own state",
                )
            first = own[0]
        return _as_it_was(first, batches), []
    epoch = int(first["epoch"])
    if not any(state["consumed"] for state in several):
        return Position(epoch), []
    sizes = Sizes(samples, fixed["batch_size"], fixed["drop_last"], world_size)
    before = _reshard.consumed_in_row(several, sizes)
    rest = _reshard.rest(_reshard.Epoch(sizes, rank), before.places)
    division = {
        "repeated": before.repeated,
        "planned": rest.repeated,
        "omitted": rest.omitted,
        "again": [list(pair) for pair in rest.again],
    }
    position = Position(epoch, rest.consumed, None, first.get("strategy"), 0, division)
    return position, [_resumed(position, first["world_size"], world_size)]


def _resumed(position: Position, before: int, ranks: int) -> Dict[str, Any]:
    """The notice that another number of ranks began the epoch."""
    said = f"epoch {position.epoch}, begun by {before} ranks, resumes with {ranks}"
    division = position.division or {}
    for name, verb in (("planned", "repeated"), ("omitted", "left out")):
        numbers = sorted(number for it in division[name].values() for number in it)
        if numbers:
            which = ", ".join(map(str, numbers[:_NAMED_MAX]))
            more = ", …" if len(numbers) > _NAMED_MAX else ""
            said += (
                f"; {len(numbers)} batches are {verb} so that all ranks take equal steps "
                f"({which}{more})"
            )
    return {"kind": "resumed", "message": said, "uneven": position.uneven()}


def _check_state(state: State, fixed: State, samples: int) -> None:
    if state.get("version") != 2:
        raise StateError(
            f"the state has version {state.get('version')!r}, this program reads version 2",
            remedy="load it with the version of meetpoint that made it",
        )
    for name, word in _WORDS.items():
        value = state.get(name)
        # An array of NumPy or torch has no truth value, so its comparison is not one either.
        if not isinstance(value, (str, int, type(None))) or value != fixed[name]:
            raise StateError(
                f"the state is of another {word}: {value!r}, this loader has {fixed[name]!r}",
                remedy="make the loader as the one that the state was taken from",
            )
    rank: Any = state.get("rank")
    world_size: Any = state.get("world_size")
    if not _is_whole(world_size, _RANKS_MAX) or not _is_whole(rank, world_size - 1):
        raise _damaged(f"it is of rank {rank!r} of {world_size!r}")
    for name, number, most in (
        ("epoch", state.get("epoch"), _EPOCH_MAX),
        ("errors", state.get("errors", 0), _ERRORS_MAX),
    ):
        if not _is_whole(number, most):
            raise _damaged(f"{name} is {number!r}")
    for name in ("record", "strategy"):
        if not isinstance(state.get(name), (str, type(None))):
            raise _damaged(f"{name} is {state[name]!r}")
    most = -(-samples // fixed["batch_size"])
    _ranges(state, most)
    _check_division(state.get("division"), most)


def _check_division(division: Any, most: int) -> None:
    """Checks how an epoch was divided: lists of batches by reason, and ranges."""
    if division is None:
        return
    if not isinstance(division, dict):
        raise _damaged(f"division is {division!r}")
    given = cast(Dict[str, Any], division)
    for name in ("repeated", "planned", "omitted"):
        if not _are_numbers(given.get(name), most):
            raise _damaged(f"{name} of division is {given.get(name)!r}")
    _ranges({"consumed": given.get("again")}, most)


def _is_whole(value: Any, most: int) -> bool:
    """Whether it is a whole number from 0 to ``most``; JSON distinguishes truth values from them."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _are_numbers(by_reason: Any, most: int) -> bool:
    """Whether the value has a list of whole numbers for each reason."""
    if not isinstance(by_reason, dict):
        return False
    pairs: List[Tuple[Any, Any]] = list(cast(Any, by_reason).items())
    return all(
        isinstance(reason, str)
        and _is_list(numbers)
        and all(_is_whole(it, most) for it in numbers)
        for reason, numbers in pairs
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _damaged(what: str) -> StateError:
    """The error for a state that no loader returned."""
    return StateError(f"the state is damaged: {what}", remedy=_DAMAGED)


def _as_it_was(state: State, batches: int) -> Position:
    ranges = _ranges(state, batches)
    errors = int(state.get("errors", 0))
    record, strategy = state.get("record"), state.get("strategy")
    return Position(
        int(state["epoch"]), ranges, record, strategy, errors, state.get("division")
    )


def _ranges(state: State, batches: int) -> List[Tuple[int, int]]:
    """The ranges of consumed batches: pairs of whole numbers that rise and do not touch."""
    ranges: List[Tuple[int, int]] = []
    if not _is_list(state.get("consumed")):
        raise _damaged(f"consumed is {state.get('consumed')!r}")
    pairs: List[Any] = list(state["consumed"])
    for pair in pairs:
        if not _is_list(pair) or len(pair) != 2 or not all(_is_whole(it, batches) for it in pair):
            raise _damaged(f"{pair!r} in consumed is not a range of the {batches} batches")
        start, end = pair
        if start >= end or (ranges and start <= ranges[-1][1]):
            raise _damaged(f"{pair!r} in consumed is not a range behind the one before it")
        ranges.append((start, end))
    return ranges
