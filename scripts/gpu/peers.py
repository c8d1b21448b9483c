#!/usr/bin/env python3
"""Decodes photographs with nvJPEG (through torchvision) and resizes them on the GPU, as a peer.

Prints one JSON object: images per second of each pipeline, by CUDA events after a warm-up, the
median of several repetitions; and the bandwidth of a copy inside the GPU's memory.

    python scripts/gpu/peers.py PHOTOS [--batch 256] [--repetitions 7]

Needs torch and torchvision with CUDA. Meetpoint itself is not used.
"""

import argparse
import json
import pathlib
import random
import statistics
import time

import torch
import torchvision
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

SIZE = 224


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=pathlib.Path, help="folder of JPEG files")
    parser.add_argument("--batch", type=int, default=256, help="images in a batch")
    parser.add_argument("--repetitions", type=int, default=7, help="timed batches; their median counts")
    options = parser.parse_args()
    files = sorted(path for path in options.photos.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        parser.error(f"{options.photos} has no JPEG files")
    names = [files[index % len(files)] for index in range(options.batch)]
    encoded = [torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8) for path in names]
    crops = random_crops([size_of(data) for data in encoded])
    device = torch.device("cuda:0")

    def decode() -> list[torch.Tensor]:
        return decode_jpeg(encoded, mode=ImageReadMode.RGB, device=device)

    def decode_and_crop() -> torch.Tensor:
        images = decode()
        return torch.stack([crop_and_resize(image, crop) for image, crop in zip(images, crops)])

    def decode_crop_normalize() -> torch.Tensor:
        batch = decode_and_crop()
        batch = F.to_dtype(batch, torch.float32, scale=True)
        return F.normalize(batch, mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])

    rates = {
        "nvjpeg_decode": rate(decode, options),
        "nvjpeg_decode_crop_resize": rate(decode_and_crop, options),
        "nvjpeg_decode_crop_resize_normalize": rate(decode_crop_normalize, options),
    }
    print(
        json.dumps(
            {
                "gpu": torch.cuda.get_device_name(0),
                "torch": torch.__version__,
                "torchvision": torchvision.__version__,
                "batch": options.batch,
                "files": len(files),
                "bytes_mean": sum(len(data) for data in encoded) / len(encoded),
                "pixels_mean": sum(width * height for width, height in map(size_of, encoded)) / len(encoded),
                "copy_bytes_per_second": copy_bandwidth(device),
                "images_per_second": rates,
            }
        )
    )


def size_of(data: torch.Tensor) -> tuple[int, int]:
    """Columns and rows, from the frame header."""
    raw = bytes(data.numpy())
    at = 2
    while True:
        marker, length = raw[at + 1], int.from_bytes(raw[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xC2:
            return int.from_bytes(raw[at + 7 : at + 9], "big"), int.from_bytes(raw[at + 5 : at + 7], "big")
        at += 2 + length


def random_crops(sizes: list[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Crops as random_resized_crop draws them: top, left, height, width."""
    random.seed(0)
    crops = []
    for width, height in sizes:
        for _ in range(10):
            area = width * height * random.uniform(0.08, 1.0)
            aspect = random.uniform(0.75, 4 / 3)
            w, h = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
            if w <= width and h <= height:
                crops.append((random.randint(0, height - h), random.randint(0, width - w), h, w))
                break
        else:
            side = min(width, height)
            crops.append(((height - side) // 2, (width - side) // 2, side, side))
    return crops


def crop_and_resize(image: torch.Tensor, crop: tuple[int, int, int, int]) -> torch.Tensor:
    return F.resized_crop(
        image, *crop, size=[SIZE, SIZE], interpolation=InterpolationMode.BILINEAR, antialias=True
    )


def rate(work, options: argparse.Namespace) -> float:
    """Images per second, by the clock around a synchronised batch."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(options.repetitions):
        started = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return options.batch / statistics.median(times)


def copy_bandwidth(device: torch.device) -> float:
    """Bytes read and written per second by a copy of 1 GiB."""
    source = torch.randint(0, 255, (1 << 30,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(10):
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return 2 * source.numel() / statistics.median(times)


if __name__ == "__main__":
    main()
