"""Recipes that come with Meetpoint: found by name, changed by keys, taken by a loader."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import meetpoint
from meetpoint import recipes, transforms as T


def test_every_recipe_loads_and_round_trips() -> None:
    listed = recipes.list()
    names = [str(it) for it in listed]
    assert {"imagenet-resnet@1", "imagenet-resnet@2", "deit@1", "rsb-a3@1"} <= set(names)
    for recipe in listed:
        made = recipe.load()
        assert made == recipes.load(str(recipe)) == T.Compose.load(str(recipe))
        assert T.Compose.from_toml(made.to_toml()) == made
        assert all(made.outputs.values()) and recipe.about and recipe.source


def test_a_loader_takes_a_name_in_place_of_a_recipe(dataset: str) -> None:
    with meetpoint.Loader(dataset, recipe="imagenet-resnet-eval@1", batch_size=4) as loader:
        images, _ = next(iter(loader))
    assert (images.shape, images.dtype) == ((4, 3, 224, 224), numpy.float32)


def test_a_key_is_changed_in_every_operation_that_has_it() -> None:
    recipe = recipes.load("imagenet-resnet@2", num_classes=7)
    assert recipe.to_toml().count("num_classes = 7") == 2
    small = recipes.load("deit-eval", **{"resize.size": 40, "center_crop.size": (32, 48)})
    assert small.output is not None and small.output["shape"] == [3, 32, 48]


def test_a_key_is_changed_in_one_view() -> None:
    changes = {"local.random_resized_crop.size": 64, "local.count": 6}
    outputs = recipes.load("dinov2", **changes).outputs
    assert {name: it and it["shape"] for name, it in outputs.items()} == {
        "global_1": [3, 224, 224],
        "global_2": [3, 224, 224],
        "local": [6, 3, 64, 64],
    }


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("imagenet_resnet", {}, "did you mean `imagenet-resnet`"),
        ("deit@3", {}, "the latest is deit@1"),
        ("deit-eval", {"size": 40}, "several operations have the key `size`: resize, center_crop"),
        ("deit", {"num_clases": 10}, "did you mean `num_classes`"),
        ("deit", {"num_classes": 0}, "`num_classes`"),
        ("dinov2", {"size": 64}, "name the view, such as global_1.random_resized_crop.size"),
        ("simclr", {"views.count": 3}, "did you mean `view`"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_what_there_is(
    name: str, changes: "dict[str, int]", words: str
) -> None:
    with pytest.raises(meetpoint.RecipeError, match=words):
        recipes.load(name, **changes)


def test_a_file_is_not_silently_preferred_to_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = T.Compose([T.CenterCrop(4)])
    Path("deit").write_text(plain.to_toml())
    with pytest.raises(meetpoint.RecipeError, match="both a file and the shipped recipe") as both:
        T.Compose.load("deit")
    assert both.value.cause == "ambiguous_recipe"
    assert T.Compose.load("./deit") == plain
