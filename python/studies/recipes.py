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
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple
from unittest import mock

import numpy
import timm
import torch
import torchvision
from PIL import Image
from timm.data import auto_augment, random_erasing
from timm.data.transforms import RandomResizedCropAndInterpolation
from torchvision import transforms as v1
from torchvision.transforms import v2

import meetpoint
from meetpoint import recipes
from recipe_stages import (
    BATCH,
    CLASSES,
    SEED,
    Draws,
    golden_batch,
    mixes,
    note,
    originals,
    stages,
    three_augment,
)
from recipe_targets import compare_detection, compare_segmentation, with_targets
from recipe_views import VIEWS, compare_views


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
