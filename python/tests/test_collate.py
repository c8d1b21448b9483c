"""Pictures of different sizes in a batch: padded or listed, with masks, and grouped by shape."""

from __future__ import annotations

import bisect
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy
import pytest

import meetpoint
from meetpoint import collate, samplers
from meetpoint import transforms as T

from quickstart import png

COUNT = 22
RECIPE = T.Compose([T.RandomHorizontalFlip(0.0)], targets={"mask": T.Mask(fill=255)})


def size(number: int) -> Tuple[int, int]:
    """Rows and columns of a picture."""
    return 10 + number * 7 % 13, 10 + number * 5 % 11


def picture(number: int) -> numpy.ndarray:
    return numpy.random.default_rng(number).integers(0, 256, (*size(number), 3), numpy.uint8)


def mask(number: int) -> numpy.ndarray:
    return numpy.random.default_rng(1000 + number).integers(0, 9, size(number), numpy.uint8)


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Pictures of different sizes with masks, boxes and their sizes as columns."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("varied")
    numbers = range(COUNT)
    four = pyarrow.list_(pyarrow.list_(pyarrow.float32(), 4))
    files = pyarrow.list_(pyarrow.binary())
    objects = [[png(mask(it) + at) for at in range(it % 3)] for it in numbers]
    table = {
        "objects": pyarrow.array(objects, files),
        "image": pyarrow.array([png(picture(it)) for it in numbers], pyarrow.binary()),
        "mask": pyarrow.array([png(mask(it)) for it in numbers], pyarrow.binary()),
        "boxes": pyarrow.array([[[1, 2, 5, 6]] * (it % 3) for it in numbers], four),
        "high": pyarrow.array([size(it)[0] for it in numbers]),
        "wide": pyarrow.array([size(it)[1] for it in numbers]),
    }
    parquet.write_table(pyarrow.table(table), folder / "varied.parquet")
    path = meetpoint.pack(folder / "varied.parquet", folder / "varied.set", content="image")
    return path.destination


def load(path: str, **options: Any) -> List[Dict[str, Any]]:
    with meetpoint.Loader(path, recipe=RECIPE, batch_size=4, **options) as loader:
        # The arrays of a batch keep its memory alive.
        return list(loader)


def test_padded_pictures_and_masks_are_dense_arrays_with_their_sizes(varied: str) -> None:
    columns = ["image", "mask", "image_size", "padding_mask", "sample"]
    padding = collate.Pad(multiple_of=4, fill=7)
    for batch in load(varied, columns=columns, collate=padding):
        numbers = [int(it) for it in batch["sample"]]
        sizes = numpy.array([size(it) for it in numbers])
        high, wide = (-(-int(side) // 4) * 4 for side in sizes.max(axis=0))
        assert batch["image"].shape == (len(numbers), high, wide, 3)
        assert batch["mask"].shape == batch["padding_mask"].shape == (len(numbers), high, wide)
        numpy.testing.assert_array_equal(batch["image_size"], sizes)
        for at, number in enumerate(numbers):
            expected = numpy.full((high, wide, 3), 7, numpy.uint8)
            expected[: sizes[at, 0], : sizes[at, 1]] = picture(number)
            numpy.testing.assert_array_equal(batch["image"][at], expected)
            labels = numpy.full((high, wide), 255, numpy.uint8)
            labels[: sizes[at, 0], : sizes[at, 1]] = mask(number)
            numpy.testing.assert_array_equal(batch["mask"][at], labels)
            inside = numpy.ones((high, wide), bool)
            inside[: sizes[at, 0], : sizes[at, 1]] = False
            numpy.testing.assert_array_equal(batch["padding_mask"][at], inside)


def test_listed_pictures_have_their_own_shapes_and_share_the_memory(varied: str) -> None:
    columns = ["image", "mask", "boxes", "sample"]
    for batch in load(varied, columns=columns, collate="list", shuffle=True):
        images = batch["image"]
        assert isinstance(images, meetpoint.TensorList)
        assert len(images) == len(batch["sample"])
        for at, number in enumerate(int(it) for it in batch["sample"]):
            assert images.shape(at) == (*size(number), 3)
            numpy.testing.assert_array_equal(images[at], picture(number))
            numpy.testing.assert_array_equal(batch["mask"][at], mask(number))
            assert numpy.shares_memory(images[at], images.values)
            assert len(batch["boxes"][at]) == number % 3
        assert len(list(images)) == len(images)
        with pytest.raises(IndexError):
            images[len(images)]


def test_masks_of_objects_are_lists_of_files_and_have_the_size_of_their_picture(
    varied: str,
) -> None:
    recipe = T.Compose([T.RandomHorizontalFlip(0.0)], targets={"objects": T.Mask(fill=200)})
    columns = ["image", "objects", "sample"]
    with meetpoint.Loader(varied, recipe=recipe, batch_size=4, columns=columns,
                          collate="pad") as loader:
        for batch in loader:
            high, wide = batch["image"].shape[1:3]
            for at, number in enumerate(int(it) for it in batch["sample"]):
                objects = batch["objects"][at]
                assert objects.shape == (number % 3, high, wide)
                for index, labels in enumerate(objects):
                    expected = numpy.full((high, wide), 200, numpy.uint8)
                    rows, columns_ = size(number)
                    expected[:rows, :columns_] = mask(number) + index
                    numpy.testing.assert_array_equal(labels, expected)


VIEWS = T.Compose([
    T.Views({
        "large": [T.RandomHorizontalFlip(0.0)],
        "small": T.View([T.RandomShortestSize([5, 8])], count=2),
    })
])


def test_each_view_is_padded_to_its_own_largest_picture(varied: str) -> None:
    with meetpoint.Loader(varied, recipe=VIEWS, batch_size=4, collate="pad") as loader:
        batches = list(loader)
    assert list(batches[0]) == ["large", "small", "large_size", "small_size", "label"]
    for at, batch in enumerate(batches):
        numbers = range(4 * at, 4 * at + len(batch["large_size"]))
        sizes = [size(it) for it in numbers]
        numpy.testing.assert_array_equal(batch["large_size"], sizes)
        for position, number in enumerate(numbers):
            high, wide = size(number)
            own = batch["large"][position]
            numpy.testing.assert_array_equal(own[:high, :wide], picture(number))
            assert not own[high:].any() and not own[:, wide:].any()
        small = batch["small_size"]
        assert small.shape == (len(numbers), 2, 2)
        assert set(small.min(axis=-1).reshape(-1).tolist()) <= {5, 8}
        assert batch["small"].shape == (len(numbers), 2, *small.max(axis=(0, 1)), 3)


def test_views_are_the_same_on_a_device(varied: str) -> None:
    columns = ["large", "small", "small_size", "small_padding_mask"]
    options: Dict[str, Any] = {"batch_size": 4, "collate": "pad", "columns": columns}
    with meetpoint.Loader(varied, recipe=VIEWS, **options) as loader:
        expected = list(loader)
    device: Dict[str, Any] = {"device": meetpoint.Emulated(), "strategy": "device-only"}
    with meetpoint.Loader(varied, recipe=VIEWS, **options, **device) as loader:
        for one, other in zip(loader, expected):
            for name in columns:
                numpy.testing.assert_array_equal(one[name], other[name])
    with pytest.raises(meetpoint.SettingError, match="small"):
        meetpoint.Loader(varied, recipe=VIEWS, batch_size=4, collate="list")


def test_a_cache_holds_pictures_of_different_sizes(varied: str) -> None:
    options: Dict[str, Any] = {"columns": ["image", "mask"], "collate": "pad"}
    expected = load(varied, **options)
    with meetpoint.Loader(varied, recipe=RECIPE, batch_size=4, cache="4MiB", **options) as loader:
        for _ in range(2):
            for one, other in zip(loader, expected):
                for name in options["columns"]:
                    numpy.testing.assert_array_equal(one[name], other[name])
        used = [epoch["cache"]["hits"] for epoch in loader.report()["epochs"]]
    assert used == [0, COUNT]


def test_without_columns_a_batch_is_a_dictionary_of_images_and_labels(varied: str) -> None:
    first = load(varied, collate="pad")[0]
    assert list(first) == ["image", "image_size", "label"]
    assert list(load(varied, collate="list")[0]) == ["image", "label"]


def test_dlpack_shows_the_memory_of_a_padded_batch(varied: str) -> None:
    first = load(varied, collate="pad", output="dlpack")[0]
    array = numpy.from_dlpack(first["image"])
    assert array.shape == tuple(first["image"].shape)
    assert array.__array_interface__["data"][0] == first["image"].__array_interface__["data"][0]


def test_a_device_delivers_the_same_batches(varied: str) -> None:
    options: Dict[str, Any] = {
        "columns": ["image", "mask", "image_size"],
        "collate": "pad",
        "sampler": samplers.AspectRatio(2),
    }
    expected = load(varied, **options)
    got = load(varied, **options, device=meetpoint.Emulated(), strategy="device-only")
    assert len(got) == len(expected)
    for one, other in zip(got, expected):
        for name in options["columns"]:
            numpy.testing.assert_array_equal(one[name], other[name])


def test_an_epoch_resumes_with_the_batches_that_are_left(varied: str) -> None:
    def loader() -> "meetpoint.Loader[Any]":
        return meetpoint.Loader(
            varied,
            recipe=RECIPE,
            batch_size=4,
            columns=["image", "sample"],
            collate="pad",
            sampler=samplers.AspectRatio(),
        )

    with loader() as whole:
        expected = list(whole)
    with loader() as first:
        taken = [batch for _, batch in zip(range(2), first)]
        state = first.state_dict()
    with loader() as second:
        second.load_state_dict(state)
        taken += list(second)
    assert len(taken) == len(expected)
    for one, other in zip(taken, expected):
        numpy.testing.assert_array_equal(one["image"], other["image"])


@pytest.mark.parametrize("columns", [{}, {"width": "wide", "height": "high"}])
def test_batches_hold_similar_aspect_ratios_and_every_sample_once(
    varied: str, columns: Dict[str, str]
) -> None:
    sampler = samplers.AspectRatio(1, **columns)
    batches = load(varied, columns=["image", "sample"], collate="pad", sampler=sampler)
    numbers = [[int(it) for it in batch["sample"]] for batch in batches]
    assert sorted(sum(numbers, [])) == list(range(COUNT))
    assert all(len(batch) == 4 for batch in numbers[:-1])

    # The groups of torchvision's create_aspect_ratio_groups with k = 1.
    def group(number: int) -> int:
        return bisect.bisect_right([0.5, 1.0, 2.0], size(number)[0] / size(number)[1])

    mixed = [batch for batch in numbers if len({group(it) for it in batch}) > 1]
    assert len(mixed) <= 4


def test_what_cannot_be_collated_is_refused_with_the_remedy(varied: str) -> None:
    with pytest.raises(meetpoint.RecipeError, match="no fixed shape") as refused:
        load(varied)
    assert "collate" in str(refused.value.remedy)
    wrong: List[Tuple[Any, str]] = [
        ("padd", "collate is 'padd'"),
        (3, "collate is 3"),
    ]
    for given, words in wrong:
        with pytest.raises(meetpoint.SettingError, match=words):
            load(varied, collate=given)
    for options in (
        {"multiple_of": 0},
        {"fill": float("nan")},
        {"fill": 10**400},
        {"max_size": 5},
        {"max_size": (1,)},
    ):
        with pytest.raises(meetpoint.SettingError):
            collate.Pad(**options)
    with pytest.raises(meetpoint.SettingError, match="fill"):
        load(varied, collate=collate.Pad(fill=0.5))
    with pytest.raises(meetpoint.SettingError, match="padding_mask"):
        load(varied, collate="list", columns=["image", "padding_mask"])
    with pytest.raises(meetpoint.SettingError, match="height"):
        samplers.AspectRatio(width="wide")
    with pytest.raises(meetpoint.SettingError, match="factor"):
        samplers.AspectRatio(17)
    with pytest.raises(meetpoint.SettingError):
        load(varied, collate="pad", sampler=samplers.AspectRatio(width="wide", height="boxes"))


def test_collations_are_values(varied: str) -> None:
    assert collate.Pad() == collate.Pad(1, 0.0) != collate.Pad(2)
    assert collate.List() != collate.Stack()
    assert repr(collate.Pad(32, max_size=(800, 1333))) == (
        "Pad(multiple_of=32, fill=0.0, max_size=(800, 1333))"
    )
    small = collate.Pad(max_size=(4, 4))
    larger = load(varied, columns=["image", "sample"], collate=small)
    reserved = load(varied, columns=["image", "sample"], collate="pad")
    for one, other in zip(larger, reserved):
        numpy.testing.assert_array_equal(one["image"], other["image"])
