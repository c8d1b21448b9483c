"""Targets: masks, boxes and keypoints that move with their picture, at both ends."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, Dict, List

import numpy
import pyarrow
import pyarrow.parquet
import pytest
from conftest import png

import meetpoint
from meetpoint import transforms as T

COUNT = 13
WIDTH, HEIGHT = 24, 16
DEVICE = meetpoint.Emulated(allow_shared=True)
COLUMNS = ["image", "boxes", "category", "joints", "mask", "sample"]

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def mask_of(sample: int) -> Any:
    return numpy.random.default_rng(sample).integers(0, 9, (HEIGHT, WIDTH), numpy.uint8)


def boxes_of(sample: int) -> List[List[float]]:
    """Corner and sides. Box 1 is too narrow to be retained."""
    return [[at, 1.0, 0.25 if at == 1 else 4.0, 5.0 + at] for at in range(sample % 4)]


def joints_of(sample: int) -> List[List[List[float]]]:
    return [[[at, 2.0, 2.0], [at + 1.0, 3.0, 1.0]] for at in range(sample % 4)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Parquet file with pictures and what is in them, packed."""
    folder = tmp_path_factory.mktemp("targets")
    samples = range(COUNT)
    floats = pyarrow.float32()
    columns = {
        "image": pyarrow.array(
            [png(numpy.full((HEIGHT, WIDTH, 3), it, numpy.uint8)) for it in samples],
            pyarrow.binary(),
        ),
        "boxes": pyarrow.array(
            [boxes_of(it) for it in samples], pyarrow.list_(pyarrow.list_(floats, 4))
        ),
        "category": pyarrow.array(
            [[10 * it + at for at in range(it % 4)] for it in samples],
            pyarrow.list_(pyarrow.int64()),
        ),
        "joints": pyarrow.array(
            [joints_of(it) for it in samples],
            pyarrow.list_(pyarrow.list_(pyarrow.list_(floats, 3), 2)),
        ),
        "mask": pyarrow.array([png(mask_of(it)) for it in samples], pyarrow.binary()),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "table.parquet")
    meetpoint.pack(folder / "table.parquet", folder / "table.set", content="image")
    return str(folder / "table.set")


def targets(**more: Any) -> Dict[str, T.Target]:
    boxes = T.Boxes(
        "xywh", to_format="xyxy", min_size=1, filters=["category", "joints"], **more
    )
    return {"boxes": boxes, "joints": T.Keypoints([(0, 1)]), "mask": T.Mask(255)}


MIRRORED = T.Compose([T.RandomHorizontalFlip(1.0), T.Resize((HEIGHT * 2, WIDTH * 2))], targets())
RANDOM = T.Compose(
    [
        T.RandomZoomOut(p=0.7),
        T.RandomIoUCrop(),
        T.RandomRotation(20, "bilinear"),
        T.RandomHorizontalFlip(),
        T.ColorJitter(0.4),
        T.RandomResizedCrop((20, 28)),
    ],
    targets(),
)


def loader(table: str, recipe: T.Compose, strategy: str, **more: Any) -> "meetpoint.Loader[Any]":
    settings = dict(
        batch_size=4,
        shuffle=True,
        seed=5,
        strategy=strategy,
        device=None if strategy == "host-only" else DEVICE,
        workers=1,
        columns=COLUMNS,
    )
    return meetpoint.Loader(table, recipe=recipe, **{**settings, **more})


@pytest.mark.parametrize("strategy", ["host-only", "device-only"])
def test_targets_move_with_their_picture(table: str, strategy: str) -> None:
    seen = 0
    with loader(table, MIRRORED, strategy, drop_last=False) as batches:
        for batch in batches:
            for row, sample in enumerate(list(batch["sample"])):
                sample = int(sample)
                kept = [at for at in range(sample % 4) if at != 1]
                corners = [boxes_of(sample)[at] for at in kept]
                expected = [
                    [2 * (WIDTH - x - w), 2 * y, 2 * (WIDTH - x), 2 * (y + h)]
                    for x, y, w, h in corners
                ]
                assert batch["boxes"][row].tolist() == expected
                assert batch["category"][row].tolist() == [10 * sample + at for at in kept]
                # Left and right are exchanged.
                points = [
                    [[2 * (WIDTH - x), 2 * y, v] for x, y, v in reversed(joints_of(sample)[at])]
                    for at in kept
                ]
                assert batch["joints"][row].tolist() == points
                mask = mask_of(sample)[:, ::-1].repeat(2, axis=0).repeat(2, axis=1)
                assert (batch["mask"][row] == mask).all() and batch["mask"].dtype == numpy.uint8
                seen += 1
    assert seen == COUNT


def test_both_ends_prepare_the_same_bits(table: str) -> None:
    def samples(strategy: str) -> Dict[int, List[bytes]]:
        found = {}
        with loader(table, RANDOM, strategy) as batches:
            for epoch in range(2):
                for batch in batches:
                    for row, sample in enumerate(list(batch["sample"])):
                        values = [batch[name][row].tobytes() for name in COLUMNS[:-1]]
                        found[epoch, int(sample)] = values
        return found

    host, device = samples("host-only"), samples("device-only")
    assert host == device and len(host) == 2 * COUNT


def test_ragged_targets_are_padded_with_their_sizes(table: str) -> None:
    with loader(table, MIRRORED, "host-only") as batches:
        batch = next(iter(batches))
        boxes, sizes = batch["boxes"].padded()
        assert sizes.tolist() == [len(rows) for rows in batch["boxes"]]
        assert boxes.shape == (4, max(sizes), 4) and boxes.dtype == numpy.float32
        for row, size in enumerate(sizes):
            assert (boxes[row, :size] == batch["boxes"][row]).all()
            assert (boxes[row, size:] == 0).all()
        wide, _ = batch["category"].padded(7, fill=-1)
        assert wide.shape == (4, 7) and (wide[:, 3:] == -1).all()
        with pytest.raises(ValueError, match="more than length=0"):
            batch["boxes"].padded(0)


def test_a_recipe_with_targets_is_written_compared_and_pickled() -> None:
    for recipe in (MIRRORED, RANDOM):
        assert T.Compose.from_toml(recipe.to_toml()) == recipe
        assert pickle.loads(pickle.dumps(recipe)).targets == T.Compose.from_toml(
            recipe.to_toml()
        ).targets
    without = T.Compose([T.RandomHorizontalFlip(1.0), T.Resize((HEIGHT * 2, WIDTH * 2))])
    assert without != MIRRORED and without.targets == {}
    assert "[targets" not in without.to_toml() and "targets={'boxes': Boxes(" in repr(MIRRORED)
    assert T.Boxes("xyxy") == T.Boxes("XYXY") != T.Boxes("xywh")


@pytest.mark.parametrize(
    ("transforms", "targets", "words"),
    [
        ([T.RandAugment()], {"mask": T.Mask()}, "RandAugment.*rand_augment.*target \"mask\""),
        ([T.AutoAugment()], {"b": T.Boxes("xyxy")}, "auto_augment.*target \"b\" .boxes"),
        ([T.Pad(2, padding_mode="reflect")], {"b": T.Boxes("xyxy")}, "padding_mode.*reflect"),
        ([T.RandomIoUCrop()], None, "one target of the kind boxes"),
        ([T.CenterCrop(8)], {"b": T.Boxes("xywhr")}, "rotated boxes are not supported"),
        ([T.CenterCrop(8)], {"b": T.Boxes("xyxy", filters=["c"])}, "all boxes are kept"),
        ([T.CenterCrop(8)], {"p": T.Keypoints([(1, 1)])}, "point 1 twice"),
        ([T.CenterCrop(8)], {"m": T.Mask(dtype="float32")}, "dtype.*float32"),
        ([T.Compose([T.CenterCrop(8)], {"m": T.Mask()})], None, "has separate targets"),
        ([T.CenterCrop(8)], {"m": "mask"}, "the target 'm' is 'mask'"),
    ],
)
def test_targets_that_cannot_move_are_refused(transforms: Any, targets: Any, words: str) -> None:
    with pytest.raises(meetpoint.RecipeError, match=words) as raised:
        T.Compose(transforms, targets)
    assert raised.value.remedy


def test_columns_that_are_no_targets_are_refused(table: str) -> None:
    def columns(targets: Dict[str, T.Target], *names: str) -> str:
        recipe = T.Compose([T.CenterCrop(8)], targets)
        with pytest.raises(meetpoint.SettingError) as raised:
            loader(table, recipe, "host-only", columns=["image", *names])
        return f"{raised.value}; {raised.value.remedy}"

    assert "category" in columns({"category": T.Boxes("xyxy")}, "category")
    assert "has no column" in columns({"masks": T.Mask()}, "masks")
    filtered = {"boxes": T.Boxes("xyxy", min_size=1, filters=["mask"])}
    assert "from `filters` of the target" in columns(filtered, "boxes", "mask")


def test_a_mask_of_another_size_is_an_error_of_its_sample(table: str, tmp_path: Path) -> None:
    columns = {
        "image": pyarrow.array([png(mask_of(1)), png(mask_of(2))], pyarrow.binary()),
        "mask": pyarrow.array([png(mask_of(1)), png(mask_of(2)[:9])], pyarrow.binary()),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "table.parquet")
    meetpoint.pack(tmp_path / "table.parquet", tmp_path / "odd.set", content="image")
    recipe = T.Compose([T.CenterCrop(8)], {"mask": T.Mask()})
    settings: Dict[str, Any] = dict(recipe=recipe, batch_size=2, columns=["image", "mask"], workers=1)
    with meetpoint.Loader(tmp_path / "odd.set", **settings) as batches:
        with pytest.raises(meetpoint.SampleError, match="24 x 9 pixels, the picture 24 x 16"):
            list(batches)
    with meetpoint.Loader(
        tmp_path / "odd.set", drop_last=False, on_error="skip", **settings
    ) as batches:
        assert [len(batch["mask"]) for batch in batches] == [1]
