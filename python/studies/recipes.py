"""Do the shipped recipes give the pixels of the originals, for the same random parameters?

    python recipes.py [--pictures 32] [--epochs 2] [--folder FOLDER] [--only deit] [--json FILE]

The originals are the transforms of torchvision and timm, composed as the training scripts that the
recipes name compose them. They draw no random parameters of their own: each is given those that
Meetpoint draws, computed here in Python after docs/formats.md. Pictures, labels, boxes and masks of
whole batches are compared bit for bit. Without a folder of JPEGs, pictures are made; boxes and masks
are made in any case. Recipes that blur may differ by 1 of 255, as docs/torchvision.md says of
GaussianBlur. Needs torch, torchvision 0.29.2, timm 1.0.31, scipy, pyarrow, Pillow 13.0.0 and a
checkout. Exit code 1 where a value differs by more.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple
from unittest import mock

import numpy
import timm
import torch
import torchvision
from PIL import Image, ImageFilter, ImageOps
from timm.data import auto_augment, create_transform, random_erasing
from timm.data.transforms import RandomResizedCropAndInterpolation
from torchvision import transforms as v1, tv_tensors
from torchvision.transforms import v2

import meetpoint
from magnitudes import linspace
from meetpoint import recipes

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
    """The result of a transform whose functions that draw are replaced."""
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
    """The operations on batches; random parameters are those of the operations' numbers."""

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


def number_of_first(name: str) -> Dict[int, int]:
    """The number of Meetpoint's operation for each transform of the original, by position.

    Numbers count from 0 with ``decode``. An original's conversion to a tensor is one transform and
    two operations, or two and two.
    """
    operations = [it._name for it in recipes.load(name)]
    names = {
        v1.RandomResizedCrop: "random_resized_crop",
        v2.RandomResizedCrop: "random_resized_crop",
        RandomResizedCropAndInterpolation: "random_resized_crop",
        v1.RandomCrop: "random_crop",
        v1.RandomHorizontalFlip: "random_horizontal_flip",
        v2.RandomHorizontalFlip: "random_horizontal_flip",
        v2.TrivialAugmentWide: "trivial_augment_wide",
        auto_augment.RandAugment: "timm_rand_augment",
        v1.ColorJitter: "color_jitter",
        v2.RandomErasing: "random_erasing",
        random_erasing.RandomErasing: "random_erasing",
    }
    found = {}
    for at, transform in enumerate(originals()[name]):
        operation = "three_augment" if transform is three_augment else names.get(type(transform))
        if operation is not None:
            found[at] = operations.index(operation)
    return found


def make_pictures(folder: Path, count: int, sides: Tuple[int, int]) -> None:
    """Gradients, rectangles and noise: every operation changes something."""
    chance = numpy.random.default_rng(SEED)
    for number in range(count):
        width, height = (int(chance.integers(*sides)) for _ in range(2))
        y, x = numpy.mgrid[0:height, 0:width]
        pixels = numpy.stack([x * 255 // width, y * 255 // height, (x + y) * 3 % 256], -1)
        pixels = pixels + chance.normal(0, 12, pixels.shape)
        for _ in range(4):
            top, left = int(chance.integers(0, height)), int(chance.integers(0, width))
            pixels[top : top + height // 4, left : left + width // 4] = chance.integers(0, 256, 3)
        picture = Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))
        place = folder / str(number % 3) / f"{number:05}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        picture.save(place, quality=92)


def applied(number: int, p: float, inner: List[Tuple[int, Any]]) -> "Numbered":
    """torchvision's RandomApply, by the numbers of the operation and of those in it."""

    def stage(picture: Any, draws: Callable[[int], Draws]) -> Any:
        def of(number: int, transform: Any) -> Any:
            run = STAGES[type(transform)](transform)
            return lambda it: run(it, draws(number))

        apply = v1.RandomApply([of(*it) for it in inner], p=p)
        drawn = torch.tensor([draws(number).uniform()], dtype=torch.float64)
        with mock.patch.object(torch, "rand", lambda *_: drawn):
            return apply(picture)

    return stage


def blur(transform: v1.GaussianBlur) -> Stage:
    def stage(picture: Any, draws: Draws) -> Any:
        with given(transform, get_params=lambda low, high: draws.uniform_in(low, high)):
            return transform(picture)

    return stage


Numbered = Callable[[Any, Callable[[int], Draws]], Any]


def numbered(number: int, transform: Any) -> Numbered:
    run = STAGES[type(transform)](transform)
    return lambda picture, draws: run(picture, draws(number))


def after(transforms: List[Any]) -> Numbered:
    return lambda picture, _: v1.Compose(transforms)(picture)


def dinov2_view(size: int, scale: Tuple[float, float], blurred: float, solarized: float) -> List[Numbered]:
    """One crop of DataAugmentationDINO of dinov2/data/augmentations.py.

    ``blurred`` is what its ``GaussianBlur`` is given: the probability that it does nothing.
    """
    found = [
        numbered(1, v1.RandomResizedCrop(size, scale=scale, interpolation=BICUBIC)),
        numbered(2, v1.RandomHorizontalFlip(p=0.5)),
        applied(3, 0.8, [(4, v1.ColorJitter(0.4, 0.4, 0.2, 0.1))]),
        numbered(5, v1.RandomGrayscale(p=0.2)),
    ]
    if blurred < 1:
        found.append(applied(6, 1 - blurred, [(7, v1.GaussianBlur(9, sigma=(0.1, 2.0)))]))
    if solarized:
        found.append(numbered(8, v1.RandomSolarize(128, p=solarized)))
    return [*found, after(tensor_v1())]


def simclr_view() -> List[Numbered]:
    """SimCLR's transforms, as they are restated for torchvision."""
    return [
        numbered(1, v1.RandomResizedCrop(224, interpolation=BICUBIC)),
        numbered(2, v1.RandomHorizontalFlip(p=0.5)),
        applied(3, 0.8, [(4, v1.ColorJitter(0.8, 0.8, 0.8, 0.2))]),
        numbered(5, v1.RandomGrayscale(p=0.2)),
        applied(6, 0.5, [(7, v1.GaussianBlur(23, sigma=(0.1, 2.0)))]),
        after([v1.ToTensor()]),
    ]


STAGES[v1.GaussianBlur] = blur

VIEWS: Dict[str, Dict[str, Tuple[int, List[Numbered]]]] = {
    "dinov2@1": {
        "global_1": (1, dinov2_view(224, (0.32, 1.0), 1.0, 0)),
        "global_2": (1, dinov2_view(224, (0.32, 1.0), 0.1, 0.2)),
        "local": (8, dinov2_view(96, (0.05, 0.32), 0.5, 0)),
    },
    "simclr@1": {"view": (2, simclr_view())},
}
# Values of 255 by which blurred pictures may differ, and what one is as a value of the column.
BLURRED = {"global_2": 1 / 255 / min(STD), "local": 1 / 255 / min(STD), "view": 1 / 255}


def compare_views(name: str, dataset: str, files: List[Path], epochs: int) -> Dict[str, Any]:
    result: Dict[str, Any] = {"values": 0, "differing": 0, "largest": 0.0, "labels": 0, "wrong": 0}
    with meetpoint.Loader(dataset, recipe=name, batch_size=BATCH, seed=SEED) as loader:
        for epoch in range(epochs):
            for batch, columns in enumerate(loader):
                first = 0
                for column, (count, run) in VIEWS[name].items():
                    ours = numpy.asarray(columns[column])
                    ours = ours.reshape(-1, count, *ours.shape[-3:])
                    for at in range(len(ours)):
                        sample = batch * BATCH + at
                        picture = Image.open(files[sample]).convert("RGB")
                        for view in range(count):
                            key = sample | first + view << 48

                            def draws(number: int, key: int = key) -> Draws:
                                return Draws(SEED, epoch, key, number)

                            it: Any = picture
                            for stage in run:
                                it = stage(it, draws)
                            note(result, ours[at, view], it.numpy(), BLURRED.get(column, 0.0))
                    first += count
    return result


def note(result: Dict[str, Any], ours: Any, theirs: Any, bound: float) -> None:
    """Counts the values that differ, and those that differ by more than may be."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    apart = numpy.abs(ours.astype(numpy.float64) - theirs)
    result["values"] += ours.size
    result["differing"] += int((apart > 0).sum())
    result["wrong"] += int((apart > bound * 1.001).sum())
    result["largest"] = max(result["largest"], float(apart.max(initial=0)))


def photometric(transform: v2.RandomPhotometricDistort) -> Any:
    """The random parameters of RandomPhotometricDistort by Meetpoint's draws."""

    def params(draws: Draws) -> Dict[str, Any]:
        drawn: Dict[str, Any] = {}
        for key in ("brightness", "contrast", "saturation", "hue"):
            low, high = getattr(transform, key)
            is_changed = draws.uniform() < transform.p
            drawn[f"{key}_factor"] = draws.uniform_in(low, high) if is_changed else None
        drawn["contrast_before"] = draws.uniform() < 0.5
        order = None
        if draws.uniform() < transform.p:
            order = list(range(3))
            for last in (2, 1):
                other = draws.up_to(last)
                order[last], order[other] = order[other], order[last]
        drawn["channel_permutation"] = None if order is None else torch.tensor(order)
        return drawn

    return params


def zoom_out(draws: Draws, inputs: Any) -> Dict[str, Any]:
    ratio = draws.uniform_in(1.0, 4.0)
    h, w = v2.functional.get_size(inputs[0])
    wide, high = int(w * ratio), int(h * ratio)
    left = int((wide - w) * draws.uniform())
    top = int((high - h) * draws.uniform())
    return {"padding": [left, top, wide - w - left, high - h - top]}


def detected(picture: Image.Image, boxes: Any, draws: Callable[[int], Draws]) -> Tuple[Any, Any, Any]:
    """DetectionPresetTrain("ssd") of references/detection/presets.py, and the resize of SSD300."""
    target = {
        "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=picture.size[::-1]),
        "labels": torch.arange(len(boxes)),
    }
    it: Any = (picture, target)
    distort = v2.RandomPhotometricDistort()
    params = photometric(distort)
    with given(distort, make_params=lambda _: params(draws(1))):
        it = distort(*it)
    zoom = v2.RandomZoomOut(fill=[123, 117, 104])
    stream = draws(2)
    drawn = torch.tensor([stream.uniform()], dtype=torch.float64)
    with given(zoom, make_params=lambda flat: zoom_out(stream, flat)), mock.patch.object(
        torch, "rand", lambda *_: drawn
    ):
        it = zoom(*it)
    iou = v2.RandomIoUCrop()
    stream = draws(3)
    # torchvision draws the overlap by randint(0, 7), sides by rand(1) in a pair of calls.
    with mock.patch.object(
        torch, "randint", lambda *, low, high, size: torch.tensor([stream.up_to(high - 1)])
    ), mock.patch.object(
        torch, "rand", lambda count: torch.tensor(
            [stream.uniform() for _ in range(count)], dtype=torch.float64
        )
    ):
        it = iou(*it)
    flipped = v2.RandomHorizontalFlip(0.5)
    drawn = torch.tensor([draws(4).uniform()], dtype=torch.float64)
    with mock.patch.object(torch, "rand", lambda *_: drawn):
        it = flipped(*it)
    it = v2.Resize((300, 300))(*it)
    picture, target = v2.SanitizeBoundingBoxes(min_size=1)(*it)
    image = v1.ConvertImageDtype(torch.float)(v1.PILToTensor()(picture))
    return image, target["boxes"], target["labels"]


def compare_detection(name: str, dataset: str, files: List[Path], epochs: int) -> Dict[str, Any]:
    result: Dict[str, Any] = {"values": 0, "differing": 0, "largest": 0.0, "labels": 0, "wrong": 0}
    columns = ["image", "boxes", "category", "sample"]
    apart = 0.0
    with meetpoint.Loader(
        dataset, recipe=name, batch_size=BATCH, seed=SEED, columns=columns
    ) as loader:
        for epoch in range(epochs):
            for batch in loader:
                for at, sample in enumerate(batch["sample"].tolist()):
                    def draws(number: int) -> Draws:
                        return Draws(SEED, epoch, sample, number)

                    picture = Image.open(files[sample]).convert("RGB")
                    # The tables hold float32.
                    boxes = torch.tensor(made_boxes(sample, picture.size), dtype=torch.float32)
                    boxes[:, 2:] += boxes[:, :2]
                    image, theirs, labels = detected(picture, boxes, draws)
                    note(result, batch["image"][at], image.numpy(), 0.0)
                    ours = numpy.asarray(batch["boxes"][at])
                    categories = numpy.asarray(batch["category"][at])
                    if not numpy.array_equal(categories, labels.numpy()):
                        result["labels"] += 1
                        continue
                    difference = numpy.abs(ours - theirs.numpy()).max(initial=0)
                    apart = max(apart, float(difference))
    result["boxes"] = apart
    # Positions are float64 there and float32 here, rounded once.
    result["wrong"] += int(apart > 1e-3)
    return result


def segmented(picture: Image.Image, mask: Image.Image, draws: Callable[[int], Draws]) -> Tuple[Any, Any]:
    """The recipe's transforms in torchvision, which mmsegmentation's configuration stands behind."""
    it: Any = (picture, tv_tensors.Mask(torch.from_numpy(numpy.array(mask))[None]))
    resize = v2.RandomResize(256, 1025)
    with mock.patch.object(
        torch, "randint", lambda low, high, _: torch.tensor([low + draws(1).up_to(high - low - 1)])
    ):
        it = resize(*it)
    # Masks by Pillow's nearest pixel, as torchvision's NEAREST_EXACT.
    w, h = it[0].size
    it = (it[0], tv_tensors.Mask(torch.from_numpy(
        numpy.array(mask.resize((w, h), Image.Resampling.NEAREST)))[None]))
    fill = {Image.Image: (124, 116, 104), tv_tensors.Mask: 255}
    crop_to = v2.RandomCrop(512, pad_if_needed=True, fill=fill)
    stream = draws(2)
    with mock.patch.object(
        torch, "randint", lambda low, high, size: torch.tensor([stream.up_to(high - low - 1)])
    ):
        it = crop_to(*it)
    drawn = torch.tensor([draws(3).uniform()], dtype=torch.float64)
    with mock.patch.object(torch, "rand", lambda *_: drawn):
        picture, mask = v2.RandomHorizontalFlip(0.5)(*it)
    for number, keys in [(4, {"brightness": (0.875, 1.125)}), (6, {"contrast": (0.5, 1.5)}),
                         (8, {"saturation": (0.5, 1.5)}), (10, {"hue": (-0.1, 0.1)})]:
        picture = applied(number, 0.5, [(number + 1, v1.ColorJitter(**keys))])(picture, draws)
    return v1.Compose(tensor_v1())(picture), mask[0]


def compare_segmentation(name: str, dataset: str, files: List[Path], epochs: int) -> Dict[str, Any]:
    result: Dict[str, Any] = {"values": 0, "differing": 0, "largest": 0.0, "labels": 0, "wrong": 0}
    columns = ["image", "mask", "sample"]
    with meetpoint.Loader(
        dataset, recipe=name, batch_size=BATCH, seed=SEED, columns=columns
    ) as loader:
        for epoch in range(epochs):
            for batch in loader:
                for at, sample in enumerate(batch["sample"].tolist()):
                    def draws(number: int) -> Draws:
                        return Draws(SEED, epoch, sample, number)

                    picture = Image.open(files[sample]).convert("RGB")
                    image, mask = segmented(picture, made_mask(sample, picture.size), draws)
                    note(result, batch["image"][at], image.numpy(), 0.0)
                    result["labels"] += int((batch["mask"][at] != mask.numpy()).sum())
    return result


def made_boxes(number: int, size: Tuple[int, int]) -> List[List[float]]:
    """Boxes inside of a picture: left, top, width and height."""
    chance = numpy.random.default_rng(number)
    found = []
    for _ in range(int(chance.integers(1, 6))):
        w, h = (int(chance.integers(side // 8, side // 2)) for side in size)
        found.append([int(chance.integers(0, size[0] - w)), int(chance.integers(0, size[1] - h)), w, h])
    return found


def made_mask(number: int, size: Tuple[int, int]) -> Image.Image:
    """The class of each pixel: those of the boxes."""
    mask = numpy.zeros(size[::-1], numpy.uint8)
    for category, (x, y, w, h) in enumerate(made_boxes(number, size), 1):
        mask[y : y + h, x : x + w] = category
    return Image.fromarray(mask)


def with_targets(files: List[Path], folder: Path) -> str:
    """A dataset of these pictures with the columns ``boxes``, ``category`` and ``mask``."""
    import pyarrow
    import pyarrow.parquet

    sizes = [Image.open(path).size for path in files]
    boxes = [made_boxes(number, size) for number, size in enumerate(sizes)]
    masks = []
    for number, size in enumerate(sizes):
        file = io.BytesIO()
        made_mask(number, size).save(file, "png")
        masks.append(file.getvalue())
    four = pyarrow.list_(pyarrow.list_(pyarrow.float32(), 4))
    table = {
        "key": [f"{number:05}.jpg" for number in range(len(files))],
        "image": pyarrow.array([path.read_bytes() for path in files], pyarrow.binary()),
        "boxes": pyarrow.array(boxes, four),
        "category": pyarrow.array([list(range(len(it))) for it in boxes]),
        "mask": pyarrow.array(masks, pyarrow.binary()),
    }
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "targets.parquet")
    return meetpoint.pack(folder / "targets.parquet", folder / "targets.set", content="image").destination


def compare(name: str, dataset: str, files: List[Path], epochs: int) -> Dict[str, Any]:
    """Differing values of pictures and labels, and the largest difference."""
    numbers, mix = number_of_first(name), mixes().get(name)
    run = stages(*originals()[name])
    first_on_batches = len([it for it in recipes.load(name)]) - 1
    result: Dict[str, Any] = {"values": 0, "differing": 0, "largest": 0.0, "labels": 0, "wrong": 0}
    with meetpoint.Loader(dataset, recipe=name, batch_size=BATCH, seed=SEED) as loader:
        for epoch in range(epochs):
            for batch, (images, labels) in enumerate(loader):
                made = []
                for sample in range(batch * BATCH, batch * BATCH + len(images)):
                    it: Any = Image.open(files[sample]).convert("RGB")
                    for at, stage in enumerate(run):
                        it = stage(it, Draws(SEED, epoch, sample, numbers.get(at, 0)))
                    made.append(it)
                x = torch.stack(made)
                if mix is not None:
                    y = torch.tensor([int(path.parent.name) for path in files])
                    y = y[batch * BATCH :][: len(x)]

                    def draws(number: int) -> Draws:
                        return Draws(SEED, epoch, batch, first_on_batches + number)

                    with mock.patch.object(golden_batch, "CLASSES", CLASSES):
                        x, y = mix(draws, x, y)
                    result["labels"] += int((y.numpy() != labels).sum())
                note(result, numpy.asarray(images), x.numpy(), 0.0)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="JPEGs to use in place of made ones")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    others = {
        **{name: compare_views for name in VIEWS},
        "coco-detection@1": compare_detection,
        "ade20k-segmentation@1": compare_segmentation,
    }
    chosen = [name for name in [*originals(), *others]
              if not arguments.only or any(only in name for only in arguments.only)]
    print(f"torchvision {torchvision.__version__}, timm {timm.__version__}; "
          f"{arguments.pictures} pictures, {arguments.epochs} epochs")
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        sets = {}
        for kind, sides in (("photos", (180, 420)), ("cifar", (32, 33))):
            folder = Path(temporary) / kind
            if kind == "photos" and arguments.folder is not None:
                found = sorted(arguments.folder.rglob("*.[jJ][pP]*[gG]"))[: arguments.pictures]
                for number, path in enumerate(found):
                    place = folder / str(number % 3) / f"{number:05}.jpg"
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(path.read_bytes())
            else:
                make_pictures(folder, arguments.pictures, sides)
            meetpoint.pack(folder, Path(temporary) / f"{kind}.set")
            with meetpoint.open(Path(temporary) / f"{kind}.set") as dataset:
                files = [folder / dataset[index].key for index in range(len(dataset))]
            sets[kind] = (str(Path(temporary) / f"{kind}.set"), files)
        if any(name.startswith(("coco", "ade20k")) for name in chosen):
            targets = with_targets(sets["photos"][1], Path(temporary))
        for name in chosen:
            began = time.perf_counter()
            dataset_path, files = sets["cifar" if name.startswith("cifar") else "photos"]
            if name.startswith(("coco", "ade20k")):
                dataset_path = targets
            run = others.get(name, compare)
            it = results[name] = run(name, dataset_path, files, arguments.epochs)
            boxes = f"; boxes differ by at most {it['boxes']:g} pixels" if "boxes" in it else ""
            print(f"{name}: {it['differing']} of {it['values']} values differ, by at most "
                  f"{it['largest']:g}; {it['labels']} of labels{boxes} "
                  f"({time.perf_counter() - began:.0f} s)", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    return 1 if any(it["wrong"] or it["labels"] for it in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
