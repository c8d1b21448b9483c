"""Recipes that make several pictures of a sample, compared with their originals."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import numpy
import torch
from PIL import Image
from torchvision import transforms as v1

import meetpoint
from recipe_stages import BATCH, BICUBIC, SEED, STAGES, STD, Draws, note, tensor_v1

Numbered = Callable[[Any, Callable[[int], Draws]], Any]


def applied(number: int, p: float, inner: List[Tuple[int, Any]]) -> Numbered:
    """torchvision's RandomApply, with the number of the operation, and those of the inner ones."""

    def stage(picture: Any, draws: Callable[[int], Draws]) -> Any:
        def of(number: int, transform: Any) -> Any:
            run = STAGES[type(transform)](transform)
            return lambda it: run(it, draws(number))

        apply = v1.RandomApply([of(*it) for it in inner], p=p)
        drawn = torch.tensor([draws(number).uniform()], dtype=torch.float64)
        with mock.patch.object(torch, "rand", lambda *_: drawn):
            return apply(picture)

    return stage


def numbered(number: int, transform: Any) -> Numbered:
    run = STAGES[type(transform)](transform)
    return lambda picture, draws: run(picture, draws(number))


def after(transforms: List[Any]) -> Numbered:
    return lambda picture, _: v1.Compose(transforms)(picture)


def dinov2_view(size: int, scale: Tuple[float, float], blurred: float, solarized: float) -> List[Numbered]:
    """One crop of DataAugmentationDINO of dinov2/data/augmentations.py.

    ``blurred`` is the argument of its ``GaussianBlur``: the probability that it does nothing.
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


VIEWS: Dict[str, Dict[str, Tuple[int, List[Numbered]]]] = {
    "dinov2@1": {
        "global_1": (1, dinov2_view(224, (0.32, 1.0), 1.0, 0)),
        "global_2": (1, dinov2_view(224, (0.32, 1.0), 0.1, 0.2)),
        "local": (8, dinov2_view(96, (0.05, 0.32), 0.5, 0)),
    },
    "simclr@1": {"view": (2, simclr_view())},
}
# The difference that blurring may cause, 1 of 255, as a difference of values of the column.
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
