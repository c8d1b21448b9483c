"""Views: several pictures of one sample, the same from host and device; crops of one picture."""

from __future__ import annotations

import pickle
from typing import Any, Dict, List

import numpy as np
import pytest

import meetpoint
from meetpoint import transforms as T

DINO = T.Compose(
    [
        T.Views(
            {
                "global": T.View(
                    [
                        T.RandomResizedCrop(224, scale=(0.32, 1.0)),
                        T.RandomHorizontalFlip(),
                        T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
                        T.ToImage(),
                    ],
                    count=2,
                ),
                "local": T.View(
                    [T.RandomResizedCrop(96, scale=(0.05, 0.32)), T.ToImage()], count=8
                ),
            }
        )
    ]
)
SIMCLR = T.Compose(
    [
        T.Resize(64),
        T.Views({"view": T.View([T.RandomResizedCrop(32), T.ToTensor()], count=2)}),
    ]
)


def batches_of(dataset: str, recipe: Any, **options: Any) -> Dict[int, Dict[str, np.ndarray]]:
    """The samples of an epoch by their numbers."""
    columns = [*recipe.views, "label", "sample"]
    found: Dict[int, Dict[str, np.ndarray]] = {}
    with meetpoint.Loader(
        dataset, recipe=recipe, batch_size=8, columns=columns, **options
    ) as loader:
        for batch in loader:
            for row, sample in enumerate(batch["sample"]):
                found[int(sample)] = {name: np.array(batch[name][row]) for name in columns}
    return found


@pytest.mark.parametrize("recipe", [DINO, SIMCLR], ids=["dino", "simclr"])
def test_host_and_device_prepare_the_same_views(dataset: str, recipe: T.Compose) -> None:
    host = batches_of(dataset, recipe, seed=3)
    device = batches_of(dataset, recipe, seed=3, device="emulated", strategy="device-only")
    assert len(host) > 60 and host.keys() == device.keys()
    for sample, columns in host.items():
        for name, values in columns.items():
            np.testing.assert_array_equal(values, device[sample][name])
    first = next(iter(recipe.views))
    pictures = host[0][first]
    assert pictures.shape[0] == 2 and (pictures[0] != pictures[1]).any()


def test_batches_are_dictionaries_of_all_views_and_labels(dataset: str) -> None:
    with meetpoint.Loader(dataset, recipe=DINO, batch_size=8) as loader:
        batch = next(iter(loader))
    assert list(batch) == ["global", "local", "label"]
    assert batch["global"].shape == (8, 2, 3, 224, 224)
    assert batch["local"].shape == (8, 8, 3, 96, 96)
    assert batch["label"].shape == (8,)


def test_views_that_are_left_out_do_not_change_the_others(dataset: str) -> None:
    def local(columns: List[str]) -> np.ndarray:
        with meetpoint.Loader(
            dataset, recipe=DINO, batch_size=8, columns=columns, shuffle=False
        ) as loader:
            return np.array(next(iter(loader))["local"])

    np.testing.assert_array_equal(local(["local"]), local(["global", "local"]))


def test_the_first_picture_is_that_of_the_recipe_without_views(dataset: str) -> None:
    own = [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToImage()]
    views = T.Compose([T.Views({"x": T.View(own, count=3)})])
    with meetpoint.Loader(dataset, recipe=views, batch_size=8, shuffle=False) as loader:
        several = np.array(next(iter(loader))["x"])
    with meetpoint.Loader(dataset, recipe=T.Compose(own), batch_size=8, shuffle=False) as loader:
        alone, _ = next(iter(loader))
        np.testing.assert_array_equal(several[:, 0], alone)


def test_crops_are_an_axis_of_the_image(dataset: str) -> None:
    recipe = T.Compose([T.Resize((40, 40)), T.TenCrop(32, vertical_flip=True), T.ToImage()])
    with meetpoint.Loader(dataset, recipe=recipe, batch_size=8, shuffle=False) as loader:
        images, labels = next(iter(loader))
        crops = np.array(images)
    assert crops.shape == (8, 10, 3, 32, 32) and labels.shape == (8,)
    whole = T.Compose([T.Resize((40, 40)), T.ToImage()])
    with meetpoint.Loader(dataset, recipe=whole, batch_size=8, shuffle=False) as loader:
        pictures = np.array(next(iter(loader))[0])
    upside_down = pictures[..., ::-1, :]
    for first, source in ((0, pictures), (5, upside_down)):
        for offset, (top, left) in enumerate([(0, 0), (0, 8), (8, 0), (8, 8), (4, 4)]):
            expected = source[..., top : top + 32, left : left + 32]
            np.testing.assert_array_equal(crops[:, first + offset], expected)


@pytest.mark.parametrize("recipe", [DINO, SIMCLR], ids=["dino", "simclr"])
def test_a_recipe_with_views_reads_back(recipe: T.Compose) -> None:
    again = T.Compose.from_toml(recipe.to_toml())
    assert again == recipe and again.to_toml() == recipe.to_toml()
    assert {name: view.count for name, view in again.views.items()} == {
        name: view.count for name, view in recipe.views.items()
    }
    assert T.Compose(list(recipe)) == recipe
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert repr(recipe).count("View(") == len(recipe.views)


def test_shapes_are_known_by_column() -> None:
    assert DINO.output is None
    assert {name: it and it["shape"] for name, it in DINO.outputs.items()} == {
        "global": [2, 3, 224, 224],
        "local": [8, 3, 96, 96],
    }
    crops = T.Compose([T.FiveCrop(8)])
    assert crops.output == {"shape": [5, 8, 8, 3], "dtype": "uint8", "layout": "NHWC"}


def test_what_cannot_be_with_views_is_refused_by_name() -> None:
    view = {"x": [T.CenterCrop(8)]}
    for transforms, words in [
        ([T.Views(view), T.ToImage()], "last element"),
        ([T.Compose([T.Views(view)])], "inside of another Compose has views"),
        ([T.ToImage(), T.Views(view)], "views begin with an image"),
        ([T.FiveCrop(8), T.Views(view)], "views begin with one"),
        ([T.Views({"x": [T.CenterCrop(8), T.OneHot(3)]})], 'view "x".*OneHot'),
        ([T.Views({"label": [T.CenterCrop(8)]})], '"label"'),
        ([T.Views({"x": T.View([T.CenterCrop(8)], count=0)})], "`count` holds 0"),
    ]:
        with pytest.raises(meetpoint.RecipeError, match=words):
            T.Compose(transforms)
    with pytest.raises(meetpoint.RecipeError, match="mask"):
        T.Compose([T.Views(view)], targets={"mask": T.Mask()})
    with pytest.raises(meetpoint.RecipeError, match="no views"):
        T.Views({})
    with pytest.raises(meetpoint.RecipeError, match="count is '2'"):
        T.View([T.CenterCrop(8)], count="2")  # type: ignore[arg-type]


def test_a_column_that_is_no_view_is_refused(dataset: str) -> None:
    with pytest.raises(meetpoint.MeetpointError, match="global, local"):
        meetpoint.Loader(dataset, recipe=DINO, batch_size=8, columns=["image"])
    shapeless = T.Compose([T.Views({"x": [T.Resize(8)]})])
    with pytest.raises(meetpoint.RecipeError, match='view "x" has no fixed shape'):
        meetpoint.Loader(dataset, recipe=shapeless, batch_size=8)
