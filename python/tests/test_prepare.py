"""A prepared dataset: the same batches as its source, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import numpy
import pytest
from conftest import COUNT

import meetpoint
from meetpoint import transforms as T

RECIPE = T.Compose([T.Resize(20), T.RandomCrop(16), T.RandomHorizontalFlip()])


def _batches(dataset: Any, **settings: Any) -> List[Any]:
    with meetpoint.Loader(
        str(dataset), recipe=RECIPE, batch_size=16, shuffle=True, seed=4, **settings
    ) as loader:
        return [numpy.array(images) for images, _ in loader]


def test_a_loader_executes_only_the_rest_with_the_same_bits(dataset: str, tmp_path: Path) -> None:
    to = tmp_path / "prepared.set"
    steps: List[Any] = []
    prepared = meetpoint.prepare(
        RECIPE, dataset, to, cut="resize", codec="lz4", progress=lambda *it: steps.append(it)
    )
    assert (prepared.samples, prepared.cut, prepared.unreadable) == (COUNT, "2-resize", [])
    assert prepared.prepared["operations"] == 2 and prepared.prepared["codec"] == "lz4"
    assert steps[-1][:2] == (COUNT, COUNT)
    expected = _batches(dataset)
    for workers in (0, 2):
        for one, other in zip(expected, _batches(to, workers=workers)):
            assert numpy.array_equal(one, other)
    assert meetpoint.verify(to, deep=True).is_sound


def test_what_cannot_be_prepared_or_continued_is_refused(dataset: str, tmp_path: Path) -> None:
    to = tmp_path / "prepared.set"
    with pytest.raises(meetpoint.SettingError, match="`random_crop`, has random parameters"):
        meetpoint.prepare(RECIPE, dataset, to, cut=3)
    with pytest.raises(meetpoint.SettingError):
        meetpoint.prepare(RECIPE, dataset, to, cut=2, codec="lz4", lossy_jpeg=90)
    with pytest.raises(meetpoint.SettingError):
        meetpoint.prepare(RECIPE, dataset, to, cut=2, codec="lz5")  # type: ignore[arg-type]
    meetpoint.prepare(RECIPE, dataset, to, cut=2)
    with pytest.raises(meetpoint.PackError) as exists:
        meetpoint.prepare(RECIPE, dataset, to, cut=2)
    assert exists.value.cause == "exists"
    other = T.Compose([T.Resize(24), T.RandomCrop(16)])
    with pytest.raises(meetpoint.RecipeError, match="operation 2 was `resize"):
        meetpoint.Loader(str(to), recipe=other, batch_size=4)
