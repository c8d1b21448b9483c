"""Ranges for NVIDIA's profilers, with substitutes that record pushes and pops."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, List, Optional

import pytest

import meetpoint
from meetpoint import transforms as T


class Recorder:
    """The NVTX state of a thread: open ranges, and all names in order."""

    def __init__(self) -> None:
        self.open: List[str] = []
        self.seen: List[str] = []

    def push(self, name: str, domain: Optional[str] = None) -> None:
        self.open.append(name)
        self.seen.append(name)

    def pop(self, domain: Optional[str] = None) -> None:
        self.open.pop()


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    module = ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def of_torch(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A torch that was built for CUDA."""
    recorder = Recorder()
    nvtx = SimpleNamespace(range_push=recorder.push, range_pop=recorder.pop)
    cuda = SimpleNamespace(nvtx=nvtx)
    version = SimpleNamespace(cuda="13.0")
    stand_in(monkeypatch, "torch", cuda=cuda, version=version, __version__="0")
    return recorder


@pytest.fixture
def of_package(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The package nvtx, and no torch."""
    recorder = Recorder()
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    stand_in(monkeypatch, "nvtx", push_range=recorder.push, pop_range=recorder.pop)
    return recorder


def loader_of(dataset: str, **arguments: object) -> meetpoint.Loader:
    return meetpoint.Loader(
        dataset, recipe=[T.CenterCrop(16)], **{"batch_size": 8, "workers": 1, **arguments}
    )


@pytest.mark.parametrize("by", ["of_torch", "of_package"])
def test_every_wait_and_every_hand_over_is_a_range(
    dataset: str, by: str, request: pytest.FixtureRequest
) -> None:
    recorder: Recorder = request.getfixturevalue(by)
    with loader_of(dataset) as loader:
        for _ in range(2):
            for _ in loader:
                # No range is open while the loop has the batch.
                assert recorder.open == []
        batches = len(loader)
    assert recorder.open == []
    for epoch in range(2):
        of_epoch = [name for name in recorder.seen if f", epoch {epoch}" in name]
        # The last wait finds the end of the epoch.
        wait = f"meetpoint: wait, epoch {epoch}"
        assert of_epoch[0::2] == [wait] * (batches + 1)
        handed = [f"hand over, epoch {epoch}, batch {at}, host" for at in range(batches)]
        assert of_epoch[1::2] == [f"meetpoint: {name}" for name in handed]


def test_ranges_are_closed_whatever_happens_in_them(dataset: str, of_torch: Recorder) -> None:
    with loader_of(dataset) as loader:
        for _ in loader:
            break
        assert of_torch.open == []
        with pytest.raises(KeyError):
            for _ in loader:
                raise KeyError
        assert of_torch.open == []
        loader._delivery.convert = lambda _: 1 // 0
        with pytest.raises(ZeroDivisionError):
            next(iter(loader))
        assert of_torch.open == [] and "hand over" in of_torch.seen[-1]
        batches = iter(loader)
        loader.close()
        with pytest.raises(meetpoint.ClosedError):
            next(batches)
        assert of_torch.open == [] and "wait" in of_torch.seen[-1]


def test_a_range_names_the_device_that_prepared_the_batch(
    dataset: str, of_package: Recorder
) -> None:
    device = meetpoint.Emulated(allow_shared=True)
    with loader_of(dataset, strategy="device-only", device=device, nvtx=True) as loader:
        assert len(list(loader)) == len(loader)
    handed = [name for name in of_package.seen if "hand over" in name]
    assert handed and all(name.endswith("device 0") for name in handed)


def test_ranges_are_off_unless_they_are_requested(dataset: str, of_torch: Recorder) -> None:
    with loader_of(dataset, nvtx=False) as loader:
        assert len(list(loader)) == len(loader)
    assert of_torch.seen == []


@pytest.mark.skipif(
    importlib.util.find_spec("nvtx") is not None, reason="the package nvtx is installed"
)
def test_ranges_that_cannot_be_created_are_refused_on_request(
    dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with loader_of(dataset) as loader:
        assert len(list(loader)) == len(loader)
    with pytest.raises(meetpoint.SettingError, match="torch is not loaded.*pip install nvtx"):
        loader_of(dataset, nvtx=True)
    version = SimpleNamespace(cuda=None)
    stand_in(monkeypatch, "torch", version=version, __version__="2.0+cpu")
    with pytest.raises(meetpoint.SettingError, match="was built without CUDA"):
        loader_of(dataset, nvtx=True)
