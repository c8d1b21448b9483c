"""Ranks: disjoint, complete, in equal steps of the same kind, and no wait lasts forever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from conftest import COUNT, wait_until_gone

import meetpoint
from meetpoint import _reshard
from meetpoint import transforms as T
from meetpoint._uneven import Sizes

pytestmark = pytest.mark.usefixtures("leaves_nothing")

# A limit that no test reaches.
LIMIT = 300
STRATEGIES = ["device-only", "mte", "mte-feedback", "wrr", "wrr-frozen", "auto"]

RANK = """
import json, os, signal, sys, meetpoint
from meetpoint import transforms as T
dataset, rank, ranks, place, strategy, doing = sys.argv[1:]
rank, ranks = int(rank), int(ranks)
device = None if strategy == "host-only" else meetpoint.Emulated(allow_shared=True)
loader = meetpoint.Loader(dataset, recipe=T.Compose([T.CenterCrop(8)]), batch_size=3, seed=5,
    shuffle=True, strategy=strategy, device=device, workers=1, columns=["sample"],
    rank=rank, world_size=ranks, rendezvous=place, rank_timeout=200)
print("open", *loader.device_processes, flush=True)
if doing == "die" and rank == ranks - 1:
    next(iter(loader))
    os.kill(os.getpid(), signal.SIGKILL)
if doing == "break" and rank == ranks - 1:
    next(iter(loader))
    loader.set_epoch(1)
    sys.stdin.read()
try:
    epochs = [[list(batch["sample"].tolist()) for batch in loader] for _ in range(2)]
except meetpoint.RankError as error:
    print(json.dumps({"error": str(error)}))
else:
    report = loader.report()["epochs"]
    kinds = [[row["source"] for row in epoch["records"]] for epoch in report]
    print(json.dumps({"epochs": epochs, "kinds": kinds}))
loader.close()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """The folder of sockets; short, since names of sockets are limited."""
    with tempfile.TemporaryDirectory(prefix="mp", dir="/tmp") as name:
        yield Path(name)


class Rank:
    """A rank in a process of its own."""

    def __init__(
        self, dataset: str, rank: int, ranks: int, folder: Path, strategy: str, doing: str = "run"
    ) -> None:
        place = f"unix:{folder / 'ranks'}"
        words = [dataset, str(rank), str(ranks), place, strategy, doing]
        self.process = subprocess.Popen(
            [sys.executable, "-c", RANK, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
        )
        self.devices: List[int] = []

    def reports(self) -> Dict[str, Any]:
        """Its output at the end."""
        said, errors = self.process.communicate(timeout=LIMIT)
        lines = said.splitlines()
        assert lines, errors
        self.devices = [int(word) for word in lines[0].split()[1:]]
        for device in self.devices:
            wait_until_gone(device)
        return dict(json.loads(lines[1])) if len(lines) > 1 else {}


@pytest.mark.parametrize(
    ("strategy", "ranks"), [*((it, 2) for it in STRATEGIES), ("mte", 4), ("wrr", 4)]
)
def test_processes_take_equal_steps_of_the_same_kind(
    dataset: str, folder: Path, strategy: str, ranks: int
) -> None:
    reports = [it.reports() for it in [Rank(dataset, n, ranks, folder, strategy) for n in range(ranks)]]
    for epoch in range(2):
        steps = [it["epochs"][epoch] for it in reports]
        assert {len(rank) for rank in steps} == {-(-22 // ranks)}
        samples = [sample for rank in steps for batch in rank for sample in batch]
        # 22 batches in 4 ranks: two are repeated, as samples are with a DistributedSampler.
        assert len(samples) == COUNT + 3 * (-22 % ranks)
        assert set(samples) == set(range(COUNT))
        kinds = [it["kinds"][epoch] for it in reports]
        assert all(kind == kinds[0] for kind in kinds)
    # Neither sockets nor folders remain.
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("dying", [0, 2])
def test_a_rank_that_is_killed_is_named(dataset: str, folder: Path, dying: int) -> None:
    # Rank 2 kills itself after a batch; rank 0 is killed from outside while the others wait.
    doing = "die" if dying == 2 else "break"
    ranks = [Rank(dataset, rank, 3, folder, "wrr", doing) for rank in range(3)]
    if dying == 0:
        for rank in ranks:
            assert rank.process.stdout is not None
            rank.devices = [int(word) for word in rank.process.stdout.readline().split()[1:]]
        ranks[0].process.send_signal(signal.SIGKILL)
        said, _ = ranks[1].process.communicate(timeout=LIMIT)
        error = json.loads(said)["error"]
        ranks[2].process.kill()
        ranks[2].process.communicate()
        ranks[0].process.communicate()
    else:
        error = ranks[0].reports()["error"]
        # Also where rank 0 has closed its loader by then.
        assert "rank 2 left epoch 0" in ranks[1].reports()["error"]
        ranks[2].process.communicate()
        assert ranks[2].process.returncode == -signal.SIGKILL
    named = "rank 0" if dying == 0 else "rank 2"
    assert error.startswith(f"failed to agree with the other ranks: {named} left epoch"), error
    for rank in ranks:
        for device in rank.devices:
            wait_until_gone(device)


def test_a_rank_that_leaves_its_epoch_early_is_named(dataset: str, folder: Path) -> None:
    ranks = [Rank(dataset, rank, 2, folder, "wrr", "break") for rank in range(2)]
    # The other rank waits for the end of its standard input before it continues.
    error = ranks[0].reports()["error"]
    assert "rank 1 left epoch 0: " in error
    assert "rank 0 left epoch 1" in ranks[1].reports()["error"]


def make(dataset: str, rank: int, ranks: int, **more: Any) -> meetpoint.Loader:
    settings: Dict[str, Any] = dict(
        recipe=T.Compose([T.CenterCrop(8)]),
        batch_size=3,
        shuffle=True,
        seed=11,
        columns=["sample"],
        rank=rank,
        world_size=ranks,
    )
    return meetpoint.Loader(dataset, **{**settings, **more})


def test_ranks_that_cannot_connect_get_an_error_with_the_reason(dataset: str, folder: Path) -> None:
    device = meetpoint.Emulated(allow_shared=True)
    with pytest.raises(meetpoint.SettingError, match="torch.distributed before the loader"):
        make(dataset, 0, 2, device=device)
    place = f"unix:{folder / 'ranks'}"
    with pytest.raises(meetpoint.RankError, match="rank 1 did not connect to unix:"):
        make(dataset, 0, 2, device=device, rendezvous=place, rank_timeout=0.2)
    with pytest.raises(meetpoint.RankError, match="tcp://HOST:PORT"):
        make(dataset, 0, 2, device=device, rendezvous="unix:")
    # Ranks whose hosts do everything have nothing to agree on.
    with make(dataset, 0, 2, device=device, strategy="host-only") as loader:
        assert len(list(loader)) == 11


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("row", [1, 7, 22, 24])
def test_the_rest_is_divided_again_for_any_number_of_ranks(row: int, drop_last: bool) -> None:
    for before in range(1, 6):
        for steps_done in range(-(-row // before) + 1):
            for after in range(1, 6):
                check_rest(row, before, steps_done, after, drop_last)


def check_rest(row: int, before: int, done: int, after: int, drop_last: bool) -> None:
    """Every remaining batch is consumed, in equal steps, and as few as possible twice."""
    ranges = [[0, done]] if done else []
    states = [
        {"rank": rank, "world_size": before, "consumed": ranges, "strategy": "host-only"}
        for rank in range(before)
    ]
    sizes = Sizes(row * 4, 4, drop_last, after)
    consumed, _ = _reshard.consumed_in_row(states[:1], sizes)
    assert consumed == _reshard.consumed_in_row(states, sizes).places
    steps = sizes.steps
    come: List[int] = []
    counts = set()
    repeated: List[int] = []
    omitted: List[int] = []
    for rank in range(after):
        rest = _reshard.rest(_reshard.Epoch(sizes, rank), consumed)
        mine = set(range(steps)) - {at for a, b in rest.consumed for at in range(a, b)}
        counts.add(len(mine))
        come += [at * after + rank for at in mine]
        repeated = [it for numbers in rest.repeated.values() for it in numbers]
        omitted = [it for numbers in rest.omitted.values() for it in numbers]
    assert len(counts) == 1
    left = [at for at in range(row) if at not in consumed]
    if drop_last:
        assert set(come) <= set(left) and len(come) == len(set(come))
        assert sorted(omitted) == sorted(set(left) - set(come))
        assert len(omitted) < 2 * after and not repeated
    else:
        assert set(left) <= set(come) and not omitted
        assert sorted(at % row for at in come) == sorted([*left, *repeated])
        # Where it divides, nothing is repeated except at the end of every epoch.
        if before * done % after == 0 and row % after == 0:
            assert not repeated
        assert len(repeated) <= 2 * (after - 1)


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (3, 2), (1, 4), (4, 1)])
def test_another_number_of_ranks_resumes_an_epoch(
    dataset: str, before: int, after: int
) -> None:
    begun: List[List[int]] = []
    states: List[Dict[str, Any]] = []
    for rank in range(before):
        with make(dataset, rank, before) as loader:
            batches = iter(loader)
            begun += [next(batches)["sample"].tolist() for _ in range(2)]
            states.append(json.loads(json.dumps(loader.state_dict())))
    for given in (states, states[0]):
        rest: List[List[int]] = []
        lengths = set()
        for rank in range(after):
            with make(dataset, rank, after) as loader:
                loader.load_state_dict(given)
                batches = iter(loader)
                lengths.add(len(batches))
                rest += [batch["sample"].tolist() for batch in batches]
                (said,) = [it["message"] for it in loader.report()["notices"]]
                assert f"begun by {before} ranks, resumes with {after}" in said
                # The next epoch is a whole one.
                assert len(list(loader)) == -(-22 // after) and loader.epoch == 1
        assert len(lengths) == 1
        # The batches do not change.
        assert all(len(batch) == 3 for batch in begun + rest)
        assert {sample for batch in begun + rest for sample in batch} == set(range(COUNT))
        repeated = len(begun) + len(rest) - 22
        assert f"{repeated} batches are repeated" in said if repeated else "repeated" not in said


def test_incomplete_states_are_refused(dataset: str) -> None:
    def state(rank: int, ranks: int, consumed: Any) -> Dict[str, Any]:
        return {**fixed, "rank": rank, "world_size": ranks, "consumed": consumed}

    with make(dataset, 1, 2) as loader:
        fixed = loader.state_dict()
        apart = [[0, 2], [7, 8]]
        for given, words in [
            (state(0, 4, apart), "does not contain what the others consumed"),
            (state(0, 2, apart), "load its own state"),
            ([state(0, 4, apart), state(1, 4, apart)], "one of each rank"),
            ([state(0, 2, []), {**state(1, 2, []), "epoch": 1}], "of one checkpoint"),
            ([], "no state in the list"),
            (state(5, 4, []), "damaged"),
            (state(0, 4, [[0, 1 << 40]]), "damaged"),
        ]:
            with pytest.raises(meetpoint.StateError, match=words):
                loader.load_state_dict(given)
        # If ranks consume in order, the state of one describes all.
        loader.load_state_dict(state(0, 2, [[0, 4]]))
        assert len(iter(loader)) == 7
