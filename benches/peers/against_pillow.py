#!/usr/bin/env python3
"""Holds our resize against Pillow's, byte for byte, on random boxes with fractions of pixels.

    cargo build --release -p meetpoint-jpeg-benches --bin kernel-server
    pip install pillow==13.0.0 numpy==2.4.6
    python3 against_pillow.py DIR [--resizes 2000] [--seed 1] [--cpu avx2] [--server PATH]

The pictures of DIR (generated noise without DIR) are handed over as PNG files, so that no JPEG
decoder takes part. Exit code 1 where a byte differs; the first such resizes are printed.
"""

import argparse
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
NAMED_MAX = 10


class Server:
    """Our kernels behind a pipe; kernel-server.rs describes the protocol."""

    def __init__(self, path, cpu):
        command = [path, *([cpu] if cpu else [])]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *words):
        self.child.stdin.write(("\t".join(map(str, words)) + "\n").encode())
        self.child.stdin.flush()
        width, height = struct.unpack("<II", self.read(8))
        if width == 0:
            raise RuntimeError(self.read(struct.unpack("<I", self.read(4))[0]).decode())
        pixels = np.frombuffer(self.read(width * height * 3), np.uint8)
        return pixels.reshape(height, width, 3)

    def read(self, count):
        data = self.child.stdout.read(count)
        if len(data) != count:
            raise RuntimeError("the server ended")
        return data


def sources(directory, count, chance, folder):
    """Pictures as (path of a PNG, Image)."""
    if directory:
        paths = sorted(path for path in pathlib.Path(directory).rglob("*") if path.is_file())
        paths = chance.sample(paths, min(count, len(paths)))
    else:
        paths = [None] * count
    for number, path in enumerate(paths):
        if path is None:
            size = chance.randint(1, 300), chance.randint(1, 300)
            noise = np.random.RandomState(number).randint(0, 256, (size[1], size[0], 3), np.uint8)
            image = Image.fromarray(noise)
        else:
            try:
                image = Image.open(path).convert("RGB")
            except OSError:
                continue
        # A part, so that small and odd sizes occur.
        width, height = chance.randint(1, image.width), chance.randint(1, image.height)
        image = image.crop((0, 0, width, height))
        png = pathlib.Path(folder) / f"{number}.png"
        image.save(png, compress_level=1)
        yield png, image


def random_box(chance, width, height):
    """A box inside, as float32; whole numbers and the whole picture among them."""

    def span(length):
        kind = chance.randint(0, 4)
        if kind == 0:
            return 0.0, float(length)
        low, high = sorted((chance.uniform(0, length), chance.uniform(0, length)))
        if kind == 1:
            low, high = float(int(low)), float(int(high) + 1)
        low, high = np.float32(low), np.float32(min(high, length))
        return (float(low), float(high)) if high - low > 1e-3 else (0.0, float(length))

    (left, right), (top, bottom) = span(width), span(height)
    return left, top, right, bottom


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", nargs="?")
    parser.add_argument("--resizes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", help="instruction set of our kernels")
    parser.add_argument("--server", default="target/release/kernel-server")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    server = Server(arguments.server, arguments.cpu)
    each = 20
    done = wrong = values = worst = 0
    with tempfile.TemporaryDirectory() as folder:
        count = -(-arguments.resizes // each)
        for png, image in sources(arguments.directory, count, chance, folder):
            for _ in range(each):
                box = random_box(chance, image.width, image.height)
                size = chance.choice([224, chance.randint(1, 400)]), chance.randint(1, 400)
                name = chance.choice(list(FILTERS))
                ours = server.ask("resize", png, *map(repr, box), *size, name, 1)
                theirs = np.asarray(image.resize(size, FILTERS[name], box=box))
                done, values = done + 1, values + theirs.size
                if not np.array_equal(ours, theirs):
                    wrong += 1
                    far = int(np.abs(ours.astype(int) - theirs.astype(int)).max())
                    worst = max(worst, far)
                    if wrong <= NAMED_MAX:
                        print(f"{image.size} box {box} to {size} {name}: by up to {far}")
            png.unlink()
    print(f"{done} resizes, {values} values, {wrong} resizes differ, by at most {worst}")
    sys.exit(1 if wrong or not done else 0)


main()
