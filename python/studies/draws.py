"""Are the batches and random crops that a loader hands out as independent draws would be?

    python draws.py [--samples 2000] [--epochs 10]

Needs torch and torchvision (for the spread of its own crops) and Pillow. Every picture says in its
colours where a pixel lies, so crops and flips are read off what comes out.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import List

import numpy
import torch
from PIL import Image
from torchvision.transforms import v2

import meetpoint
from meetpoint import transforms as T

SIDE, CROP, BATCH, CLASSES, STEP = 40, 32, 50, 10, 6
SCALE = (0.6, 1.0)


def make(folder: Path, samples: int) -> Path:
    """A dataset of one picture under many names, as many of each class."""
    y, x = numpy.mgrid[0:SIDE, 0:SIDE]
    picture = Image.fromarray(numpy.stack([x * STEP, y * STEP, x * 0], -1).astype(numpy.uint8))
    for number in range(samples):
        place = folder / "pictures" / str(number % CLASSES) / f"{number:05}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        picture.save(place)
    meetpoint.pack(folder / "pictures", folder / "set")
    return folder / "set"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=10)
    arguments = parser.parse_args()
    recipe = [T.RandomResizedCrop(CROP, scale=SCALE), T.RandomHorizontalFlip(), T.ToImage()]
    # Flip, width and height of the crop.
    drawn = numpy.zeros((arguments.epochs, arguments.samples, 3))
    chi_squares: List[float] = []
    flips: List[int] = []
    areas: List[float] = []
    with tempfile.TemporaryDirectory() as temporary:
        dataset = make(Path(temporary), arguments.samples)
        with meetpoint.Loader(dataset, recipe=recipe, batch_size=BATCH, shuffle=True, seed=1,
                              columns=["image", "label", "sample"]) as loader:
            for epoch in range(arguments.epochs):
                for batch in loader:
                    counts = numpy.bincount(batch["label"], minlength=CLASSES)
                    expected = len(batch["label"]) / CLASSES
                    chi_squares.append(float(((counts - expected) ** 2 / expected).sum()))
                    images = numpy.asarray(batch["image"]).astype(float) / STEP
                    across = images[:, 0, :, -1].mean(1) - images[:, 0, :, 0].mean(1)
                    down = images[:, 1, -1].mean(1) - images[:, 1, 0].mean(1)
                    # From the middle of the first pixel to that of the last.
                    width, height = (it * CROP / (CROP - 1) for it in (abs(across), down))
                    drawn[epoch, batch["sample"]] = numpy.stack([across < 0, width, height], 1)
                    flips.append(int((across < 0).sum()))
                    areas.append(float((width * height).mean()))
    print(f"classes of a batch: chi-square {numpy.mean(chi_squares):.2f}, of independent draws "
          f"{(CLASSES - 1) * (1 - BATCH / arguments.samples):.2f}")
    print(f"flips of a batch: variance {numpy.var(flips):.2f}, of independent draws {BATCH / 4}")
    area = drawn[..., 1] * drawn[..., 2]
    print(f"mean area of a batch: variance {numpy.var(areas):.1f}, of independent draws "
          f"{area.var() / BATCH:.1f}")
    for at, name in enumerate(["flip", "width", "height"]):
        epochs = numpy.corrcoef(drawn[0, :, at], drawn[1, :, at])[0, 1]
        neighbours = numpy.corrcoef(drawn[0, :-1, at], drawn[0, 1:, at])[0, 1]
        print(f"{name}: mean {drawn[..., at].mean():.3f}, deviation {drawn[..., at].std():.3f}, "
              f"correlation of epochs {epochs:+.3f}, of neighbours {neighbours:+.3f}")
    crop = v2.RandomResizedCrop(CROP, scale=SCALE)
    theirs = [crop.make_params([torch.zeros(3, SIDE, SIDE)]) for _ in range(20_000)]
    for name in ("width", "height"):
        values = [it[name] for it in theirs]
        print(f"torchvision's {name}: mean {numpy.mean(values):.3f}, deviation {numpy.std(values):.3f}")


if __name__ == "__main__":
    main()
