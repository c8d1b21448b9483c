"""Packs a folder of pictures and iterates over it with every strategy.

    python quickstart.py --pictures FOLDER
    python quickstart.py --quick          with a few pictures that it makes
"""

from __future__ import annotations

import argparse
import struct
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy

import meetpoint
from meetpoint import transforms as T

STRATEGIES = [
    "host-only",
    "device-only",
    "mte",
    "mte-feedback",
    "wrr",
    "wrr-frozen",
    "windowed",
    "auto",
]


def png(pixels: Any) -> bytes:
    """A PNG of uint8 [height, width] or [height, width, 3]."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def make_pictures(folder: Path, count: int) -> None:
    """Noise in two classes, as PNG."""
    noise = numpy.random.default_rng(0)
    for name in ("dark", "light"):
        (folder / name).mkdir(parents=True)
    for number in range(count):
        name, base = (("dark", 0), ("light", 128))[number % 2]
        picture = noise.integers(base, base + 128, (48, 64, 3), numpy.uint8)
        (folder / name / f"{number:03}.png").write_bytes(png(picture))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, help="a folder, one sub-folder per class")
    parser.add_argument("--quick", action="store_true", help="make a few pictures")
    arguments = parser.parse_args()
    if not arguments.quick and arguments.pictures is None:
        parser.error("give --pictures, or --quick")

    with tempfile.TemporaryDirectory() as temporary:
        pictures = arguments.pictures
        if arguments.quick:
            pictures = Path(temporary) / "pictures"
            make_pictures(pictures, 64)
        packed = meetpoint.pack(pictures, Path(temporary) / "pictures.set")
        print(f"{packed.samples} samples, labels {packed.labels}")

        recipe = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()])
        device = meetpoint.Emulated(allow_shared=True)
        for strategy in STRATEGIES:
            with meetpoint.Loader(
                packed.destination,
                recipe=recipe,
                batch_size=8,
                shuffle=True,
                strategy=strategy,
                device=None if strategy == "host-only" else device,
            ) as loader:
                begun = time.perf_counter()
                total = sum(float(images.mean()) * len(labels) for images, labels in loader)
                seconds = time.perf_counter() - begun
                schedule = loader.report()["epochs"][0]["schedule"]
            host, device_part = schedule["host_batches"], schedule["device_batches"]
            print(
                f"{strategy}: mean {total / packed.samples:.4f}, {host} batches by the host, "
                f"{device_part} by the device, {seconds:.3f} s"
            )


if __name__ == "__main__":
    main()
