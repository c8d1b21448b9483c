"""Does it train? A small network on pictures of ten classes, fed by torchvision and by Meetpoint.

    python training.py [--recipe deit] [--seeds 5] [--epochs 4] [--train 2000] [--markdown FILE]

Needs torch (the CPU is enough), torchvision, Pillow, and timm for ``--recipe deit``. The pictures are
drawn here: shapes and textures of random colours and places, as JPEG. All loaders have the same
transforms, batch size and first weights of each seed; each makes its own draws, so accuracies may
differ as seeds do. The test pictures go through deterministic transforms, whose result is compared
with torchvision's, bit for bit.

Recipes: ``crop`` is a random resized crop and a flip; ``cifar`` is the shipped recipe, against
torchvision's transforms as pytorch-cifar composes them; ``deit`` is the shipped recipe at 32 pixels,
against timm's ``create_transform`` and ``Mixup`` as DeiT's main.py calls them.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import numpy
import torch
import torchvision
from PIL import Image, ImageDraw, ImageOps
from torch import nn
from torchvision import transforms as v1
from torchvision.transforms import v2

import meetpoint
from meetpoint import recipes

LOADERS = ["original", "host-only", "mte", "wrr"]
RECIPES = ["crop", "cifar", "deit"]
CLASSES = [
    "bars", "blocks", "circle", "columns", "cross", "diamond", "dots", "ring", "square", "triangle",
]  # fmt: skip
SIDE, CROP, BATCH = 40, 32, 50
MEAN, STD = [0.5, 0.5, 0.5], [0.25, 0.25, 0.25]
# Those of the shipped recipes.
NORMALS = {
    "crop": (MEAN, STD),
    "cifar": ([0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]),
    "deit": ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
}


def draw(name: str, chance: numpy.random.Generator, side: int) -> Image.Image:
    """A picture of the class, drawn at SIDE and resized to a side."""
    back, front = (tuple(int(it) for it in chance.integers(0, 256, 3)) for _ in range(2))
    noise = chance.normal(0, 18, (SIDE, SIDE, 3))
    picture = Image.new("RGB", (SIDE, SIDE), back)
    pen = ImageDraw.Draw(picture)
    r = float(chance.uniform(8, 15))
    x, y = (float(it) for it in chance.uniform(r + 1, SIDE - r - 1, 2))
    step = int(chance.integers(5, 9))
    if name == "bars":
        for at in range(0, SIDE, step):
            pen.rectangle((0, at, SIDE, at + step // 2 - 1), front)
    elif name == "columns":
        for at in range(0, SIDE, step):
            pen.rectangle((at, 0, at + step // 2 - 1, SIDE), front)
    elif name == "blocks":
        for row in range(0, SIDE, step):
            for column in range(row // step % 2 * step, SIDE, 2 * step):
                pen.rectangle((column, row, column + step - 1, row + step - 1), front)
    elif name == "dots":
        for row in range(0, SIDE, step):
            for column in range(0, SIDE, step):
                pen.ellipse((column, row, column + step / 2, row + step / 2), front)
    elif name == "circle":
        pen.ellipse((x - r, y - r, x + r, y + r), front)
    elif name == "ring":
        pen.ellipse((x - r, y - r, x + r, y + r), outline=front, width=3)
    elif name == "square":
        pen.rectangle((x - r, y - r, x + r, y + r), front)
    elif name == "diamond":
        pen.polygon([(x, y - r), (x + r, y), (x, y + r), (x - r, y)], front)
    elif name == "triangle":
        pen.polygon([(x, y - r), (x + r, y + r), (x - r, y + r)], front)
    else:
        pen.rectangle((x - r, y - 2, x + r, y + 2), front)
        pen.rectangle((x - 2, y - r, x + 2, y + r), front)
    noisy = numpy.asarray(picture).astype(numpy.float64) + noise
    made = Image.fromarray(noisy.clip(0, 255).astype(numpy.uint8))
    return made if side == SIDE else made.resize((side, side), Image.Resampling.BOX)


def make_pictures(folder: Path, count: int, seed: int, side: int = SIDE) -> None:
    """Equally many of each class, a sub-folder a class."""
    chance = numpy.random.default_rng(seed)
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
    for number in range(count):
        name = CLASSES[number % len(CLASSES)]
        draw(name, chance, side).save(folder / name / f"{number:05}.jpg", quality=90)


def posterize(picture: Image.Image, bits: int) -> Image.Image:
    """timm asks for 0 bits at magnitude 10, which Pillow 13 refuses; before, the result was black."""
    return picture.point([value & ~(2 ** (8 - bits) - 1) for value in range(256)] * 3)


def train_transforms(recipe: str) -> Any:
    """The original's transforms."""
    mean, std = NORMALS[recipe]
    if recipe == "cifar":
        steps = [v1.RandomCrop(CROP, padding=4), v1.RandomHorizontalFlip(), v1.ToTensor()]
        return v1.Compose([*steps, v1.Normalize(mean, std)])
    if recipe == "deit":
        import timm.data

        ImageOps.posterize = posterize
        return timm.data.create_transform(
            CROP, is_training=True, color_jitter=0.3, auto_augment="rand-m9-mstd0.5-inc1",
            interpolation="bicubic", re_prob=0.25, re_mode="pixel", re_count=1,
        )  # fmt: skip
    return v2.Compose(
        [
            v2.RandomResizedCrop(CROP, scale=(0.6, 1.0)),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )


def ours(recipe: str) -> Any:
    """What Meetpoint's loader takes."""
    if recipe == "crop":
        return train_transforms(recipe)
    if recipe == "cifar":
        return "cifar@1"
    return recipes.load("deit@1", num_classes=10, **{"random_resized_crop.size": CROP})


def test_transforms(recipe: str) -> Any:
    resize = [] if recipe == "cifar" else [v2.Resize(CROP + 4), v2.CenterCrop(CROP)]
    return v2.Compose(
        [
            *resize,
            # Fixes the shape before a picture is seen.
            v2.CenterCrop(CROP),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(*NORMALS[recipe]),
        ]
    )


def network() -> nn.Module:
    def block(given: int, made: int) -> List[nn.Module]:
        convolution = nn.Conv2d(given, made, 3, stride=2, padding=1)
        return [convolution, nn.BatchNorm2d(made), nn.ReLU()]

    layers = [*block(3, 16), *block(16, 32), *block(32, 64)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


Batches = Iterator[Tuple[torch.Tensor, torch.Tensor]]


class Feed:
    """Batches of an epoch, by one of the loaders."""

    def __init__(self, name: str, folder: Path, seed: int, recipe: str) -> None:
        self.name = name
        self.mixup: Any = None
        if name == "original":
            if recipe == "deit":
                import timm.data

                self.mixup = timm.data.Mixup(
                    mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=10
                )
                random.seed(seed)
                numpy.random.seed(seed)
            data = torchvision.datasets.ImageFolder(folder / "train", train_transforms(recipe))
            chance = torch.Generator().manual_seed(seed)
            self.loader: Any = torch.utils.data.DataLoader(
                data, batch_size=BATCH, shuffle=True, generator=chance
            )
        else:
            self.loader = meetpoint.Loader(
                folder / "train.set",
                recipe=ours(recipe),
                batch_size=BATCH,
                shuffle=True,
                seed=seed,
                strategy=name,
                device=None if name == "host-only" else meetpoint.Emulated(allow_shared=True),
                workers=1,
                output="torch",
            )

    def __iter__(self) -> Batches:
        if self.mixup is not None:
            return (self.mixup(images, labels) for images, labels in self.loader)
        return iter(self.loader)

    def shares(self) -> str:
        """Batches by host and device in the last epoch."""
        if self.name == "original":
            return "-"
        schedule = self.loader.report()["epochs"][-1]["schedule"]
        return f"{schedule['host_batches']} / {schedule['device_batches']}"

    def close(self) -> None:
        if self.name != "original":
            self.loader.close()


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    model.eval()
    with torch.no_grad():
        return float((model(images).argmax(1) == labels).float().mean()) * 100.0


def train(
    name: str,
    folder: Path,
    seed: int,
    epochs: int,
    tests: Tuple[torch.Tensor, torch.Tensor],
    is_constant: bool,
    recipe: str,
) -> Dict[str, Any]:
    """Trains one network and says how good it is."""
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    begun = time.perf_counter()
    feed = Feed(name, folder, seed, recipe)
    # To nothing at the end: at one rate the accuracy moves by several points with every epoch.
    steps = epochs * len(feed.loader)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    loss = torch.zeros(())
    for _ in range(epochs):
        model.train()
        for images, labels in feed:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if not is_constant:
                rate.step()
    result = {
        "loader": name,
        "seed": seed,
        "accuracy": accuracy(model, *tests),
        "loss": float(loss.detach()),
        "shares": feed.shares(),
        "seconds": time.perf_counter() - begun,
    }
    feed.close()
    return result


def test_pictures(folder: Path, recipe: str) -> Tuple[Tuple[torch.Tensor, torch.Tensor], float]:
    """The test pictures, and how far ours are from torchvision's at most."""
    with meetpoint.Loader(
        folder / "test.set", recipe=test_transforms(recipe), batch_size=BATCH, output="torch"
    ) as loader:
        ours = [(images.clone(), labels.clone()) for images, labels in loader]
    images, labels = (torch.cat(part) for part in zip(*ours))
    theirs = torchvision.datasets.ImageFolder(folder / "test", test_transforms(recipe))
    by_them = torch.stack([picture for picture, _ in theirs])
    assert [label for _, label in theirs.samples] == labels.tolist()
    return (images, labels), float((images - by_them).abs().max())


def summary(rows: List[Dict[str, Any]]) -> List[str]:
    """A table in Markdown."""
    seeds = sorted({row["seed"] for row in rows})
    lines = [
        "| loader | " + " | ".join(f"seed {seed}" for seed in seeds) + " | mean | standard "
        "deviation | difference from the original, in standard errors | host / device batches |",
        "|---" * (len(seeds) + 5) + "|",
    ]
    by_name = {
        name: [row["accuracy"] for row in rows if row["loader"] == name]
        for name in LOADERS
    }
    base = by_name["original"]
    for name, values in by_name.items():
        if not values:
            continue
        mean = statistics.mean(values)
        deviation = f"{statistics.stdev(values):.2f}" if len(values) > 1 else "-"
        apart = "-"
        if name != "original" and base and len(values) > 1:
            error = math.sqrt(
                (statistics.variance(values) + statistics.variance(base)) / len(values)
            )
            apart = f"{(mean - statistics.mean(base)) / error:+.2f}" if error else "0"
        shares = [row["shares"] for row in rows if row["loader"] == name][-1]
        cells = " | ".join(f"{value:.1f}" for value in values)
        lines.append(f"| {name} | {cells} | {mean:.2f} | {deviation} | {apart} | {shares} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", choices=RECIPES, default="crop")
    parser.add_argument("--loaders", nargs="+", choices=LOADERS, default=LOADERS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--train", type=int, default=2000, help="pictures to train on")
    parser.add_argument("--test", type=int, default=1000, help="pictures to test with")
    parser.add_argument("--constant-rate", action="store_true", help="learn as fast to the end")
    parser.add_argument("--markdown", type=Path, help="where the table goes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: List[Dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for at, (name, count) in enumerate([("train", arguments.train), ("test", arguments.test)]):
            side = CROP if arguments.recipe == "cifar" else SIDE
            make_pictures(folder / name, count, 100 + at, side)
            meetpoint.pack(folder / name, folder / f"{name}.set")
        tests, apart = test_pictures(folder, arguments.recipe)
        print(f"test pictures: at most {apart:g} from torchvision's", flush=True)
        for seed in range(arguments.seeds):
            for name in arguments.loaders:
                of = (arguments.constant_rate, arguments.recipe)
                rows.append(train(name, folder, seed, arguments.epochs, tests, *of))
                print(json.dumps(rows[-1]), flush=True)
    lines = summary(rows)
    lines += [
        "",
        f"Accuracy in percent on {arguments.test} test pictures after {arguments.epochs} epochs of "
        f"{arguments.train}, recipe {arguments.recipe}; torch {torch.__version__}, torchvision {torchvision.__version__}, "
        f"meetpoint {meetpoint.__version__}, Python {platform.python_version()}. Test pictures "
        f"differ from torchvision's by {apart:g} at most.",
    ]
    print("\n".join(lines))
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
