"""Recipes with boxes and masks, compared with their originals."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import numpy
import torch
from PIL import Image
from torchvision import transforms as v1, tv_tensors
from torchvision.transforms import v2

import meetpoint
from recipe_stages import BATCH, SEED, Draws, given, note, tensor_v1
from recipe_views import applied


def photometric(transform: v2.RandomPhotometricDistort) -> Any:
    """The random parameters of RandomPhotometricDistort, from Meetpoint's random numbers."""

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
    # Positions are float64 in Meetpoint and float32 here, rounded once.
    result["wrong"] += int(apart > 1e-3)
    return result


def segmented(picture: Image.Image, mask: Image.Image, draws: Callable[[int], Draws]) -> Tuple[Any, Any]:
    """The recipe's transforms in torchvision, as in mmsegmentation's configuration."""
    it: Any = (picture, tv_tensors.Mask(torch.from_numpy(numpy.array(mask))[None]))
    resize = v2.RandomResize(256, 1025)
    with mock.patch.object(
        torch, "randint", lambda low, high, _: torch.tensor([low + draws(1).up_to(high - low - 1)])
    ):
        it = resize(*it)
    # Masks are resized with Pillow's NEAREST, which equals torchvision's NEAREST_EXACT.
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
