"""Padded batches, compared with those of torchvision's detection models."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import numpy
import pytest
import torch
from torchvision.models.detection.transform import GeneralizedRCNNTransform

import meetpoint
from meetpoint import collate, samplers
from meetpoint import transforms as T

from quickstart import png

COUNT = 10


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("varied")
    (folder / "files" / "all").mkdir(parents=True)
    for number in range(COUNT):
        sides = (30 + number * 7 % 50, 30 + number * 11 % 60, 3)
        picture = numpy.random.default_rng(number).integers(0, 256, sides, numpy.uint8)
        (folder / "files" / "all" / f"{number}.png").write_bytes(png(picture))
    return meetpoint.pack(folder / "files", folder / "varied.set").destination


def batches(path: str, **options: Any) -> List[Any]:
    recipe = [
        T.RandomShortestSize([40, 56, 72], max_size=120),
        T.RandomHorizontalFlip(),
        T.ToImage(),
        T.ToDtype("float32", scale=True),
    ]
    with meetpoint.Loader(
        path,
        recipe=recipe,
        batch_size=4,
        output="torch",
        columns=["image", "sample"],
        sampler=samplers.AspectRatio(3),
        **options,
    ) as loader:
        return list(loader)


@pytest.mark.parametrize("multiple", [1, 32])
def test_padded_batches_equal_those_of_torchvisions_detection_models(
    varied: str, multiple: int
) -> None:
    transform = GeneralizedRCNNTransform(40, 120, [0.0] * 3, [1.0] * 3, size_divisible=multiple)
    listed = batches(varied, collate="list")
    padded = batches(varied, collate=collate.Pad(multiple_of=multiple))
    assert len(listed) == len(padded) == 3
    for one, other in zip(listed, padded):
        assert torch.equal(one["sample"], other["sample"])
        pictures = list(one["image"])
        assert len({tuple(it.shape) for it in pictures}) > 1
        expected = transform.batch_images(pictures, size_divisible=multiple)
        assert torch.equal(other["image"], expected)


def test_pictures_of_a_list_view_the_memory_of_the_batch(varied: str) -> None:
    first = batches(varied, collate="list")[0]
    storage = first["image"].values.untyped_storage().data_ptr()
    assert all(it.untyped_storage().data_ptr() == storage for it in first["image"])
