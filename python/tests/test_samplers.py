"""Samplers: the same batches at host and devices, resumed and divided among ranks, and refusals."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List

import numpy
import pytest
from conftest import COUNT, HEIGHT, WIDTH

import meetpoint
from meetpoint import samplers
from meetpoint import transforms as T

pytestmark = pytest.mark.usefixtures("leaves_nothing")

RECIPE = T.Compose([T.RandomResizedCrop((HEIGHT, WIDTH)), T.RandomHorizontalFlip()])

ALL: List[samplers.Sampler] = [
    samplers.Sequential(),
    samplers.Shuffled(),
    samplers.Indices(numpy.array([3, 1, 1, 65, 20] * 4), shuffle=True),
    samplers.Filter("label_name in ('ant', 'cat') and label < 2 or label == 1"),
    samplers.Weighted(numpy.arange(COUNT) % 5),
    samplers.Weighted([float(n % 3) for n in range(COUNT)], replacement=False, length=30),
    samplers.ClassBalanced(length=50),
    samplers.Repeated(2),
    samplers.Mixture([1], stop="size", length=90),
]


def make(dataset: Any, sampler: samplers.Sampler, **more: Any) -> meetpoint.Loader:
    settings: Dict[str, Any] = dict(
        recipe=RECIPE, batch_size=4, seed=5, workers=1, columns=["image", "sample"]
    )
    return meetpoint.Loader(dataset, **{**settings, **more, "sampler": sampler})


def epoch(loader: meetpoint.Loader) -> List[Any]:
    batches = ((tuple(batch["sample"].tolist()), batch["image"].tobytes()) for batch in loader)
    return sorted(batches)


@pytest.mark.parametrize("sampler", ALL, ids=repr)
def test_a_device_gives_the_batches_of_the_host(dataset: str, sampler: samplers.Sampler) -> None:
    with make(dataset, sampler) as loader:
        host = [epoch(loader) for _ in range(2)]
        held = sum(len(samples) for samples, _ in host[0])
        assert held == loader.samples_per_epoch and loader.samples == COUNT
    device = meetpoint.Emulated(allow_shared=True)
    with make(dataset, sampler, device=device, strategy="device-only") as loader:
        assert [epoch(loader) for _ in range(2)] == host


@pytest.mark.parametrize("sampler", ALL, ids=repr)
def test_epochs_resume_and_are_divided(dataset: str, sampler: samplers.Sampler) -> None:
    def batches(loader: meetpoint.Loader) -> List[Any]:
        return [tuple(batch["sample"].tolist()) for batch in loader]

    with make(dataset, sampler) as loader:
        whole = batches(loader)
        loader.set_epoch(0)
        iterator = iter(loader)
        begun = [tuple(next(iterator)["sample"].tolist()) for _ in range(2)]
        state = loader.state_dict()
        loader.seek(3)
        assert loader.epoch == 1
        second = batches(loader)
        loader.set_epoch(0)
        loader.seek(2)
        assert batches(loader) == whole[2:]
    with make(dataset, sampler) as loader:
        loader.set_epoch(1)
        assert batches(loader)[3:] == second
    with make(dataset, sampler) as other:
        other.load_state_dict(state)
        assert begun + batches(other) == whole
    divided: List[Any] = []
    for rank in range(2):
        with make(dataset, sampler, rank=rank, world_size=2, drop_last=True) as loader:
            divided += batches(loader)
    assert not Counter(divided) - Counter(whole)
    rest: List[Any] = []
    for rank in range(2):
        with make(dataset, sampler, rank=rank, world_size=2) as loader:
            loader.load_state_dict(state)
            rest += batches(loader)
    assert set(begun + rest) == set(whole)


def test_a_state_is_of_its_sampler(dataset: str) -> None:
    with make(dataset, samplers.Weighted([1.0] * COUNT)) as loader:
        state = loader.state_dict()
    with make(dataset, samplers.Shuffled()) as other:
        with pytest.raises(meetpoint.StateError, match="another sampler"):
            other.load_state_dict(state)
    with make(dataset, samplers.Weighted([1.0] * (COUNT - 1) + [2.0])) as other:
        with pytest.raises(meetpoint.StateError, match="table of the sampler"):
            other.load_state_dict(state)


def test_seek_refuses_invalid_steps(dataset: str) -> None:
    with make(dataset, samplers.Shuffled()) as loader:
        with pytest.raises(meetpoint.SettingError, match="step is 18"):
            loader.seek(18)
        loader.seek(len(loader))
        assert not epoch(loader)
    with pytest.raises(meetpoint.ClosedError, match="the loader was closed"):
        loader.seek(1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: samplers.Weighted([1.0, -1.0]), "there are 2 weights for 66 samples"),
        (lambda: samplers.Weighted([-1.0] * COUNT), "the weight of sample 0 is -1"),
        (lambda: samplers.Weighted([float("nan")] * COUNT), "the weight of sample 0 is NaN"),
        (lambda: samplers.Weighted(numpy.zeros(COUNT)), "every weight is 0"),
        (lambda: samplers.Weighted("labl"), 'did you mean "label"'),
        (lambda: samplers.Weighted("key"), "holds texts"),
        (lambda: samplers.Weighted([1] * COUNT, replacement=False, length=67), "from 1 to 66"),
        (lambda: samplers.Weighted([[1.0]]), "to a list of numbers"),
        (lambda: samplers.Weighted(["a"]), "holds 'a' at position 0"),
        (lambda: samplers.Indices([66]), "sample numbers from 0 to 65"),
        (lambda: samplers.Indices([]), "`indices` is empty"),
        (lambda: samplers.Indices([0, -3]), "holds -3 at position 1"),
        (lambda: samplers.Indices([0.5]), "whole numbers"),
        (lambda: samplers.Filter("label = 7"), "none of the 66 samples passes"),
        (lambda: samplers.Filter("label == 'ant'"), "character 1: this compares"),
        (lambda: samplers.Filter("label <"), "character 8"),
        (lambda: samplers.Filter("lable < 1"), 'did you mean "label"'),
        (lambda: samplers.ClassBalanced("key"), "name a column of whole numbers"),
        (lambda: samplers.Repeated(0), "repeats is 0"),
        (lambda: samplers.Repeated(2, length=1000), "from 1 to 132"),
    ],
)
def test_samplers_that_do_not_fit_are_refused(dataset: str, given: Any, words: str) -> None:
    with pytest.raises(meetpoint.SettingError) as refused:
        make(dataset, given()).close()
    assert words in str(refused.value)


def test_several_datasets_are_served_as_one_and_mixed(dataset: str) -> None:
    mixture = samplers.Mixture([3, 1], stop="first_exhausted")
    with make([dataset, dataset], mixture) as loader:
        host = [epoch(loader) for _ in range(2)]
        assert loader.samples == 2 * COUNT
        drawn = [sample for samples, _ in host[0] for sample in samples]
        assert len(set(drawn)) == len(drawn) == loader.samples_per_epoch
        assert sum(sample < COUNT for sample in drawn) == COUNT
        assert sum(sample >= COUNT for sample in drawn) == round(COUNT / 3)
        assert loader.dataset[COUNT + 2].image == loader.dataset[2].image
        state = loader.state_dict()
    device = meetpoint.Emulated(allow_shared=True)
    with make([dataset, dataset], mixture, device=device, strategy="device-only") as loader:
        assert [epoch(loader) for _ in range(2)] == host
    with make(dataset, samplers.Mixture([1])) as other, pytest.raises(meetpoint.StateError):
        other.load_state_dict(state)
    with meetpoint.open([dataset, dataset]) as both, meetpoint.open(dataset) as one:
        assert len(both) == 2 * len(one) and both[len(one)].key == one[0].key
    with pytest.raises(meetpoint.SettingError, match="dataset is an empty list"):
        make([], mixture)


def test_two_orders_are_refused(dataset: str) -> None:
    with pytest.raises(meetpoint.SettingError, match="both set the order"):
        make(dataset, samplers.Sequential(), shuffle=True)
