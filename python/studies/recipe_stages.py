"""The transforms of torchvision and timm, run with the random parameters that Meetpoint draws."""

from __future__ import annotations

import contextlib
import math
import random
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple
from unittest import mock

import numpy
import torch
from PIL import Image, ImageFilter, ImageOps
from timm.data import auto_augment, create_transform, random_erasing
from timm.data.transforms import RandomResizedCropAndInterpolation
from torchvision import transforms as v1
from torchvision.transforms import v2

from magnitudes import linspace

sys.path.insert(0, str(Path(__file__).parents[2] / "kernels" / "tests" / "golden"))

import batch as golden_batch  # noqa: E402
from make import Draws, random_region  # noqa: E402
from operations import field, normal  # noqa: E402

SEED, BATCH, CLASSES = 20261124, 8, 1000
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BILINEAR, BICUBIC = v1.InterpolationMode.BILINEAR, v1.InterpolationMode.BICUBIC

Stage = Callable[[Any, Draws], Any]
Mix = Callable[[Callable[[int], Draws], torch.Tensor, torch.Tensor], Tuple[Any, Any]]


def given(transform: Any, **functions: Callable[..., Any]) -> Any:
    """Replaces functions of a transform, such as those that draw, while the context is open."""
    it = contextlib.ExitStack()
    for name, function in functions.items():
        it.enter_context(mock.patch.object(transform, name, function))
    return it


def plain(transform: Any) -> Stage:
    return lambda picture, _: transform(picture)


def flip(transform: Any) -> Stage:
    def stage(picture: Any, draws: Draws) -> Any:
        drawn = torch.tensor([draws.uniform()], dtype=torch.float64)
        with mock.patch.object(torch, "rand", lambda *_: drawn):
            return transform(picture)

    return stage


def resized_crop(transform: Any) -> Stage:
    """torchvision's crops of both versions, and timm's."""

    def stage(picture: Any, draws: Draws) -> Any:
        w, h = picture.size
        left, top, width, height = random_region(draws, w, h, transform.scale, transform.ratio)
        if isinstance(transform, v2.RandomResizedCrop):
            made = {"top": top, "left": left, "height": height, "width": width}
            with given(transform, make_params=lambda _: made):
                return transform(picture)
        with given(transform, get_params=lambda *_: (top, left, height, width)):
            return transform(picture)

    return stage


def crop(transform: v1.RandomCrop) -> Stage:
    """The crop of a padded picture."""

    def stage(picture: Any, draws: Draws) -> Any:
        def params(padded: Image.Image, size: Tuple[int, int]) -> Tuple[int, int, int, int]:
            height, width = size
            top = draws.up_to(padded.height - height)
            return top, draws.up_to(padded.width - width), height, width

        with given(transform, get_params=params):
            return transform(picture)

    return stage


def trivial(transform: v2.TrivialAugmentWide) -> Stage:
    def stage(picture: Any, draws: Draws) -> Any:
        def randint(high: int, _: Any) -> torch.Tensor:
            return torch.tensor(draws.up_to(high - 1))

        def rand(*_: Any) -> torch.Tensor:
            # torchvision negates up to 0.5, Meetpoint below.
            return torch.tensor(draws.uniform(), dtype=torch.float64)

        with mock.patch.object(torch, "randint", randint), mock.patch.object(
            torch, "rand", rand
        ), mock.patch.object(torch, "linspace", linspace):
            return transform(picture)

    return stage


def erasing(transform: v2.RandomErasing) -> Stage:
    """torchvision's erasing with a constant."""

    def stage(tensor: torch.Tensor, draws: Draws) -> Any:
        height, width = tensor.shape[-2:]

        def params(_: Any) -> Dict[str, Any]:
            for _try in range(10):
                area = height * width * draws.uniform_in(*transform.scale)
                low, high = (math.log(end) for end in transform.ratio)
                aspect = math.exp(draws.uniform_in(low, high))
                h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
                if h < height and w < width:
                    i = draws.up_to(height - h)
                    j = draws.up_to(width - w)
                    return {"i": i, "j": j, "h": h, "w": w, "v": torch.tensor([0.0])[:, None, None]}
            return {"i": 0, "j": 0, "h": height, "w": width, "v": None}

        drawn = torch.tensor([draws.uniform()], dtype=torch.float64)
        with mock.patch.object(torch, "rand", lambda *_: drawn), given(transform, make_params=params):
            return transform(tensor)

    return stage


def timm_policy(transform: Any) -> Stage:
    """timm's RandAugment, which draws all operations before the first is applied."""

    def stage(picture: Any, draws: Draws) -> Any:
        def choice(operations: Any, count: int, **_: Any) -> Iterator[Any]:
            return (operations[draws.up_to(len(operations) - 1)] for _ in range(count))

        def negate(value: float) -> float:
            return -value if draws.uniform() < 0.5 else value

        def gauss(mean: float, deviation: float) -> float:
            return mean + deviation * normal(draws.word())

        def posterize(it: Image.Image, bits: int) -> Image.Image:
            # Pillow 13 refuses 0 bits, which timm asks for at magnitude 10; before, they were black.
            return it.point([value & ~(2 ** (8 - bits) - 1) for value in range(256)] * 3)

        with mock.patch.object(numpy.random, "choice", choice), mock.patch.object(
            auto_augment, "_randomly_negate", negate
        ), mock.patch.object(random, "gauss", gauss), mock.patch.object(
            random, "random", draws.uniform
        ), mock.patch.object(ImageOps, "posterize", posterize):
            return transform(picture)

    return stage


def timm_erasing(transform: random_erasing.RandomErasing) -> Stage:
    def stage(tensor: torch.Tensor, draws: Draws) -> Any:
        def pixels(_per_pixel: bool, _color: bool, shape: Tuple[int, ...], **_: Any) -> torch.Tensor:
            return torch.from_numpy(field(draws, *shape).astype(numpy.float32))

        with mock.patch.object(random, "random", draws.uniform), mock.patch.object(
            random, "uniform", draws.uniform_in
        ), mock.patch.object(
            random, "randint", lambda low, high: low + draws.up_to(high - low)
        ), mock.patch.object(random_erasing, "_get_pixels", pixels):
            return transform(tensor)

    return stage


def jitter(transform: v1.ColorJitter) -> Stage:
    def stage(picture: Any, draws: Draws) -> Any:
        def params(*bounds: Any) -> Tuple[Any, ...]:
            order = list(range(4))
            for last in (3, 2, 1):
                other = draws.up_to(last)
                order[last], order[other] = order[other], order[last]
            drawn = [None if it is None else draws.uniform_in(*it) for it in bounds]
            return (torch.tensor(order), *drawn)

        with given(transform, get_params=params):
            return transform(picture)

    return stage


def three_augment(picture: Any, draws: Draws) -> Any:
    """The choice of DeiT III's augment.py."""
    chosen = draws.up_to(2)
    if chosen == 0:
        return v1.Grayscale(3)(picture)
    if chosen == 1:
        return ImageOps.solarize(picture)
    return picture.filter(ImageFilter.GaussianBlur(radius=draws.uniform_in(0.1, 2.0)))


STAGES = {
    v1.RandomResizedCrop: resized_crop,
    v2.RandomResizedCrop: resized_crop,
    RandomResizedCropAndInterpolation: resized_crop,
    v1.RandomCrop: crop,
    v1.RandomHorizontalFlip: flip,
    v2.RandomHorizontalFlip: flip,
    v2.TrivialAugmentWide: trivial,
    auto_augment.RandAugment: timm_policy,
    v1.ColorJitter: jitter,
    v1.RandomGrayscale: flip,
    v1.RandomSolarize: flip,
    v2.RandomErasing: erasing,
    random_erasing.RandomErasing: timm_erasing,
}


def stages(*transforms: Any) -> List[Stage]:
    """How each transform is run; a function is one already."""
    found = []
    for transform in transforms:
        make = STAGES.get(type(transform))
        if make is None:
            is_stage = transform is three_augment
            found.append(transform if is_stage else plain(transform))
        else:
            found.append(make(transform))
    return found


def tensor_v1(mean: Any = MEAN, std: Any = STD) -> List[Any]:
    return [v1.ToTensor(), v1.Normalize(mean, std)]


def reference_v1() -> List[Any]:
    """The end of the presets of torchvision's references, first version."""
    return [v1.PILToTensor(), v1.ConvertImageDtype(torch.float), v1.Normalize(MEAN, STD)]


def reference_v2() -> List[Any]:
    return [v2.PILToTensor(), v2.ToDtype(torch.float, scale=True), v2.Normalize(MEAN, STD)]


def of_timm(**keys: Any) -> List[Any]:
    return create_transform(is_training=True, interpolation="bicubic", **keys).transforms


def rsb(size: int, magnitude: int) -> List[Any]:
    return of_timm(input_size=size, auto_augment=f"rand-m{magnitude}-mstd0.5-inc1")


def deit() -> List[Any]:
    return of_timm(
        input_size=224,
        color_jitter=0.3,
        auto_augment="rand-m9-mstd0.5-inc1",
        re_prob=0.25,
        re_mode="pixel",
        re_count=1,
    )


def evaluated(resize: int, crop_to: int, interpolation: Any, end: List[Any]) -> List[Any]:
    return [v1.Resize(resize, interpolation=interpolation), v1.CenterCrop(crop_to), *end]


CIFAR = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))


def originals() -> Dict[str, List[Any]]:
    """The transforms that each recipe restates."""
    return {
        "imagenet-resnet@1": [
            v1.RandomResizedCrop(224, interpolation=BILINEAR),
            v1.RandomHorizontalFlip(),
            *reference_v1(),
        ],
        "imagenet-resnet@2": [
            v2.RandomResizedCrop(176, interpolation=BILINEAR, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.TrivialAugmentWide(interpolation=BILINEAR),
            *reference_v2(),
            v2.RandomErasing(0.1),
        ],
        "imagenet-resnet-eval@1": evaluated(256, 224, BILINEAR, reference_v1()),
        "imagenet-resnet-eval@2": evaluated(232, 224, BILINEAR, reference_v2()),
        "rsb-a1@1": rsb(224, 7),
        "rsb-a2@1": rsb(224, 7),
        "rsb-a3@1": rsb(160, 6),
        "rsb-eval@1": create_transform(224, interpolation="bicubic", crop_pct=0.95).transforms,
        "deit@1": deit(),
        "deit-eval@1": evaluated(256, 224, BICUBIC, tensor_v1()),
        "convnext@1": deit(),
        "convnext-eval@1": evaluated(int(224 / (224 / 256)), 224, BICUBIC, tensor_v1()),
        "deit3@1": [
            RandomResizedCropAndInterpolation(224, scale=(0.08, 1.0), interpolation="bicubic"),
            v1.RandomHorizontalFlip(),
            three_augment,
            v1.ColorJitter(0.3, 0.3, 0.3),
            *tensor_v1(),
        ],
        "deit3-eval@1": evaluated(224, 224, BICUBIC, tensor_v1()),
        "mae@1": [
            v1.RandomResizedCrop(224, scale=(0.2, 1.0), interpolation=BICUBIC),
            v1.RandomHorizontalFlip(),
            *tensor_v1(),
        ],
        "cifar@1": [v1.RandomCrop(32, padding=4), v1.RandomHorizontalFlip(), *tensor_v1(*CIFAR)],
        "cifar-eval@1": tensor_v1(*CIFAR),
    }


def mixes() -> Dict[str, Mix]:
    """The operations on batches, each with the random parameters of its number in the recipe."""

    def timm_mixup(alpha: float, smoothing: float) -> Mix:
        keys = {"mixup_alpha": alpha, "cutmix_alpha": 1.0, "label_smoothing": smoothing}
        return lambda draws, x, y: golden_batch.timm(keys, True, False, draws(0), x, y)

    def torchvision_choice(draws: Callable[[int], Draws], x: Any, y: Any) -> Tuple[Any, Any]:
        # torchvision's RandomChoice([MixUp(0.2), CutMix(1)]).
        cut = draws(0).uniform() >= 0.5
        name, alpha, number = ("CutMix", 1.0, 2) if cut else ("MixUp", 0.2, 1)
        return golden_batch.torchvision(name, alpha, draws(number), x, y)

    return {
        "imagenet-resnet@2": torchvision_choice,
        "rsb-a1@1": timm_mixup(0.2, 0.1),
        "rsb-a2@1": timm_mixup(0.1, 0.0),
        "rsb-a3@1": timm_mixup(0.1, 0.0),
        "deit@1": timm_mixup(0.8, 0.1),
        "convnext@1": timm_mixup(0.8, 0.1),
        "deit3@1": timm_mixup(0.8, 0.0),
    }


def blur(transform: v1.GaussianBlur) -> Stage:
    def stage(picture: Any, draws: Draws) -> Any:
        with given(transform, get_params=lambda low, high: draws.uniform_in(low, high)):
            return transform(picture)

    return stage


STAGES[v1.GaussianBlur] = blur


def note(result: Dict[str, Any], ours: Any, theirs: Any, bound: float) -> None:
    """Counts the values that differ, and those that differ by more than ``bound``."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    apart = numpy.abs(ours.astype(numpy.float64) - theirs)
    result["values"] += ours.size
    result["differing"] += int((apart > 0).sum())
    result["wrong"] += int((apart > bound * 1.001).sum())
    result["largest"] = max(result["largest"], float(apart.max(initial=0)))
