"""The results of iterating: every sample once, the same bits from both ends, epoch after epoch."""

from __future__ import annotations

import gc
import pickle
import threading
from typing import Any, List, Optional, cast

import numpy
import pytest
from conftest import CLASSES, COUNT, HEIGHT, WIDTH, pixels

import meetpoint
from meetpoint import transforms as T

WHOLE = T.Compose([T.CenterCrop((HEIGHT, WIDTH))])
RANDOM = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ToImage()])
DEVICE = meetpoint.Emulated(allow_shared=True)
STRATEGIES = ["host-only", "device-only", "mte", "mte-feedback", "wrr", "windowed", "auto"]

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def make(dataset: str, strategy: str = "host-only", **more: Any) -> meetpoint.Loader:
    settings = dict(
        recipe=WHOLE,
        batch_size=4,
        strategy=strategy,
        device=None if strategy == "host-only" else DEVICE,
        workers=1,
    )
    return meetpoint.Loader(dataset, **{**settings, **more})


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("workers", [0, 2])
def test_every_sample_comes_once_with_its_pixels_and_label(
    dataset: str, strategy: str, workers: int
) -> None:
    columns = ["sample", "image", "label"]
    with make(dataset, strategy, workers=workers, shuffle=True, columns=columns) as loader:
        assert len(loader) == 17
        seen: List[int] = []
        for batch in loader:
            for sample, image, label in zip(batch["sample"].tolist(), batch["image"], batch["label"]):
                numpy.testing.assert_array_equal(image, pixels(sample))
                assert label == sample // (COUNT // len(CLASSES))
                seen.append(sample)
        assert sorted(seen) == list(range(COUNT))
        epoch = loader.report()["epochs"][0]
        assert epoch["is_complete"] and epoch["samples"] == COUNT
        if strategy == "device-only":
            assert epoch["schedule"]["device_batches"] == 17


def test_random_draws_are_the_same_on_host_and_device(dataset: str) -> None:
    def all_of(strategy: str) -> numpy.ndarray:
        with make(dataset, strategy, recipe=RANDOM, columns=["sample", "image"]) as loader:
            loader.set_epoch(3)
            pictures = {s: i for b in loader for s, i in zip(b["sample"].tolist(), b["image"])}
        return numpy.stack([pictures[sample] for sample in range(COUNT)])

    host = all_of("host-only")
    assert host.shape == (COUNT, 3, 16, 16) and host.std() > 0
    for strategy in ("device-only", "wrr"):
        numpy.testing.assert_array_equal(all_of(strategy), host)


def test_images_and_labels_have_the_types_of_the_recipe(dataset: str) -> None:
    recipe = T.Compose([T.CenterCrop(8), T.ToTensor(), T.Normalize([0.5] * 3, [0.25] * 3)])
    with make(dataset, recipe=recipe, drop_last=True) as loader:
        batches = list(loader)
    assert len(batches) == len(loader) == 16
    images, labels = batches[0]
    assert images.shape == (4, 3, 8, 8) and images.dtype == numpy.float32
    assert labels.shape == (4,) and labels.dtype == numpy.int64
    top, left = (HEIGHT - 8) // 2, (WIDTH - 8) // 2
    expected = pixels(0)[top : top + 8, left : left + 8].astype(numpy.float64) / 255
    expected = ((expected - 0.5) / 0.25).transpose(2, 0, 1)
    numpy.testing.assert_allclose(images[0], expected, atol=1e-5)


def test_epochs_differ_and_are_reproduced(dataset: str) -> None:
    def order(loader: meetpoint.Loader) -> List[int]:
        return [sample for batch in loader for sample in batch["sample"].tolist()]

    with make(dataset, shuffle=True, seed=5, columns=["sample"]) as loader:
        first, second = order(loader), order(loader)
        assert first != second and sorted(first) == sorted(second)
        assert loader.epoch == 1
        loader.set_epoch(0)
        assert order(loader) == first
    with make(dataset, shuffle=True, seed=6, columns=["sample"]) as loader:
        assert order(loader) != first
    with make(dataset, columns=["sample"]) as loader:
        assert order(loader) == order(loader) == list(range(COUNT))


@pytest.mark.parametrize("strategy", ["host-only", "wrr"])
def test_an_epoch_can_be_abandoned_at_any_time(dataset: str, strategy: str) -> None:
    with make(dataset, strategy) as loader:
        for left_after in (1, 5):
            for step, _ in enumerate(loader, 1):
                if step == left_after:
                    break
        with pytest.raises(ZeroDivisionError):
            for _ in loader:
                raise ZeroDivisionError
        assert sum(len(labels) for _, labels in loader) == COUNT
        epochs = loader.report()["epochs"]
        assert [epoch["is_complete"] for epoch in epochs] == [False, False, False, True]


def test_a_later_iteration_ends_the_one_before(dataset: str) -> None:
    with make(dataset) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        with pytest.raises((StopIteration, meetpoint.ClosedError)):
            next(first)
        assert sum(1 for _ in second) == 17


def test_a_closed_loader_says_so(dataset: str) -> None:
    loader = make(dataset)
    batches = iter(loader)
    next(batches)
    loader.close()
    loader.close()
    with pytest.raises(meetpoint.ClosedError):
        next(batches)
    with pytest.raises(meetpoint.ClosedError):
        iter(loader)
    assert "closed" in repr(loader)


@pytest.mark.parametrize("strategy", ["host-only", "device-only"])
def test_a_retained_batch_is_never_overwritten_and_outlives_its_loader(
    dataset: str, strategy: str
) -> None:
    # A batch takes 2 MiB of the ring, regardless of its size.
    columns = ["sample", "image"]
    loader = make(dataset, strategy, batch_size=1, memory_budget=64 << 20, columns=columns)
    kept = []
    for step, batch in enumerate(loader):
        if step % 6 == 0:
            kept.append((batch["sample"].tolist()[0], batch["image"]))
    for _ in loader:
        pass
    loader.close()
    del loader, batch
    gc.collect()
    assert len(kept) == 11
    for sample, image in kept:
        numpy.testing.assert_array_equal(image[0], pixels(sample))


def test_memory_is_reused_when_its_last_array_is_released(dataset: str) -> None:
    addresses = set()
    with make(dataset, batch_size=1, memory_budget=16 << 20) as loader:
        assert 66 * (2 << 20) > 16 << 20
        for images, _ in loader:
            view = images[0, 1:]
            addresses.add(images.__array_interface__["data"][0])
            del images
            assert view.base is not None
    assert len(addresses) <= 8


def test_a_budget_beyond_the_memory_of_this_process_is_refused(dataset: str) -> None:
    with pytest.raises(meetpoint.BudgetError, match="memory_budget"):
        make(dataset, memory_budget=10**18)


def test_budgets_may_be_sizes_with_a_unit(dataset: str) -> None:
    with make(dataset, "device-only", memory_budget="64MiB", spool_quota="32MiB") as loader:
        assert sum(len(batch[1]) for batch in loader) == COUNT
    with pytest.raises(meetpoint.BudgetError, match="memory_budget"):
        make(dataset, memory_budget="900TiB")


def test_a_loop_that_retains_every_batch_gets_an_error_about_the_budget(dataset: str) -> None:
    with make(dataset, batch_size=1, memory_budget=16 << 20) as loader:
        with pytest.raises(meetpoint.BudgetError, match="memory_budget") as caught:
            list(loader)
        assert isinstance(caught.value, MemoryError)
        # After that array is released, there is memory again.
        del caught
        gc.collect()
        assert sum(1 for _ in loader) == COUNT


@pytest.mark.parametrize("strategy", ["host-only", "device-only"])
def test_dlpack_hands_over_memory_without_a_copy(dataset: str, strategy: str) -> None:
    with make(dataset, strategy, output="dlpack") as loader:
        images, labels = next(iter(loader))
        assert isinstance(images, meetpoint.Tensor) and images.dtype == "uint8"
        assert images.__dlpack_device__() == (1, 0)
        array = numpy.from_dlpack(images)
        assert array.__array_interface__["data"][0] == images.__array_interface__["data"][0]
        assert array.shape == tuple(images.shape) == (4, HEIGHT, WIDTH, 3)
        assert numpy.from_dlpack(labels).tolist() == [0, 0, 0, 0]
        for version in (None, (1, 0)):
            # A tensor that is never consumed is released with its capsule.
            capsule = images.__dlpack__(max_version=version)
            assert ("dltensor_versioned" in repr(capsule)) == (version is not None)
        with pytest.raises(BufferError):
            images.__dlpack__(copy=True)
        with pytest.raises(BufferError):
            images.__dlpack__(dl_device=(2, 0))
        del images, labels
        gc.collect()
    numpy.testing.assert_array_equal(array[1], pixels(1))
    array[1] = 0
    assert not array[1].any()


def test_jax_takes_batches(dataset: str) -> None:
    pytest.importorskip("jax")
    with make(dataset, output="jax") as loader:
        images, labels = next(iter(loader))
    assert images.shape == (4, HEIGHT, WIDTH, 3) and str(labels.dtype) == "int32"
    numpy.testing.assert_array_equal(numpy.asarray(images)[2], pixels(2))


@pytest.mark.parametrize("strategy", ["host-only", "device-only"])
def test_torch_takes_batches(dataset: str, strategy: str) -> None:
    pytest.importorskip("torch")
    with make(dataset, strategy, output="torch") as loader:
        images, labels = next(iter(loader))
    assert tuple(images.shape) == (4, HEIGHT, WIDTH, 3) and str(labels.dtype) == "torch.int64"
    numpy.testing.assert_array_equal(images.numpy()[2], pixels(2))


def test_other_threads_run_while_one_waits(dataset: str) -> None:
    # The device stalls at its first batch, so the loop waits until it is given up.
    slow = meetpoint.Emulated(allow_shared=True, faults=("stall@1",))
    counted = 0
    is_done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not is_done.is_set():
            counted += 1

    with make(dataset, "device-only", device=slow, stall_timeout=0.3) as loader:
        batches = iter(loader)
        thread = threading.Thread(target=count, daemon=True)
        thread.start()
        before = counted
        with pytest.warns(meetpoint.DeviceWarning):
            total = sum(len(labels) for _, labels in batches)
        during = counted - before
        is_done.set()
        thread.join()
    assert total == COUNT
    # If the wait held the interpreter's lock, the thread would run for at most one slice of 5 ms.
    assert during > 10_000


def test_two_threads_share_an_epoch(dataset: str) -> None:
    with make(dataset, columns=["sample"]) as loader:
        batches = iter(loader)
        seen: List[int] = []

        def work() -> None:
            for batch in batches:
                seen.extend(batch["sample"].tolist())

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(seen) == list(range(COUNT))


def test_ranks_share_an_epoch_in_equal_steps(dataset: str) -> None:
    seen: List[int] = []
    steps = set()
    for rank in range(4):
        with make(dataset, rank=rank, world_size=4, shuffle=True, columns=["sample"]) as loader:
            batches = [batch["sample"].tolist() for batch in loader]
            assert len(batches) == len(loader)
        steps.add(len(batches))
        seen += [sample for batch in batches for sample in batch]
    assert len(steps) == 1
    assert set(seen) == set(range(COUNT))


def test_a_loader_that_is_pickled_is_made_again_where_it_was(dataset: str) -> None:
    with make(dataset, shuffle=True, columns=["sample"]) as loader:
        batches = iter(loader)
        begun = [next(batches)["sample"].tolist() for _ in range(3)]
        with pickle.loads(pickle.dumps(loader)) as other:
            rest = [batch["sample"].tolist() for batch in other]
        assert rest == [batch["sample"].tolist() for batch in batches]
        assert len(begun) + len(rest) == 17


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"sampler": [1]}, TypeError, "one of meetpoint.samplers"),
        ({"collate_fn": list}, TypeError, "native memory"),
        ({"worker_init_fn": print}, TypeError, "no Python"),
        ({"generator": 1}, TypeError, "seed"),
        ({"pin_memory": True}, TypeError, "pageable"),
        ({"timeout": 5}, TypeError, "bounded"),
        ({"transform": T.ToTensor()}, TypeError, "recipe"),
        ({"bath_size": 4}, TypeError, "no argument 'bath_size'"),
        ({"num_workers": 2, "workers": 1}, ValueError, "mean the same"),
        ({"strategy": "fastest"}, ValueError, "one of host-only"),
        ({"strategy": "wrr"}, ValueError, "needs a device"),
        ({"device": "usb"}, ValueError, "emulated"),
        ({"output": "cupy"}, ValueError, "one of numpy"),
        ({"columns": ["picture"]}, ValueError, '"picture"'),
        ({"on_error": "ignore"}, ValueError, 'on_error to "raise", "skip", "replace"'),
        ({"on_error": 3}, ValueError, "on_error is 3"),
        ({"batch_size": 0}, ValueError, "set batch_size to a whole number from 1"),
        ({"batch_size": "8"}, ValueError, "set batch_size to a whole number from 1"),
        ({"batch_size": True}, ValueError, "batch_size is True; set batch_size to a whole number"),
        ({"memory_budget": "much"}, ValueError, 'set memory_budget to a size such as "256MiB"'),
        ({"spool_quota": "much"}, ValueError, 'set spool_quota to a size such as "256MiB"'),
        ({"batch_size": 1000}, ValueError, "66 samples"),
        ({"rank": 1}, ValueError, "both or neither"),
        ({"rank": 4, "world_size": 4}, ValueError, "set rank to a number below world_size"),
        ({"rank": 0, "world_size": 0}, ValueError, "set world_size to a whole number from 1"),
        ({"recipe": 3}, ValueError, "Compose"),
        ({"recipe": [T.RandomHorizontalFlip()]}, ValueError, "no fixed shape"),
        ({"memory_budget": 1}, ValueError, "memory_budget"),
        ({"stall_timeout": -1.0}, ValueError, "stall_timeout"),
        ({"stall_timeout": "soon"}, ValueError, "number of seconds"),
        ({"max_errors": -1}, ValueError, "max_errors is -1; set max_errors to a whole number from 0"),
        ({"max_errors": "x"}, ValueError, "max_errors is 'x'; set max_errors to a whole number"),
        ({"batch_size": 2.5}, ValueError, "batch_size is 2.5; set batch_size to a whole number"),
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"num_workers": 1 << 40}, ValueError, "workers is 1099511627776"),
        ({"rank": -1, "world_size": 4}, ValueError, "rank is -1"),
        ({"shuffle": "no"}, ValueError, "shuffle is 'no'; set shuffle to True or False"),
        ({"strategy": 5}, ValueError, "strategy is 5; set strategy to a text"),
        ({"quarantine": 5}, ValueError, "quarantine is 5; set quarantine to a path"),
        ({"quarantine": "\ud800"}, ValueError, "to a path"),
        ({"strategy": "\ud800"}, ValueError, "to a text"),
        ({"shuffle": numpy.zeros(2)}, ValueError, "to True or False"),
        ({"columns": 5}, ValueError, "columns is 5; set columns to a list of names"),
        ({"columns": []}, ValueError, "columns is empty"),
        ({"output": ["numpy"]}, ValueError, "one of numpy"),
        ({"persistent_workers": "x"}, TypeError, "set it to False or True"),
        ({"recipe": "dait"}, meetpoint.RecipeError, "recipe dait: there is no such file.*`deit`"),
        ({"recipe": "deit@9"}, meetpoint.RecipeError, "the latest is deit@1; choose deit@1"),
        ({"recipe": "no.toml"}, meetpoint.RecipeError, "recipe no.toml: No such file.*; give the"),
        ({"recipe": "/"}, meetpoint.RecipeError, "failed to read recipe /: .*; give the path"),
        ({"device": [None]}, meetpoint.SettingError, "device holds None; a list of devices takes"),
        ({"rendezvous": "unix:/r"}, meetpoint.SettingError, "give rank and world_size as well"),
        ({"device": meetpoint.Emulated(cpu_ratio=2)}, ValueError, "cpu_ratio is 2; set cpu_ratio to a num"),
        ({"device": meetpoint.Emulated(latency=-1)}, ValueError, "latency is -1; set latency to a num"),
        ({"device": meetpoint.Emulated(core=-1)}, ValueError, "core is -1; set core to a whole"),
        ({"device": meetpoint.Emulated(faults=cast(Any, (1,)))}, ValueError, "faults is 1"),
        ({"device": meetpoint.Emulated(faults=("melt@3",))}, ValueError, "faults holds .melt@3.*;"),
    ],
)
def test_meaningless_arguments_are_refused_with_a_message(
    dataset: str, arguments: Any, kind: type, words: str
) -> None:
    with pytest.raises(kind, match=words):
        meetpoint.Loader(dataset, **{"recipe": WHOLE, **arguments})


def test_names_of_torch_that_mean_the_same_are_taken(dataset: str) -> None:
    same: Optional[Any] = None
    with meetpoint.Loader(
        dataset,
        recipe=WHOLE,
        num_workers=1,
        prefetch_factor=2,
        pin_memory=False,
        persistent_workers=True,
        timeout=0,
        sampler=same,
        collate_fn=same,
    ) as loader:
        assert sum(1 for _ in loader) == COUNT


def test_numbers_of_numpy_are_numbers(dataset: str) -> None:
    with make(
        dataset,
        batch_size=numpy.int64(4),
        seed=numpy.uint8(7),
        shuffle=numpy.bool_(True),
        max_errors=numpy.int32(0),
        stall_timeout=numpy.float32(2),
        columns=["sample"],
    ) as loader:
        seen = [batch["sample"].tolist() for batch in loader]
    with make(dataset, batch_size=4, seed=7, shuffle=True, columns=["sample"]) as loader:
        assert seen == [batch["sample"].tolist() for batch in loader]
