"""Which rank a loader is: looked up when iteration begins, not only when the loader is made."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple

import pytest
from conftest import COUNT

import meetpoint
from meetpoint import transforms as T

BATCHES = 22


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the environment of a launcher that started the tests."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MEETPOINT_RENDEZVOUS"):
        monkeypatch.delenv(name, raising=False)


class Ranks:
    """A launcher's environment and torch's process group, both simulated."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.group: Optional[Tuple[int, int]] = None

    def launch(self, rank: int, size: int) -> None:
        self._patch.setenv("RANK", str(rank))
        self._patch.setenv("WORLD_SIZE", str(size))

    def initialise(self, rank: int, size: int) -> None:
        self.group = rank, size
        distributed = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: self.group is not None,
            get_rank=lambda: self.group[0],  # type: ignore[index]
            get_world_size=lambda: self.group[1],  # type: ignore[index]
        )
        torch = SimpleNamespace(distributed=distributed)
        self._patch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]

    def destroy(self) -> None:
        self.group = None


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> Ranks:
    return Ranks(monkeypatch)


def make(dataset: str, **more: Any) -> meetpoint.Loader[Dict[str, Any]]:
    settings: Dict[str, Any] = dict(
        recipe=T.Compose([T.CenterCrop(8)]),
        batch_size=3,
        shuffle=True,
        seed=11,
        nvtx=False,
        columns=["sample"],
    )
    return meetpoint.Loader(dataset, **{**settings, **more})


def seen(loader: meetpoint.Loader[Dict[str, Any]]) -> List[int]:
    return [sample for batch in loader for sample in batch["sample"].tolist()]


def test_a_launcher_s_environment_says_which_rank_this_is(dataset: str, ranks: Ranks) -> None:
    shares: List[int] = []
    for rank in range(2):
        ranks.launch(rank, 2)
        with make(dataset) as loader:
            assert len(loader) == BATCHES // 2
            state = loader.state_dict()
            assert (state["rank"], state["world_size"]) == (rank, 2)
            shares += seen(loader)
            (said,) = [it["message"] for it in loader.report()["notices"]]
            assert f"rank {rank} of 2" in said and "world_size=1" in said
    assert sorted(shares) == list(range(COUNT))


def test_a_rank_that_becomes_known_after_the_loader_was_made_is_used(
    dataset: str, ranks: Ranks
) -> None:
    for begin in (ranks.launch, ranks.initialise):
        shares: List[int] = []
        for rank in range(2):
            with make(dataset) as loader:
                begun_alone = rank == 0 and begin == ranks.launch
                if begun_alone:
                    assert len(loader) == BATCHES
                begin(rank, 2)
                assert len(loader) == BATCHES // 2
                assert len(loader.sampler) == COUNT // 2
                assert loader.state_dict()["rank"] == rank
                shares += seen(loader)
                # Epoch after epoch.
                assert len(seen(loader)) == COUNT // 2
                state = loader.state_dict()
                assert (state["rank"], state["world_size"], state["epoch"]) == (rank, 2, 2)
        assert sorted(shares) == list(range(COUNT))


def test_torch_distributed_takes_precedence_over_the_environment(
    dataset: str, ranks: Ranks
) -> None:
    ranks.launch(0, 4)
    with make(dataset) as loader:
        ranks.initialise(1, 2)
        assert len(loader) == BATCHES // 2
        # Destroying the group changes nothing.
        ranks.destroy()
        assert (len(seen(loader)), loader.state_dict()["rank"]) == (COUNT // 2, 1)


def test_arguments_take_precedence_over_the_environment(dataset: str, ranks: Ranks) -> None:
    ranks.launch(1, 2)
    with make(dataset, rank=0, world_size=1) as loader:
        assert sorted(seen(loader)) == list(range(COUNT))
        ranks.initialise(1, 2)
        assert len(seen(loader)) == COUNT
        assert loader.report()["notices"] == []


@pytest.mark.parametrize("given, missing", [("RANK", "WORLD_SIZE"), ("WORLD_SIZE", "RANK")])
def test_half_of_a_rank_in_the_environment_is_refused(
    dataset: str, monkeypatch: pytest.MonkeyPatch, ranks: Ranks, given: str, missing: str
) -> None:
    monkeypatch.setenv(given, "1")
    for of_missing in (None, ""):
        if of_missing is not None:
            monkeypatch.setenv(missing, of_missing)
        with pytest.raises(meetpoint.SettingError) as raised:
            make(dataset)
        assert f"{missing} is not set" in str(raised.value)
        assert raised.value.remedy is not None
    make(dataset, rank=0, world_size=1).close()
    # The process group has precedence over the environment.
    ranks.initialise(1, 2)
    with make(dataset) as loader:
        assert len(loader) == BATCHES // 2


def test_a_launcher_may_leave_the_rank_to_the_process_group(
    dataset: str, monkeypatch: pytest.MonkeyPatch, ranks: Ranks
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    with make(dataset) as loader:
        with pytest.raises(meetpoint.SettingError) as raised:
            iter(loader)
        assert "RANK is not set" in str(raised.value)
        ranks.initialise(1, 2)
        assert len(loader) == BATCHES // 2
        assert len(seen(loader)) == COUNT // 2


@pytest.mark.parametrize("rank, size", [("2", "2"), ("first", "2"), ("0", "two"), ("-1", "2")])
def test_an_environment_that_names_no_rank_is_refused(
    dataset: str, monkeypatch: pytest.MonkeyPatch, rank: str, size: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(meetpoint.SettingError) as raised:
        make(dataset)
    assert repr(rank) in str(raised.value) and repr(size) in str(raised.value)
    make(dataset, rank=0, world_size=1).close()


def test_arguments_that_contradict_the_process_group_are_refused(
    dataset: str, ranks: Ranks
) -> None:
    with make(dataset, rank=0, world_size=2) as early:
        ranks.initialise(1, 2)
        with pytest.raises(meetpoint.SettingError) as raised:
            iter(early)
        assert "rank 0 of 2" in str(raised.value) and "rank 1 of 2" in str(raised.value)
        assert raised.value.remedy is not None
    for rank, size in [(0, 2), (1, 3)]:
        with pytest.raises(meetpoint.SettingError):
            make(dataset, rank=rank, world_size=size)
    ranks.initialise(3, 4)
    # Some ranks share epochs, for example those with the same part of a model.
    with make(dataset, rank=1, world_size=2) as some:
        assert len(some) == BATCHES // 2


def test_a_loader_that_was_iterated_does_not_change_its_rank(dataset: str, ranks: Ranks) -> None:
    with make(dataset) as loader:
        batches = iter(loader)
        begun = next(batches)["sample"].tolist()
        state = loader.state_dict()
        ranks.initialise(1, 2)
        assert len(loader) == BATCHES and loader.state_dict()["world_size"] == 1
        with pytest.raises(meetpoint.RankError) as raised:
            iter(loader)
        said = str(raised.value)
        assert "rank 0 of 1" in said and "rank 1 of 2" in said and raised.value.remedy is not None
    # The remedy works.
    rest: List[int] = []
    for rank in range(2):
        ranks.initialise(rank, 2)
        with make(dataset) as other:
            other.load_state_dict(state)
            rest += seen(other)
    assert set(begun + rest) == set(range(COUNT))


def test_a_state_loaded_before_the_rank_is_known_is_divided_for_it(
    dataset: str, ranks: Ranks
) -> None:
    with make(dataset) as loader:
        batches = iter(loader)
        begun = [sample for _ in range(4) for sample in next(batches)["sample"].tolist()]
        state = loader.state_dict()
    rest: List[int] = []
    for rank in range(2):
        with make(dataset) as loader:
            ranks.destroy()
            loader.load_state_dict(state)
            ranks.initialise(rank, 2)
            assert len(loader) == BATCHES // 2
            rest += seen(loader)
    assert sorted(begun + rest) == list(range(COUNT))


def test_a_pickled_loader_stays_the_rank_that_it_was(dataset: str, ranks: Ranks) -> None:
    ranks.initialise(1, 2)
    with make(dataset) as loader:
        expected = seen(loader)
        loader.set_epoch(0)
        pickled = pickle.dumps(loader)
    # As in a process that a rank has started.
    ranks.destroy()
    with pickle.loads(pickled) as other:
        assert (seen(other), other.report()["notices"]) == (expected, [])


def test_devices_do_not_start_before_the_ranks_can_connect(dataset: str, ranks: Ranks) -> None:
    ranks.launch(0, 2)
    with make(dataset, device=meetpoint.Emulated(allow_shared=True), strategy="mte") as loader:
        assert (len(loader), loader.device_processes) == (BATCHES // 2, [])
        with pytest.raises(meetpoint.SettingError, match="initialise torch.distributed"):
            iter(loader)


def test_energy_and_reports_are_those_of_the_rank_that_iterates(
    dataset: str, ranks: Ranks
) -> None:
    with make(dataset) as loader:
        with loader.energy() as energy:
            ranks.initialise(1, 2)
            assert len(seen(loader)) == COUNT // 2
        assert energy.modelled_joules is not None and energy.model_leaves_out is None
        report = loader.report()
        assert report["batches"] == len(report["epochs"][0]["records"]) == BATCHES // 2


PROGRAM = """
import json, os, sys, meetpoint
from meetpoint import transforms as T
loader = meetpoint.Loader(sys.argv[1], recipe=T.Compose([T.CenterCrop(8)]), batch_size=3,
    shuffle=True, strategy="wrr", device=meetpoint.Emulated(allow_shared=True), workers=1,
    columns=["sample"])
print(json.dumps([sample for batch in loader for sample in batch["sample"].tolist()]))
loader.close()
"""


def test_ranks_of_a_launcher_connect_without_torch(dataset: str) -> None:
    with tempfile.TemporaryDirectory(prefix="mp", dir="/tmp") as folder:
        place = f"unix:{Path(folder) / 'ranks'}"
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, dataset],
                stdout=subprocess.PIPE,
                text=True,
                env={
                    **os.environ,
                    "RANK": str(rank),
                    "WORLD_SIZE": "2",
                    "MEETPOINT_RENDEZVOUS": place,
                    "XDG_RUNTIME_DIR": folder,
                },
            )
            for rank in range(2)
        ]
        reports = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert sorted(reports[0] + reports[1]) == list(range(COUNT))
