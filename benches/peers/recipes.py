#!/usr/bin/env python3
"""Measures whole training recipes: CPU time of a sample, from JPEG to a batch of float32.

    python recipes.py DIR [--rounds 5] [--repeat 2] [--only deit] [--quick] [--json FILE]

Recipes: `deit` (RandAugment, erasing, mixup and cutmix at 224 pixels) against timm's own loader and
against what a user can assemble of OpenCV and albumentations, or of torchvision's transforms on
tensors; `dinov2` (10 views) against DINOv2's transforms on PIL images, and on tensors; `cifar`
(padded crop, flip, normalise) on pictures of 32 by 32 against torchvision.

DIR holds JPEGs, linked `--repeat` times. Every method has one thread or one worker, without
processes. Methods take turns, a whole epoch each; the first round is not counted. CPU time is that
of this process, all threads; the median over rounds counts, and the ratio is how many times as fast
as the peer Meetpoint is. Needs torch, torchvision, timm, albumentations, OpenCV, Pillow.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import statistics
import sys
import tempfile
import time
import warnings

import numpy as np
import timm
import torch
import torchvision
from PIL import Image, ImageOps
from torchvision import transforms as v1
from torchvision.transforms import v2

import meetpoint

BATCH, CLASSES = 64, 1000
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
TO_TENSOR = [v1.ToTensor(), v1.Normalize(MEAN, STD)]
BICUBIC = v1.InterpolationMode.BICUBIC


class Files(torch.utils.data.Dataset):
    """Files and labels: bytes or pictures through a function."""

    def __init__(self, paths, load):
        self.paths, self.load = paths, load

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.load(self.paths[index]), index % CLASSES


def batches(paths, load, collate=None):
    loader = torch.utils.data.DataLoader(
        Files(paths, load), BATCH, shuffle=True, num_workers=0, drop_last=True, collate_fn=collate
    )
    return lambda: iter(loader)


def ours(dataset, recipe, columns=None, **more):
    """A loader of Meetpoint: one worker, no device."""
    loader = meetpoint.Loader(
        dataset, recipe=recipe, batch_size=BATCH, shuffle=True, drop_last=True, workers=1,
        columns=columns, output="torch", **more,
    )
    return lambda: iter(loader)


# DeiT.


def posterize(picture, bits):
    """timm asks for 0 bits at magnitude 10, which Pillow 13 refuses; before, the result was black."""
    return picture.point([value & ~(2 ** (8 - bits) - 1) for value in range(256)] * 3)


def deit_timm(folder):
    """As timm's train.py makes it, without its prefetcher, which needs a GPU."""
    ImageOps.posterize = posterize
    data = timm.data.create_dataset("", str(folder / "classes"), split="train", is_training=True)
    loader = timm.data.create_loader(
        data, (3, 224, 224), BATCH, is_training=True, use_prefetcher=False, color_jitter=0.3,
        auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel", re_count=1,
        interpolation="bicubic", mean=MEAN, std=STD, num_workers=0, persistent_workers=False,
    )
    mixup = timm.data.Mixup(
        mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=CLASSES
    )
    return lambda: (mixup(images, labels) for images, labels in loader)


def mixed(epoch):
    """torchvision's MixUp or CutMix on each batch."""
    choice = v2.RandomChoice([v2.MixUp(alpha=0.8, num_classes=CLASSES),
                              v2.CutMix(alpha=1.0, num_classes=CLASSES)])
    return lambda: (choice(images, labels) for images, labels in epoch())


def deit_tensor(paths):
    """torchvision's transforms on tensors of uint8."""
    steps = v2.Compose([
        v2.RandomResizedCrop(224, interpolation=BICUBIC, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.RandAugment(2, 9, interpolation=v2.InterpolationMode.BILINEAR),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
        v2.RandomErasing(0.25),
    ])
    mode = torchvision.io.ImageReadMode.RGB
    return mixed(batches(paths, lambda path: steps(torchvision.io.decode_image(path, mode=mode))))


def deit_opencv(paths):
    """albumentations, whose pixels OpenCV computes, with operations like those of RandAugment."""
    import albumentations as A
    import cv2
    from albumentations.pytorch import ToTensorV2

    cv2.setNumThreads(1)
    operations = [
        A.AutoContrast(p=0.5), A.Equalize(p=0.5), A.InvertImg(p=0.5),
        A.Rotate(limit=27, p=0.5), A.Posterize(num_bits=4, p=0.5), A.Solarize(p=0.5),
        A.ColorJitter((1, 1), (1, 1), (0.2, 1.8), (0, 0), p=0.5),
        A.ColorJitter((1, 1), (0.2, 1.8), (1, 1), (0, 0), p=0.5),
        A.ColorJitter((0.2, 1.8), (1, 1), (1, 1), (0, 0), p=0.5),
        A.Sharpen(p=0.5), A.Affine(shear=(-15, 15), p=0.5),
        A.Affine(translate_percent=(-0.4, 0.4), p=0.5),
    ]
    steps = A.Compose([
        A.RandomResizedCrop(size=(224, 224), interpolation=cv2.INTER_CUBIC),
        A.HorizontalFlip(p=0.5),
        A.SomeOf(operations, n=2, replace=True, p=1.0),
        A.Normalize(MEAN, STD),
        A.Erasing(scale=(0.02, 0.33), ratio=(0.3, 3.3), p=0.25),
        ToTensorV2(),
    ])

    def load(path):
        data = np.fromfile(path, np.uint8)
        picture = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
        return steps(image=picture)["image"]

    return mixed(batches(paths, load))


# DINOv2.


def dino_steps(library, crop, end):
    """DataAugmentationDINO of dinov2/data/augmentations.py, which calls several pipelines."""
    def geometric(size, scale):
        return [crop(size, scale), library.RandomHorizontalFlip(p=0.5)]

    colours = [
        library.RandomApply([library.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
        library.RandomGrayscale(p=0.2),
    ]

    def blur(p):
        # The complement, as there.
        return library.RandomApply([library.GaussianBlur(9, sigma=(0.1, 2.0))], p=1 - p)

    large, small = geometric(224, (0.32, 1.0)), geometric(96, (0.05, 0.32))
    first = library.Compose([*large, *colours, blur(1.0), *end])
    second = library.Compose(
        [*large, *colours, blur(0.1), library.RandomSolarize(threshold=128, p=0.2), *end]
    )
    local = library.Compose([*small, *colours, blur(0.5), *end])
    return lambda it: [first(it), second(it), *(local(it) for _ in range(8))]


def collated(entries):
    """As DINOv2's collate: each crop of all samples."""
    large = torch.stack([views[at] for at in range(2) for views, _ in entries])
    return large, torch.stack([views[at] for at in range(2, 10) for views, _ in entries])


def dino_pil(paths):
    def crop(size, scale):
        return v1.RandomResizedCrop(size, scale=scale, interpolation=BICUBIC)

    steps = dino_steps(v1, crop, TO_TENSOR)

    def load(path):
        with Image.open(path) as file:
            return steps(file.convert("RGB"))

    return batches(paths, load, collated)


def dino_tensor(paths):
    def crop(size, scale):
        return v2.RandomResizedCrop(size, scale=scale, interpolation=BICUBIC, antialias=True)

    end = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    steps = dino_steps(v2, crop, end)
    mode = torchvision.io.ImageReadMode.RGB
    load = lambda path: steps(torchvision.io.decode_image(path, mode=mode))  # noqa: E731
    return batches(paths, load, collated)


# CIFAR.


def make_cifar(folder, count):
    """Files as CIFAR-10 has them in its binary version, of noise on gradients."""
    chance = np.random.default_rng(1)
    folder.mkdir()
    each = count // 5
    for number in range(1, 6):
        records = chance.integers(0, 256, (each, 1 + 3072), np.uint8)
        ramp = np.linspace(0, 160, 32).astype(np.uint8)
        records[:, 1:] = records[:, 1:] // 4 + np.tile(ramp, 96)
        records[:, 0] %= 10
        records.tofile(folder / f"data_batch_{number}.bin")


def cifar_torchvision(folder):
    """As pytorch-cifar has it: pictures in memory as arrays, transforms on PIL images."""
    steps = v1.Compose([v1.RandomCrop(32, padding=4), v1.RandomHorizontalFlip(),
                        v1.ToTensor(), v1.Normalize(CIFAR_MEAN, CIFAR_STD)])
    records = np.concatenate([np.fromfile(it, np.uint8) for it in sorted(folder.glob("*.bin"))])
    pictures = records.reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    pictures = np.ascontiguousarray(pictures)
    return batches(range(len(pictures)), lambda index: steps(Image.fromarray(pictures[index])))


def drain(epoch):
    """Iterates over an epoch; returns the number of samples and the CPU time of one."""
    began = time.process_time()
    count = 0
    for batch in epoch():
        first = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
        count += BATCH
        assert len(first) in (BATCH, 2 * BATCH)
    return (time.process_time() - began) / count


def measure(methods, rounds):
    times = {name: [] for name in methods}
    for turn in range(rounds + 1):
        for name, epoch in methods.items():
            seconds = drain(epoch)
            if turn:
                times[name].append(seconds * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--only", action="append", choices=["deit", "dinov2", "cifar"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    rounds = 1 if arguments.quick else arguments.rounds
    only = arguments.only or ["deit", "dinov2", "cifar"]
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        found = sorted(it for it in arguments.dir.iterdir() if it.suffix.lower() in (".jpg", ".jpeg"))
        paths = []
        for turn in range(arguments.repeat):
            for number, path in enumerate(found):
                place = folder / "classes" / f"{number % 4}" / f"{turn}_{number:05}.jpg"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(path.resolve())
                paths.append(str(place))
        print(f"{platform.machine()}, torch {torch.__version__}, torchvision "
              f"{torchvision.__version__}, timm {timm.__version__}, meetpoint "
              f"{meetpoint.__version__}; {len(paths)} JPEGs, {rounds} rounds; us of CPU time a sample")
        for form in ("jpeg", "fast"):
            meetpoint.pack(folder / "classes", folder / f"{form}.set", form=form, follow_links=True)
        makers = {}
        if "deit" in only:
            makers["deit"] = {
                "Meetpoint": lambda: ours(folder / "jpeg.set", "deit"),
                "Meetpoint, form fast": lambda: ours(folder / "fast.set", "deit"),
                "timm's own loader": lambda: deit_timm(folder),
                "torchvision on tensors": lambda: deit_tensor(paths),
                "OpenCV, albumentations": lambda: deit_opencv(paths),
            }
        if "dinov2" in only:
            columns = ["global_1", "global_2", "local"]
            makers["dinov2"] = {
                "Meetpoint": lambda: ours(folder / "jpeg.set", "dinov2", columns),
                "Meetpoint, form fast": lambda: ours(folder / "fast.set", "dinov2", columns),
                "DINOv2's own, on PIL images": lambda: dino_pil(paths),
                "torchvision on tensors": lambda: dino_tensor(paths),
            }
        if "cifar" in only:
            make_cifar(folder / "cifar", 2_000 if arguments.quick else 20_000)
            for store in ("raw", "encoded"):
                meetpoint.pack(folder / "cifar", folder / f"{store}.set", store=store)
            makers["cifar"] = {
                "Meetpoint, raw pixels": lambda: ours(folder / "raw.set", "cifar"),
                "Meetpoint, PNG": lambda: ours(folder / "encoded.set", "cifar"),
                "torchvision on PIL images": lambda: cifar_torchvision(folder / "cifar"),
            }
        for recipe, of_recipe in makers.items():
            methods = {name: make() for name, make in of_recipe.items()}
            medians = measure(methods, rounds)
            first = next(iter(medians.values()))
            print(f"\n| {recipe} | us a sample | samples a core-second | ratio to the first |")
            print("|---|---|---|---|")
            for name, value in medians.items():
                print(f"| {name} | {value:.1f} | {1e6 / value:.0f} | {value / first:.2f} |", flush=True)
            results[recipe] = medians
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    sys.exit(main())
