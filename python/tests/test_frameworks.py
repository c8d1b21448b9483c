"""The interface that frameworks use of a loader, tested without a framework."""

from __future__ import annotations

import importlib
import inspect
import pickle
import sys
from types import SimpleNamespace
from typing import Any, Dict, List

import numpy
import pytest
from conftest import COUNT, pixels

import meetpoint
from meetpoint import transforms as T
from meetpoint._loader_types import Options


def make(dataset: str, **more: Any) -> meetpoint.Loader[Any]:
    settings: Dict[str, Any] = dict(
        recipe=T.Compose([T.CenterCrop(8)]), batch_size=4, shuffle=True, seed=3, columns=["sample"]
    )
    return meetpoint.Loader(dataset, **{**settings, **more})


def torch_loader(loader: Any, skip: int = 0) -> List[List[int]]:
    """The behaviour of a torch DataLoader with a loader's parts, without the first batches."""
    given = []
    for at, indices in enumerate(loader.batch_sampler):
        if at >= skip:
            batch = loader.collate_fn(loader.dataset.__getitems__(indices))
            assert list(indices) == batch["sample"].tolist()
            given.append(batch["sample"].tolist())
    return given


def test_a_loader_has_the_attributes_of_a_dataloader(dataset: str) -> None:
    with make(dataset, drop_last=True, num_workers=2) as loader:
        assert (loader.batch_size, loader.drop_last, loader.pin_memory) == (4, True, False)
        # torch's worker processes, of which there are none.
        assert loader.num_workers == 0 and loader.prefetch_factor is None
        assert len(loader.dataset) == COUNT
        assert loader.dataset[5].image == meetpoint.open(dataset)[5].image
        assert len(loader.batch_sampler) == len(loader) == COUNT // 4
        assert len(loader.sampler) == COUNT // 4 * 4
    with make(dataset) as loader:
        assert len(loader.sampler) == COUNT


def test_the_warning_about_pinned_memory_names_the_line_of_the_caller(
    dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(is_available=lambda: False, cuda=None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, version=cuda))
    with pytest.warns(RuntimeWarning, match="torch finds no CUDA device") as caught:
        make(dataset, output="torch", pin_memory=True).close()
    assert [warning.filename for warning in caught] == [__file__]


def test_samplers_name_the_samples_of_the_next_epoch_in_order(dataset: str) -> None:
    with make(dataset) as loader:
        for _ in range(2):
            named = [list(indices) for indices in loader.batch_sampler]
            assert list(loader.sampler) == [sample for batch in named for sample in batch]
            assert [batch["sample"].tolist() for batch in loader] == named


def test_a_dataloader_built_of_the_parts_gives_the_loader_s_batches(dataset: str) -> None:
    with make(dataset) as loader:
        expected = [[batch["sample"].tolist() for batch in loader] for _ in range(2)]
        loader.set_epoch(0)
        assert [torch_loader(loader) for _ in range(2)] == expected
    with make(dataset) as loader:
        for skip in (5, len(loader) - 1):
            loader.batch_sampler.set_epoch(1)
            assert torch_loader(loader, skip) == expected[1][skip:]


def test_batches_that_are_left_out_are_not_prepared(dataset: str) -> None:
    with make(dataset) as loader:
        rest = torch_loader(loader, skip=10)
        assert len(rest) == 7
        (epoch,) = loader.report()["epochs"]
        assert len(epoch["records"]) == 7


def test_batches_cannot_be_left_out_where_the_order_is_not_fixed(dataset: str) -> None:
    device = meetpoint.Emulated(allow_shared=True)
    with make(dataset, strategy="wrr", device=device, workers=1) as loader:
        with pytest.raises(meetpoint.StateError) as raised:
            torch_loader(loader, skip=2)
        assert "wrr" in str(raised.value) and "baseline" in str(raised.value)
    with make(dataset, strategy="windowed", device=device, workers=1) as loader:
        assert len(torch_loader(loader, skip=2)) == 15


def test_batches_that_are_dealt_out_again_are_refused(dataset: str) -> None:
    with make(dataset, rank=0, world_size=2) as loader:
        with pytest.raises(meetpoint.StateError, match="rank 0 of 2"):
            for at, indices in enumerate(loader.batch_sampler):
                if at % 2 == 0:
                    loader.dataset.__getitems__(indices)


def test_samples_are_not_collated_one_by_one(dataset: str) -> None:
    with make(dataset) as loader:
        samples = loader.dataset.__getitems__([3, 1])
        assert [sample.number for sample in samples] == [3, 1]
        with pytest.raises(meetpoint.SettingError, match="as_torch"):
            loader.collate_fn(samples)


def test_an_epoch_that_was_loaded_comes_first_where_passes_are_counted_from_0(
    dataset: str,
) -> None:
    with make(dataset) as loader:
        expected = [[batch["sample"].tolist() for batch in loader] for _ in range(4)]
        loader.set_epoch(2)
        batches = iter(loader)
        begun = [next(batches)["sample"].tolist() for _ in range(3)]
        state = loader.state_dict()
    assert begun == expected[2][:3]
    with make(dataset) as loader:
        loader.load_state_dict(state)
        resumed = []
        for number in range(2):
            loader.sampler.set_epoch(number)
            resumed += [batch["sample"].tolist() for batch in loader]
        assert resumed == expected[2][3:] + expected[3]


def test_a_dataset_of_a_loader_is_pickled_as_one(dataset: str) -> None:
    with make(dataset) as loader:
        other = pickle.loads(pickle.dumps(loader.dataset))
        assert [sample.number for sample in other.__getitems__([7])] == [7]
        first = next(iter(loader.batch_sampler))
        assert pickle.loads(pickle.dumps(first)) == list(first)
    image = meetpoint.Loader(dataset, recipe=T.Compose([T.CenterCrop(20)]), batch_size=1)
    with image as loader:
        (images, _) = next(iter(loader))
        assert numpy.array_equal(images[0], pixels(0)[:, 2:22])


def test_every_argument_is_known_to_completion_and_to_type_checkers() -> None:
    parameters = inspect.signature(meetpoint.Loader.__init__).parameters.values()
    keywords = {it.name for it in parameters if it.kind is it.KEYWORD_ONLY}
    of_types = {"recipe", "output", "columns", "collate", "plan", "batch_transform"}
    # Arguments of torch that are only accepted with their defaults.
    refused = {
        "batch_sampler",
        "collate_fn",
        "worker_init_fn",
        "multiprocessing_context",
        "generator",
        "pin_memory_device",
    }
    assert keywords - of_types == set(Options.__annotations__) - refused
    assert {"num_workers", "pin_memory", "prefetch_factor"} <= keywords


@pytest.mark.parametrize(
    "name",
    ["", ".transforms", ".errors", ".collate", ".dataset", ".ray", ".recipes", ".samplers", ".shards"],
)
def test_completion_shows_names_for_users_alone(name: str) -> None:
    module = importlib.import_module(f"meetpoint{name}")
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in dir(module))
