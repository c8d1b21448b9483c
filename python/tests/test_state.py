"""Resuming in the middle of an epoch: nothing lost, nothing twice, an order that is one kept."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

import numpy
import pytest
from conftest import COUNT, HEIGHT, WIDTH

import meetpoint
from meetpoint import transforms as T
from meetpoint._state import Position

pytestmark = pytest.mark.usefixtures("leaves_nothing")

RECIPE = T.Compose([T.CenterCrop((HEIGHT, WIDTH))])
STRATEGIES = ["host-only", "device-only", "windowed", "mte", "mte-feedback", "wrr", "auto"]
IN_ORDER = ["host-only", "device-only", "windowed"]


def make(dataset: str, strategy: str, **more: Any) -> meetpoint.Loader:
    settings: Dict[str, Any] = dict(
        recipe=RECIPE,
        batch_size=3,
        shuffle=True,
        seed=11,
        strategy=strategy,
        device=None if strategy == "host-only" else meetpoint.Emulated(allow_shared=True),
        workers=1,
        columns=["sample", "image"],
    )
    return meetpoint.Loader(dataset, **{**settings, **more})


def take(batches: Any, count: int) -> List[Tuple[int, ...]]:
    return [tuple(next(batches)["sample"].tolist()) for _ in range(count)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("at", [1, 9, 21])
def test_what_is_left_comes_after_a_resume(dataset: str, strategy: str, at: int) -> None:
    with make(dataset, "host-only") as whole:
        whole.set_epoch(2)
        order = [tuple(batch["sample"].tolist()) for batch in whole]
    assert len(order) == 22
    with make(dataset, strategy) as loader:
        loader.set_epoch(2)
        begun = take(iter(loader), at)
        state = json.loads(json.dumps(loader.state_dict()))
    assert len(json.dumps(state)) < 1000
    # Another number of workers, and another process for the device.
    with make(dataset, strategy, workers=2) as other:
        other.load_state_dict(state)
        other.set_epoch(2)
        batches = iter(other)
        assert len(batches) == 22 - at
        rest = [tuple(batch["sample"].tolist()) for batch in batches]
        assert other.epoch == 2
        assert sorted(begun + rest) == sorted(order)
        if strategy in IN_ORDER:
            assert begun + rest == order
        # The next epoch is a whole one again.
        following = [sample for batch in other for sample in batch["sample"].tolist()]
        assert sorted(following) == list(range(COUNT)) and other.epoch == 3


@pytest.mark.parametrize("at", [4, 15, 20])
def test_mte_resumes_in_the_same_order(dataset: str, at: int) -> None:
    with make(dataset, "mte") as loader:
        list(loader)
        # Times are known now, so the split is from the beginning.
        batches = iter(loader)
        begun = take(batches, at)
        state = loader.state_dict()
        would_come = [tuple(batch["sample"].tolist()) for batch in batches]
    assert state["record"].startswith("mte:")
    with make(dataset, "mte") as other:
        other.load_state_dict(state)
        assert [tuple(batch["sample"].tolist()) for batch in other] == would_come
    assert len(begun) + len(would_come) == 22


def test_a_resume_can_be_resumed(dataset: str) -> None:
    with make(dataset, "wrr") as loader:
        seen: List[Tuple[int, ...]] = []
        for _ in range(4):
            seen += take(iter(loader), 5)
            loader.load_state_dict(loader.state_dict())
        seen += [tuple(batch["sample"].tolist()) for batch in loader]
        assert loader.epoch == 0
    assert sorted(sample for batch in seen for sample in batch) == list(range(COUNT))


def test_an_unused_iteration_begins_the_same_epoch_again(dataset: str) -> None:
    with make(dataset, "host-only") as loader:
        iter(loader)
        batches = iter(loader)
        assert loader.epoch == 0
        begun = take(batches, 3)
        loader.load_state_dict(loader.state_dict())
        iter(loader)
        rest = [tuple(batch["sample"].tolist()) for batch in loader]
        assert loader.epoch == 0 and len(begun + rest) == 22
        assert sorted(sample for batch in begun + rest for sample in batch) == list(range(COUNT))


def test_states_between_epochs(dataset: str) -> None:
    with make(dataset, "host-only") as loader:
        assert (loader.state_dict()["epoch"], loader.state_dict()["consumed"]) == (0, [])
        list(loader)
        state = loader.state_dict()
        assert (state["epoch"], state["consumed"]) == (1, [])
        second = [tuple(batch["sample"].tolist()) for batch in loader]
        loader.load_state_dict(state)
        assert [tuple(batch["sample"].tolist()) for batch in loader] == second


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 12}, "another seed"),
        ({"batch_size": 2}, "another batch size"),
        ({"shuffle": False}, "another sampler"),
        ({"recipe": T.Compose([T.CenterCrop(5)])}, "another recipe"),
    ],
)
def test_a_state_of_something_else_is_refused(dataset: str, change: Any, words: str) -> None:
    with make(dataset, "host-only") as loader, make(dataset, "host-only", **change) as other:
        with pytest.raises(meetpoint.StateError, match=words):
            other.load_state_dict(loader.state_dict())


def test_a_damaged_state_is_refused(dataset: str) -> None:
    with make(dataset, "host-only") as loader:
        state = loader.state_dict()
        damaged: List[Any] = [{"epoch": epoch} for epoch in (-1, 2**32, None, "0")]
        damaged += [{"consumed": [[0, 23]]}, {"consumed": [[5, 5]]}, {"version": 1}, {"errors": -1}]
        for damage in damaged:
            with pytest.raises(meetpoint.StateError):
                loader.load_state_dict({**state, **damage})


@pytest.mark.parametrize("wrong", [None, True, 1.5, "x", [3], {"a": 1}, object()])
@pytest.mark.parametrize("key", ["version", "epoch", "consumed", "record", "strategy", "errors"])
def test_a_value_of_another_type_is_refused(dataset: str, key: str, wrong: Any) -> None:
    with make(dataset, "mte") as loader:
        state = loader.state_dict()
        if wrong is None and key in ("record", "strategy"):
            loader.load_state_dict({**state, key: wrong})
        elif wrong == "x" and key == "strategy":
            # The state of a strategy that this version does not have: its record is not used.
            loader.load_state_dict({**state, key: wrong})
        elif wrong == "x" and key == "record":
            loader.load_state_dict({**state, "strategy": "mte", key: wrong})
            with pytest.raises(meetpoint.StateError):
                next(iter(loader))
        else:
            with pytest.raises(meetpoint.StateError):
                loader.load_state_dict({**state, key: wrong})


@pytest.mark.parametrize("key", ["dataset", "recipe", "batch_size", "drop_last", "seed", "sampler"])
@pytest.mark.parametrize("wrong", [1.5, [3], {"a": 1}, object(), numpy.zeros(3)])
def test_a_description_of_another_type_is_refused(dataset: str, key: str, wrong: Any) -> None:
    with make(dataset, "host-only") as loader:
        with pytest.raises(meetpoint.StateError):
            loader.load_state_dict({**loader.state_dict(), key: wrong})


@pytest.mark.parametrize(
    "consumed",
    [[1], [[1]], [[1, 2, 3]], ["01"], [["0", "1"]], [[None, 1]], [[0.0, 1.0]], [[True, 2]], "01"],
)
def test_batches_that_are_not_ranges_are_refused(dataset: str, consumed: Any) -> None:
    with make(dataset, "host-only") as loader:
        with pytest.raises(meetpoint.StateError):
            loader.load_state_dict({**loader.state_dict(), "consumed": consumed})


@pytest.mark.parametrize("ranks", [{"world_size": 10**15}, {"world_size": "2"}, {"rank": True}])
def test_ranks_of_another_type_are_refused(dataset: str, ranks: Any) -> None:
    with make(dataset, "host-only") as loader:
        with pytest.raises(meetpoint.StateError):
            loader.load_state_dict({**loader.state_dict(), **ranks})
        for states in (1, "state", [1], [[]], None):
            with pytest.raises(meetpoint.StateError):
                loader.load_state_dict(states)  # type: ignore[arg-type]


def test_ranges_are_joined_from_both_sides() -> None:
    position = Position(epoch=0)
    for batch in (0, 9, 1, 8, 4, 2, 3):
        position.add(batch, None)
    assert position.ranges == [(0, 5), (8, 10)] and len(position) == 7
