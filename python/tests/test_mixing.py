"""Operations on batches: labels as rows, the same from host and device, and torchvision's and timm's."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

import meetpoint
from meetpoint import transforms as T

CROP = [T.CenterCrop(16), T.ToImage(), T.ToDtype("float32", scale=True)]
MIX = T.RandomChoice([T.MixUp(num_classes=5), T.CutMix(num_classes=5)])

Batches = List[Tuple[np.ndarray, np.ndarray]]


def batches_of(dataset: str, recipe: Any, **options: Any) -> Batches:
    """The batches of an epoch by their first samples."""
    columns = ["image", "label", "sample"]
    with meetpoint.Loader(
        dataset, recipe=recipe, batch_size=8, columns=columns, **options
    ) as loader:
        batches = [(batch["sample"], batch["image"], batch["label"]) for batch in loader]
    ordered = sorted(batches, key=lambda batch: list(batch[0]))
    return [(np.array(images), np.array(labels)) for _, images, labels in ordered]


def test_labels_become_rows_of_float32(dataset: str) -> None:
    recipe = T.Compose([*CROP, T.OneHot(4, label_smoothing=0.1)])
    with meetpoint.Loader(dataset, recipe=recipe, batch_size=8, shuffle=False) as loader:
        for first, (images, labels) in enumerate(loader):
            assert labels.dtype == np.float32 and labels.shape == (len(images), 4)
            classes = (np.arange(len(images)) + 8 * first) // 22
            rows = np.full((len(images), 4), 0.1 / 4, np.float32)
            rows[np.arange(len(images)), classes] = np.float32(1 - 0.1 + 0.1 / 4)
            np.testing.assert_array_equal(labels, rows)


def test_host_and_device_mix_alike(dataset: str) -> None:
    recipe = T.Compose([*CROP, MIX])
    host = batches_of(dataset, recipe, seed=3)
    device = batches_of(dataset, recipe, seed=3, device="emulated", strategy="device-only")
    assert len(host) == len(device) == 9
    for (images, labels), (theirs, rows) in zip(host, device):
        np.testing.assert_array_equal(images, theirs)
        np.testing.assert_array_equal(labels, rows)
        np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-6)
    plain = batches_of(dataset, T.Compose(CROP), seed=3)
    assert any((images != before).any() for (images, _), (before, _) in zip(host, plain))
    assert any(0 < value < 1 for _, labels in host for value in labels.ravel())


def test_a_label_outside_of_the_classes_names_sample_and_remedy(dataset: str) -> None:
    recipe = T.Compose([*CROP, T.MixUp(num_classes=2)])
    with pytest.raises(meetpoint.MeetpointError, match="the label is 2.*num_classes") as refused:
        batches_of(dataset, recipe)
    assert refused.value.cause == "label_not_in_classes"
    assert "set `num_classes` to 3 or more" in str(refused.value.remedy)


def imitation(name: str, **attributes: Any) -> Any:
    """An object that has class and attributes of one of torchvision's."""
    made = type(name, (), {"__module__": "torchvision.transforms.v2._imitation"})()
    vars(made).update(attributes)
    return made


def _find_labels_default_heuristic(inputs: Any) -> Any:
    return inputs


def mixing(name: str, **attributes: Any) -> Any:
    keys = {"alpha": 1.0, "num_classes": 5, "_labels_getter": _find_labels_default_heuristic}
    return imitation(name, **{**keys, **attributes})


def in_torchvision(*after: Any) -> List[Any]:
    crop = imitation("CenterCrop", size=[16, 16])
    floats = imitation("ToDtype", dtype="float32", scale=True)
    return [crop, imitation("ToImage"), floats, *after]


def test_operations_on_batches_of_torchvision_are_translated() -> None:
    choice = imitation(
        "RandomChoice", transforms=[mixing("MixUp"), mixing("CutMix")], p=[0.5, 0.5]
    )
    assert meetpoint.from_torchvision(in_torchvision(choice)) == T.Compose([*CROP, MIX])
    order = imitation("RandomOrder", transforms=[mixing("MixUp", alpha=0.2), mixing("CutMix")])
    both = T.RandomOrder([T.MixUp(alpha=0.2, num_classes=5), T.CutMix(num_classes=5)])
    assert meetpoint.from_torchvision(in_torchvision(order)) == T.Compose([*CROP, both])


@pytest.mark.parametrize(
    "objects, why",
    [
        (in_torchvision(mixing("MixUp", num_classes=None)), "without num_classes"),
        (in_torchvision(mixing("CutMix", _labels_getter=max)), "labels_getter"),
        ([mixing("CutMix")], "before a conversion to a tensor"),
        ([imitation("ToImage"), mixing("MixUp")], "on uint8"),
        (
            in_torchvision(imitation("RandomApply", transforms=[mixing("MixUp")], p=0.5)),
            "makes labels rows in any case",
        ),
        (
            in_torchvision(
                imitation("RandomChoice", transforms=[mixing("MixUp"), imitation("Identity")])
            ),
            "beside others",
        ),
    ],
)
def test_what_torchvision_would_do_otherwise_is_refused(objects: List[Any], why: str) -> None:
    with pytest.raises(meetpoint.RecipeError, match=why):
        meetpoint.from_torchvision(objects)


class Mixup:
    """An object that has class and attributes of timm's."""

    def __init__(self, **attributes: Any) -> None:
        keys: Dict[str, Any] = {
            "mixup_alpha": 0.8,
            "cutmix_alpha": 1.0,
            "cutmix_minmax": None,
            "mix_prob": 1.0,
            "switch_prob": 0.5,
            "mode": "elem",
            "correct_lam": True,
            "label_smoothing": 0.1,
            "num_classes": 10,
            "multi_label": False,
            "mixup_enabled": True,
        }
        vars(self).update({**keys, **attributes})


Mixup.__module__ = "timm.data.mixup"


def test_the_mixup_of_timm_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = T.TimmMixup(0.8, 1.0, mode="elem", num_classes=10)
    assert T.TimmMixup.from_timm(Mixup(), version="1.0.31") == expected
    even = T.TimmMixup(0.8, 1.0, mode="elem", num_classes=10, box="torchvision")
    timm = ModuleType("timm")
    vars(timm)["__version__"] = "1.0.30.dev0"
    monkeypatch.setitem(sys.modules, "timm", timm)
    assert T.TimmMixup.from_timm(Mixup()) == even
    off = T.TimmMixup.from_timm(Mixup(mixup_enabled=False), version="2.0.0")
    assert off == T.TimmMixup(0.8, 1.0, prob=0, mode="elem", num_classes=10)
    bounds = Mixup(cutmix_minmax=[0.2, 0.8], mode="batch")
    bounded = T.TimmMixup(0.8, 1.0, (0.2, 0.8), num_classes=10)
    assert T.TimmMixup.from_timm(bounds, version="1.0.31") == bounded
    assert T.Compose([*CROP, bounded]).output is not None


@pytest.mark.parametrize(
    "mixup, version, why",
    [
        (Mixup(multi_label=True), "1.0.31", "rows already"),
        (Mixup(mode="half"), "1.0.31", "its mode is 'half'"),
        (Mixup(), "newest", "version of timm is 'newest'"),
        (object(), "1.0.31", "its classes are object"),
    ],
)
def test_what_a_recipe_cannot_express_of_timm_is_refused(
    mixup: Any, version: str, why: str
) -> None:
    with pytest.raises(meetpoint.RecipeError, match=why):
        T.TimmMixup.from_timm(mixup, version=version)
