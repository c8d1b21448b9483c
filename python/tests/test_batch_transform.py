"""A function of the user that changes batches: its arguments, results and errors."""

from __future__ import annotations

import pickle
import time
from typing import Any, Dict, List

import numpy
import pytest

import meetpoint
from meetpoint import transforms as T

RECIPE = T.Compose([T.CenterCrop(8)])
DEVICE = meetpoint.Emulated(allow_shared=True)

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def loader_of(dataset: str, **more: Any) -> Any:
    settings: Dict[str, Any] = dict(recipe=RECIPE, batch_size=4, shuffle=True, seed=3, workers=1)
    return meetpoint.Loader(dataset, **{**settings, **more})


def halved(batch: Any) -> Any:
    images, labels = batch
    return images // 2, labels


def numbers(batch: Dict[str, Any]) -> List[int]:
    return [int(it) for it in batch["sample"]]


@pytest.mark.parametrize("strategy", ["host-only", "device-only"])
def test_a_function_gets_the_batch_and_gives_what_iterating_gives(
    dataset: str, strategy: str
) -> None:
    ends = {"strategy": strategy, "device": None if strategy == "host-only" else DEVICE}
    with loader_of(dataset, **ends) as plain, loader_of(
        dataset, batch_transform=halved, **ends
    ) as changed:
        for (images, labels), (half, same) in zip(plain, changed):
            assert (half == images // 2).all() and (same == labels).all()
    with loader_of(dataset, columns=["image", "sample"], batch_transform=numbers) as batches:
        assert sorted(it for batch in batches for it in batch) == list(range(66))


def test_it_gets_tensors_of_the_output(dataset: str) -> None:
    kinds: List[type] = []

    def note(batch: Any) -> Any:
        kinds.append(type(batch[0]))
        return batch

    for output, kind in (("numpy", numpy.ndarray), ("dlpack", meetpoint.Tensor)):
        with loader_of(dataset, output=output, batch_transform=note) as loader:
            next(iter(loader))
        assert kinds.pop() is kind


def test_an_exception_names_the_function_and_the_batch_which_a_state_resumes_with(
    dataset: str,
) -> None:
    is_broken = True

    def breaks(batch: Dict[str, Any]) -> List[int]:
        if is_broken and len(seen) == 5:
            raise KeyError("flux")
        return numbers(batch)

    with loader_of(dataset, columns=["sample"]) as plain:
        expected = [numbers(batch) for batch in plain]
    seen: List[List[int]] = []
    with loader_of(dataset, columns=["sample"], batch_transform=breaks) as loader:
        batches = iter(loader)
        with pytest.raises(meetpoint.TransformError) as caught:
            for batch in batches:
                seen.append(batch)
        error = caught.value
        assert error.function.endswith("breaks") and (error.epoch, error.batch) == (0, 5)
        assert error.function in str(error) and "batch 5 of epoch 0: KeyError" in str(error)
        assert isinstance(error.__cause__, KeyError) and error.remedy is not None
        assert pickle.loads(pickle.dumps(error)).batch == 5
        # The iteration has ended.
        assert list(batches) == []
        is_broken = False
        loader.load_state_dict(loader.state_dict())
        seen += list(loader)
        assert seen == expected
    with loader_of(dataset, batch_transform=lambda batch: batch.clear) as loader:
        with pytest.raises(meetpoint.TransformError, match="lambda.*batch 0.*AttributeError"):
            next(iter(loader))
        # No batch was taken, so the same epoch begins again.
        with pytest.raises(meetpoint.TransformError, match="batch 0 of epoch 0"):
            next(iter(loader))


def test_invalid_functions_are_refused(dataset: str) -> None:
    with pytest.raises(meetpoint.SettingError, match="batch_transform is 7.*function of a batch"):
        loader_of(dataset, batch_transform=7)
    with loader_of(dataset, batch_transform=lambda batch: None) as loader:
        with pytest.raises(meetpoint.TransformError, match="returned None"):
            next(iter(loader))
    with pytest.raises(TypeError, match="collate_fn.*batch_transform"):
        loader_of(dataset, collate_fn=halved)
    # A StopIteration of the function does not end the epoch silently.
    with loader_of(dataset, batch_transform=lambda batch: next(iter(()))) as loader:
        with pytest.raises(meetpoint.TransformError, match="StopIteration"):
            list(loader)


def test_states_seeks_and_copies_are_as_without_it(dataset: str) -> None:
    with loader_of(dataset, columns=["sample"]) as plain:
        expected = [numbers(batch) for batch in plain]
    make: Any = lambda: loader_of(dataset, columns=["sample"], batch_transform=numbers)  # noqa: E731
    with make() as loader:
        batches = iter(loader)
        begun = [next(batches) for _ in range(6)]
        state = loader.state_dict()
        copy = pickle.loads(pickle.dumps(loader))
    with make() as other, loader_of(dataset, columns=["sample"]) as plain, copy:
        other.load_state_dict(state)
        plain.load_state_dict(state)
        rest = list(other)
        assert begun + rest == expected and [numbers(it) for it in plain] == rest
        assert list(copy) == rest
        other.set_epoch(0)
        other.seek(9)
        assert list(other) == expected[9:]


def test_its_time_is_a_stage_of_its_own(dataset: str) -> None:
    def slow(batch: Any) -> Any:
        until = time.perf_counter() + 0.01
        while time.perf_counter() < until:
            pass
        return batch

    with loader_of(dataset, batch_transform=slow) as loader:
        for epoch in range(2):
            count = len(list(loader))
            said = loader.explain()
            assert said is not None and said.epoch == epoch
            stages = {it.stage: it for it in said.ceilings}
            assert 0.01 * count <= stages["transform"].seconds
            assert "The batch transform takes" in str(said)
            # It contains no time of another epoch.
            rate = stages["transform"].measured_batches_per_second
            assert rate is not None and rate <= 100
    with loader_of(dataset) as loader:
        list(loader)
        said = loader.explain()
        assert said is not None and "transform" not in {it.stage for it in said.ceilings}
