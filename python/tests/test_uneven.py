"""Reports name every batch that is repeated or omitted, in whole and in resumed epochs."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest
from conftest import COUNT

import meetpoint
from meetpoint import transforms as T

BATCHES = 22


def make(dataset: str, rank: int, ranks: int, **more: Any) -> meetpoint.Loader[Dict[str, Any]]:
    settings: Dict[str, Any] = dict(
        recipe=T.Compose([T.CenterCrop(8)]),
        batch_size=3,
        shuffle=True,
        seed=11,
        columns=["sample"],
        nvtx=False,
        rank=rank,
        world_size=ranks,
    )
    return meetpoint.Loader(dataset, **{**settings, **more})


Batch = Tuple[int, ...]


def take(loader: meetpoint.Loader[Dict[str, Any]], steps: Optional[int] = None) -> List[Batch]:
    batches = iter(loader)
    count = len(batches) if steps is None else min(steps, len(batches))
    return [tuple(next(batches)["sample"].tolist()) for _ in range(count)]


def numbers(dataset: str, batch_size: int = 3) -> Dict[Batch, int]:
    """The number of each batch of epoch 0 in the sequence of all ranks."""
    with make(dataset, 0, 1, batch_size=batch_size) as loader:
        return {batch: number for number, batch in enumerate(take(loader))}


def named(rows: Sequence[Dict[str, Any]], kind: str) -> "Counter[int]":
    return Counter(it for row in rows if row["kind"] == kind for it in row["batches"])


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("ranks", "batch_size"), [(1, 3), (2, 3), (4, 3), (4, 5), (2, 20), (7, 5)])
def test_whole_epochs(dataset: str, ranks: int, batch_size: int, drop_last: bool) -> None:
    known = numbers(dataset, batch_size)
    came: "Counter[int]" = Counter()
    reports = []
    for rank in range(ranks):
        with make(dataset, rank, ranks, batch_size=batch_size, drop_last=drop_last) as loader:
            came.update(known[batch] for batch in take(loader))
            next(iter(loader), None)
            reports.append([row for row in loader.report()["uneven"] if row["epoch"] == 0])
    assert all(report == reports[0] for report in reports)
    expected = Counter(known.values()) + named(reports[0], "repeated")
    assert came == expected - named(reports[0], "omitted")
    reasons = {row["reason"] for row in reports[0]}
    assert ("short_batch" in reasons) == (drop_last and COUNT % batch_size != 0)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(
    "phases",
    [
        [(4, 2), (2, 3), (3, None)],
        [(4, 5), (3, None)],
        [(3, 7), (4, None)],
        [(4, 2), (3, 2), (5, 1), (2, None)],
        [(3, 2), (2, 3), (2, 1), (3, None)],
        [(4, 6), (2, None)],
    ],
)
def test_the_last_report_accounts_for_the_whole_epoch(
    dataset: str, phases: List[Tuple[int, Optional[int]]], drop_last: bool
) -> None:
    """Each phase is a number of ranks and of steps; its states begin the next one."""
    known = numbers(dataset)
    came: "Counter[int]" = Counter()
    states: List[Dict[str, Any]] = []
    rows: List[Dict[str, Any]] = []
    epoch = 0
    for ranks, steps in phases:
        saved, reports = [], []
        for rank in range(ranks):
            with make(dataset, rank, ranks, drop_last=drop_last) as loader:
                if states:
                    loader.load_state_dict(states)
                    epoch = loader.epoch
                if epoch == 0:
                    came.update(known[batch] for batch in take(loader, steps))
                saved.append(json.loads(json.dumps(loader.state_dict())))
                # The epoch is over, or was left.
                iter(loader)
                report = loader.report()["uneven"]
                reports.append([row for row in report if row["epoch"] == 0])
        if epoch == 0:
            assert all(report == reports[0] for report in reports)
            rows, states = reports[0], saved
    expected = Counter(range(BATCHES)) + named(rows, "repeated")
    assert came == expected - named(rows, "omitted")
    assert all(row["reason"] in ("resume", "equal_steps") for row in rows)


def test_the_rows_are_there_before_the_resumed_epoch_ends(dataset: str) -> None:
    states = []
    for rank in range(4):
        with make(dataset, rank, 4) as loader:
            take(loader, 2)
            states.append(loader.state_dict())
    with make(dataset, 0, 3) as loader:
        loader.load_state_dict(states)
        report = loader.report()
        (notice,) = report["notices"]
        assert notice["uneven"] == report["uneven"] != []
        (repeated,) = [row["batches"] for row in report["uneven"]]
        assert f"{len(repeated)} batches are repeated" in notice["message"]
        # The same epoch from its beginning is not divided.
        loader.set_epoch(1)
        assert len(take(loader)) == 8
        loader.set_epoch(0)
        take(loader)
        iter(loader)
        assert [row["reason"] for row in loader.report()["uneven"]] == ["equal_steps"] * 2


def test_one_state_of_a_divided_epoch_is_not_sufficient(dataset: str) -> None:
    """Ranks that resumed with another number have consumed different numbers of batches."""
    states = []
    for rank in range(4):
        with make(dataset, rank, 4) as loader:
            take(loader, 2)
            states.append(loader.state_dict())
    with make(dataset, 0, 3) as loader, make(dataset, 1, 3) as other:
        loader.load_state_dict(states)
        state = loader.state_dict()
        # Its own state is, for the same rank.
        loader.load_state_dict(state)
        assert loader.report()["uneven"] != []
        with pytest.raises(meetpoint.StateError, match="load its own state"):
            other.load_state_dict(state)
    with make(dataset, 0, 2) as loader:
        with pytest.raises(meetpoint.StateError, match="states of all ranks"):
            loader.load_state_dict(state)


@pytest.mark.parametrize(
    "division",
    [
        1,
        [],
        {},
        {"repeated": {}, "planned": {}, "omitted": {}, "again": [[3, 1]]},
        {"repeated": {"resume": [-1]}, "planned": {}, "omitted": {}, "again": []},
        {"repeated": {}, "planned": {"resume": [1 << 40]}, "omitted": {}, "again": []},
        {"repeated": {}, "planned": {}, "omitted": {1: [1]}, "again": []},
        {"repeated": {}, "planned": {}, "omitted": {"resume": 1}, "again": []},
    ],
)
def test_a_damaged_division_is_refused(dataset: str, division: Any) -> None:
    with make(dataset, 0, 2) as loader:
        with pytest.raises(meetpoint.StateError, match="damaged"):
            loader.load_state_dict({**loader.state_dict(), "division": division})
