"""Translated transforms against torchvision's own on PIL images, bit for bit."""

from __future__ import annotations

import importlib.util
import inspect
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy
import pytest
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms import transforms as v1

import meetpoint

# (width, height): smaller and larger than what is cut out, odd and even.
SIZES = [(97, 64), (64, 97), (200, 151), (33, 41), (128, 128), (61, 300)]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

BICUBIC, NEAREST = InterpolationMode.BICUBIC, InterpolationMode.NEAREST

PIPELINES: Dict[str, Callable[[], List[Any]]] = {
    "v1 ToTensor": lambda: [v1.CenterCrop(32), v1.ToTensor()],
    "v1 ToTensor, Normalize": lambda: [v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)],
    "v2 ToTensor": lambda: [v2.CenterCrop(32), v2.ToTensor()],
    "v1 PILToTensor": lambda: [v1.CenterCrop(32), v1.PILToTensor()],
    "v1 ConvertImageDtype": lambda: [
        v1.CenterCrop(32),
        v1.PILToTensor(),
        v1.ConvertImageDtype(torch.float32),
        v1.Normalize(MEAN, STD),
    ],
    "v1 ConvertImageDtype to float16": lambda: [
        v1.CenterCrop(32),
        v1.PILToTensor(),
        v1.ConvertImageDtype(torch.float16),
    ],
    "v2 ConvertImageDtype": lambda: [
        v2.CenterCrop(32),
        v2.PILToTensor(),
        v2.ConvertImageDtype(torch.float32),
    ],
    "v2 ToDtype scaled": lambda: [
        v2.CenterCrop(32),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ],
    "v2 ToDtype to float16": lambda: [
        v2.CenterCrop(32),
        v2.ToImage(),
        v2.ToDtype(torch.float16, scale=True),
        v2.Normalize(MEAN, STD),
    ],
    "v2 ToDtype as it is": lambda: [v2.CenterCrop(32), v2.ToImage(), v2.ToDtype(torch.float32)],
    "Resize": lambda: [v2.Resize([24, 40]), v2.ToImage()],
    "Resize without antialias": lambda: [v2.Resize([24, 40], antialias=False), v2.ToImage()],
    "v1 Resize without antialias": lambda: [v1.Resize([24, 40], antialias=False), v1.ToTensor()],
    "Resize without a word on antialias": lambda: [v2.Resize([24, 40], antialias=None), v2.ToImage()],
    "Resize bicubic": lambda: [v2.Resize((50, 20), BICUBIC, antialias=False), v2.ToImage()],
    "Resize nearest": lambda: [v2.Resize((50, 20), NEAREST), v2.ToImage()],
    "Resize lanczos": lambda: [v2.Resize((50, 20), InterpolationMode.LANCZOS), v2.ToImage()],
    "Resize box": lambda: [v2.Resize((50, 20), InterpolationMode.BOX), v2.ToImage()],
    "Resize hamming": lambda: [v2.Resize((50, 20), InterpolationMode.HAMMING), v2.ToImage()],
    "Resize with max_size": lambda: [v2.Resize(36, max_size=50), v2.CenterCrop(32), v2.ToImage()],
    "Pad": lambda: [v2.Pad((1, 2, 3, 4), (9, 8, 7)), v2.CenterCrop(50), v2.ToImage()],
    "Pad reflect": lambda: [v2.Pad((70, 2), padding_mode="reflect"), v2.CenterCrop(99), v2.ToImage()],
    "RandomRotation": lambda: [v2.RandomRotation((33, 33)), v2.CenterCrop(50), v2.ToImage()],
    "RandomRotation with expand": lambda: [
        v2.RandomRotation((-70, -70), InterpolationMode.BILINEAR, True, fill=(1, 2, 3)),
        v2.CenterCrop(50),
        v2.ToImage(),
    ],
    "RandomAffine": lambda: [
        v2.RandomAffine((9, 9), None, (1.5, 1.5), (8, 8, -4, -4), BICUBIC, 7, [3, 4]),
        v2.CenterCrop(50),
        v2.ToImage(),
    ],
    "RandomCrop of all": lambda: [v2.CenterCrop(30), v2.RandomCrop(38, 4), v2.ToImage()],
    "Resize of the shorter side": lambda: [v2.Resize(36), v2.CenterCrop(32), v2.ToImage()],
    "Resize of [side]": lambda: [v1.Resize([36]), v1.CenterCrop([30]), v1.PILToTensor()],
    "CenterCrop with padding": lambda: [v2.CenterCrop((111, 80)), v2.ToImage()],
    "mirrored": lambda: [v2.CenterCrop(31), v2.RandomHorizontalFlip(1.0), v2.ToImage()],
    "not mirrored": lambda: [v1.CenterCrop(31), v1.RandomHorizontalFlip(0.0), v1.ToTensor()],
    "upside down": lambda: [v2.CenterCrop(31), v2.RandomVerticalFlip(1.0), v2.ToImage()],
    "upside down, then resized": lambda: [
        v1.RandomVerticalFlip(1.0),
        v1.Resize([24, 40]),
        v1.PILToTensor(),
    ],
    "Grayscale": lambda: [v2.CenterCrop(31), v2.Grayscale(), v2.ToImage()],
    "Grayscale of 3": lambda: [v1.Grayscale(3), v1.Resize([24, 40]), v1.ToTensor()],
    "Grayscale, then colours": lambda: [
        v2.Grayscale(),
        v2.CenterCrop(31),
        v2.ColorJitter(saturation=(1.5, 1.5), hue=(0.2, 0.2)),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.45], [0.225]),
    ],
    "RandomGrayscale": lambda: [v2.CenterCrop(31), v2.RandomGrayscale(1.0), v2.ToImage()],
    "brightness": lambda: [v2.ColorJitter((1.7, 1.7)), v2.CenterCrop(31), v2.ToImage()],
    "contrast": lambda: [v2.ColorJitter(0, (0.3, 0.3)), v2.CenterCrop(31), v2.ToImage()],
    "saturation": lambda: [v1.ColorJitter(0, 0, (2.5, 2.5)), v1.CenterCrop(31), v1.PILToTensor()],
    "hue": lambda: [v2.CenterCrop(31), v2.ColorJitter(hue=(-0.15, -0.15)), v2.ToImage()],
    "RGB and Identity": lambda: [v2.RGB(), v2.Identity(), v2.CenterCrop(8), v2.ToImage()],
}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEGs with noise on a gradient."""
    folder = tmp_path_factory.mktemp("torchvision") / "pictures"
    folder.mkdir()
    for number, (width, height) in enumerate(SIZES):
        noise = numpy.random.default_rng(number).normal(0, 40, (height, width, 3))
        ramp = numpy.linspace(0, 255, width)[None, :, None]
        picture = Image.fromarray(numpy.clip(ramp + noise, 0, 255).astype(numpy.uint8))
        picture.save(folder / f"{number}.jpg", quality=90)
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PIPELINES)
def test_a_translation_gives_torchvisions_bits(
    name: str, photographs: Path, tmp_path: Path
) -> None:
    transforms = PIPELINES[name]()
    meetpoint.pack(photographs, tmp_path / "a.set")
    with meetpoint.Loader(
        tmp_path / "a.set", recipe=transforms, batch_size=len(SIZES), output="torch"
    ) as loader:
        ((images, _),) = list(loader)
    for number in range(len(SIZES)):
        picture: Any = Image.open(photographs / f"{number}.jpg").convert("RGB")
        for transform in transforms:
            picture = transform(picture)
        assert images[number].dtype == picture.dtype
        assert torch.equal(images[number], torch.as_tensor(picture)), (name, SIZES[number])


@pytest.mark.parametrize(
    "transforms",
    [
        lambda: [v2.ToImage(), v2.Resize([8, 8], antialias=True)],
        lambda: [v1.ToTensor(), v1.Resize([8, 8], antialias=False)],
        lambda: [v2.ToDtype(torch.float32, scale=True), v2.ToImage()],
        lambda: [v2.Resize(None, max_size=8), v2.ToImage()],
        lambda: [v2.Resize([8, 8], InterpolationMode.NEAREST_EXACT), v2.ToImage()],
        lambda: [v2.GaussianBlur(3), v2.ToImage()],
        lambda: [v2.ToImage(), v2.ColorJitter(0.5)],
    ],
)
def test_what_has_no_exact_translation_is_refused(transforms: Callable[[], List[Any]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(meetpoint.RecipeError):
            meetpoint.from_torchvision(transforms())


def test_the_nearest_blur_is_within_1_of_torchvisions(photographs: Path, tmp_path: Path) -> None:
    transforms = [v2.CenterCrop(31), v2.GaussianBlur((5, 7), (1.3, 1.3)), v2.ToImage()]
    meetpoint.pack(photographs, tmp_path / "a.set")
    recipe = meetpoint.from_torchvision(transforms, nearest=["GaussianBlur"])
    with meetpoint.Loader(
        tmp_path / "a.set", recipe=recipe, batch_size=len(SIZES), output="torch"
    ) as loader:
        ((images, _),) = list(loader)
    for number in range(len(SIZES)):
        picture: Any = Image.open(photographs / f"{number}.jpg").convert("RGB")
        for transform in transforms:
            picture = transform(picture)
        apart = images[number].int() - torch.as_tensor(picture).int()
        assert int(apart.abs().max()) <= 1


def test_the_table_has_every_class_of_torchvision() -> None:
    script = Path(__file__).parents[2] / "scripts" / "torchvision_table.py"
    spec = importlib.util.spec_from_file_location("torchvision_table", script)
    assert spec is not None and spec.loader is not None
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    there = {name for name, it in vars(v2).items() if inspect.isclass(it)}
    assert set(table.classes()) == there - set(table.NOT_TRANSFORMS)
