"""Torchvision's references for detection and segmentation: the loader in place of theirs.

    python torchvision_references.py --detection boxes.set --segmentation masks.set
    python torchvision_references.py --quick      a few steps on pictures that it makes

In ``references/detection/train.py`` and ``references/segmentation/train.py``, ``data_loader``
becomes what :func:`detection` or :func:`segmentation` returns; ``engine.train_one_epoch`` takes it
as it is. The columns are those of ``targets.py``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

from targets import make

import meetpoint
from meetpoint import collate, samplers
from meetpoint import transforms as T

try:
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch torchvision")
    sys.exit(0)

TO_TENSOR = [T.ToImage(), T.ToDtype("float32", scale=True)]


def as_detection(batch: Dict[str, Any]) -> Tuple[List[Any], List[Dict[str, Any]]]:
    """A list of pictures and one of dictionaries, as models of torchvision take them."""
    rows = zip(batch["boxes"], batch["category"], batch["sample"])
    # Class 0 is the background.
    targets = [
        {"boxes": boxes, "labels": categories + 1, "image_id": int(sample)}
        for boxes, categories, sample in rows
    ]
    return list(batch["image"]), targets


def detection(path: str, sides: List[int], longest: int, **more: Any) -> Any:
    """The loader of the preset ``multiscale``, with ``--aspect-ratio-group-factor 3``.

    Pictures keep sizes of their own. ``collate`` of the reference, a list of pictures, is
    ``collate.List()``; the model then pads them.
    """
    boxes = T.Boxes("xywh", to_format="xyxy", min_size=1, filters=["category"])
    recipe = [T.RandomShortestSize(sides, max_size=longest), T.RandomHorizontalFlip(), *TO_TENSOR]
    return meetpoint.Loader(
        path,
        recipe=T.Compose(recipe, targets={"boxes": boxes}),
        columns=["image", "boxes", "category", "sample"],
        sampler=samplers.AspectRatio(3),
        collate=collate.List(),
        output="torch",
        batch_transform=as_detection,
        **more,
    )


def as_segmentation(batch: Dict[str, Any]) -> Tuple[Any, Any]:
    """Pictures, and the class of every pixel as int64 [batch, height, width]."""
    return batch["image"], batch["mask"].long()


def evaluation(path: str, base: int, **more: Any) -> Any:
    """The loader of ``SegmentationPresetEval``: whole pictures, padded as ``collate_fn`` pads them.

    ``cat_list`` of the reference fills pictures with 0 and masks with 255, as ``Pad()`` and
    ``Mask(fill=255)`` do.
    """
    recipe = [
        T.Resize(base),
        *TO_TENSOR,
        T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    return meetpoint.Loader(
        path,
        recipe=T.Compose(recipe, targets={"mask": T.Mask(fill=255)}),
        columns=["image", "mask"],
        collate=collate.Pad(),
        output="torch",
        batch_transform=as_segmentation,
        **more,
    )


def segmentation(path: str, base: int, crop: int, **more: Any) -> Any:
    """The loader of ``SegmentationPresetTrain``."""
    recipe = [
        T.RandomResize(base // 2, base * 2),
        T.RandomHorizontalFlip(),
        T.RandomCrop(crop, pad_if_needed=True),
        *TO_TENSOR,
        T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    return meetpoint.Loader(
        path,
        recipe=T.Compose(recipe, targets={"mask": T.Mask(fill=255)}),
        columns=["image", "mask"],
        shuffle=True,
        drop_last=True,
        output="torch",
        batch_transform=as_segmentation,
        **more,
    )


def train_detection(model: Any, loader: Any, steps: int) -> None:
    """The loop of ``engine.train_one_epoch``."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
    model.train()
    for _, (images, targets) in zip(range(steps), loader):
        losses = sum(model(images, targets).values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        print(f"detection: {len(images)} pictures, loss {losses.item():.3f}")


def train_segmentation(model: Any, loader: Any, steps: int) -> None:
    """The loop of the reference's ``train_one_epoch``."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model.train()
    for _, (images, masks) in zip(range(steps), loader):
        scores = model(images)["out"]
        loss = torch.nn.functional.cross_entropy(scores, masks, ignore_index=255)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"segmentation: {tuple(images.shape)}, loss {loss.item():.3f}")


def evaluate_segmentation(model: Any, loader: Any, steps: int) -> None:
    """The share of pixels whose class is right, as ``engine.evaluate`` counts it."""
    model.eval()
    right = total = 0
    with torch.inference_mode():
        for _, (images, masks) in zip(range(steps), loader):
            inside = masks != 255
            right += int((model(images)["out"].argmax(1)[inside] == masks[inside]).sum())
            total += int(inside.sum())
    print(f"segmentation: {right / total:.1%} of {total} pixels")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--detection", help="folder of a packed dataset")
    parser.add_argument("--segmentation", help="folder of a packed dataset")
    parser.add_argument("--classes", type=int, default=91, help="with the background")
    parser.add_argument("--quick", action="store_true", help="make them of a few pictures")
    arguments = parser.parse_args()
    if not arguments.quick and (arguments.detection is None or arguments.segmentation is None):
        parser.error("give --detection and --segmentation, or --quick")
    models = torchvision.models
    steps, classes = sys.maxsize, arguments.classes
    with tempfile.TemporaryDirectory() as temporary:
        multiscale = [480, 512, 544, 576, 608, 640, 672, 704, 736, 768, 800]
        of_detection: Any = {
            "path": arguments.detection,
            "sides": multiscale,
            "longest": 1333,
            "batch_size": 2,
        }
        of_masks: Any = {"path": arguments.segmentation, "base": 520, "crop": 480, "batch_size": 8}
        sides: Any = {}
        if arguments.quick:
            torch.set_num_threads(1)
            steps, classes, sides = 2, 4, {"min_size": 96, "max_size": 128}
            boxes, masks = make(Path(temporary), 12)
            of_detection = {"path": boxes, "sides": [80, 96], "longest": 128, "batch_size": 2}
            of_masks = {"path": masks, "base": 60, "crop": 48, "batch_size": 4}
        with detection(**of_detection) as loader:
            detector = models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
                weights_backbone=None, num_classes=classes, **sides
            )
            train_detection(detector, loader, steps)
        with segmentation(**of_masks) as loader:
            segmenter = models.segmentation.lraspp_mobilenet_v3_large(
                weights_backbone=None, num_classes=classes
            )
            train_segmentation(segmenter, loader, steps)
        whole = {"path": of_masks["path"], "base": of_masks["base"], "batch_size": 2}
        with evaluation(**whole) as loader:
            evaluate_segmentation(segmenter, loader, steps)


if __name__ == "__main__":
    main()
