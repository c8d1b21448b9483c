"""timm's data configurations, translated, against ``create_transform``, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import numpy
import pytest
from PIL import Image

import meetpoint
from meetpoint import recipes, transforms as T

data = pytest.importorskip("timm.data")

# (width, height)
SIZES = [(97, 64), (64, 97), (200, 151), (128, 128)]
DEIT: Dict[str, Any] = {
    "input_size": (3, 224, 224),
    "is_training": True,
    "color_jitter": 0.3,
    "auto_augment": "rand-m9-mstd0.5-inc1",
    "interpolation": "bicubic",
    "re_prob": 0.25,
    "re_mode": "pixel",
}

CONFIGS: Dict[str, Dict[str, Any]] = {
    "resolved": data.resolve_data_config({"input_size": (3, 56, 56)}),
    "pretrained": data.resolve_data_config(
        pretrained_cfg={
            "input_size": (3, 48, 48),
            "interpolation": "bilinear",
            "crop_pct": 0.95,
            "mean": (0.5, 0.5, 0.5),
            "std": (0.5, 0.5, 0.5),
        }
    ),
    "squash": {"input_size": (3, 40, 56), "crop_mode": "squash", "crop_pct": 1.0},
    "uint8": {"input_size": 32, "use_prefetcher": True, "interpolation": "lanczos"},
    "not normalised": {"input_size": 32, "normalize": False},
    "not augmented": {"input_size": (3, 32, 48), "is_training": True, "no_aug": True},
    "whole crop, mirrored": {
        "input_size": 36,
        "is_training": True,
        "scale": (1.0, 1.0),
        "ratio": (1.0, 1.0),
        "hflip": 1.0,
        "vflip": 1.0,
        "color_jitter": None,
        "grayscale_prob": 1.0,
        "interpolation": "bicubic",
    },
}


@pytest.fixture(scope="module", name="pictures")
def pictures_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timm") / "pictures"
    folder.mkdir()
    chance = numpy.random.default_rng(3)
    for number, (width, height) in enumerate(SIZES):
        noise = chance.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), numpy.uint8)
        image = Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)
        image.save(folder / f"{number}.png")
    meetpoint.pack(folder, folder.parent / "set")
    return folder


@pytest.mark.parametrize("name", list(CONFIGS))
def test_a_translation_gives_timms_bits(pictures: Path, name: str) -> None:
    config = CONFIGS[name]
    theirs = data.create_transform(**config)
    recipe = T.from_timm(config)
    with meetpoint.Loader(pictures.parent / "set", recipe=recipe, batch_size=1) as loader:
        for number, (images, _) in enumerate(loader):
            # timm's draws of a crop of everything need a square.
            if name.startswith("whole") and SIZES[number][0] != SIZES[number][1]:
                continue
            expected = theirs(Image.open(pictures / f"{number}.png").convert("RGB"))
            assert numpy.array_equal(images[0], numpy.asarray(expected)), (name, number)


def test_deits_configuration_is_the_shipped_recipe() -> None:
    from timm.data import Mixup

    mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=1000)
    translated = list(T.from_timm(DEIT, mixup=mixup))
    shipped = list(recipes.load("deit@1"))
    # The recipe has the rectangles of timm before 1.0.31.
    assert T.Compose(translated[:-1]) == T.Compose(shipped[:-1])
    theirs, ours = (it[-1]._keys for it in (translated, shipped))
    different = {key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key)}
    assert different == {"box"}


def test_every_argument_of_create_transform_is_known() -> None:
    import inspect

    from meetpoint import _timm

    parameters = inspect.signature(data.create_transform).parameters
    missing = set(parameters) - set(_timm._DEFAULTS)
    assert not missing, f"new arguments of timm: {missing}"
    for name, parameter in parameters.items():
        assert _timm._DEFAULTS[name] == parameter.default, name
