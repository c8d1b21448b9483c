#!/usr/bin/env python3
"""Writes the pictures of this folder and index.txt: small JPEGs of every kind, and what they are.

The pictures are generated (ramps, waves and noise) and encoded by libjpeg (jpeg_tool.c), some then
changed byte by byte (cases.py lists them, changes.py says how). What they decode to is what
libjpeg-turbo's default decoder gives, for CMYK and YCCK what Pillow's `convert("RGB")` makes of that.
Two versions must agree on every file: the one that jpeg_tool is linked with (2.1.5 when this was made)
and the one inside Pillow (3.2.0), each with its SIMD code; where the first one differs without it, the
index says so.

    apt install gcc libjpeg62-turbo-dev
    pip install pillow==13.0.0 numpy==2.4.6
    python3 make.py            # --check: changes nothing, fails where something would change

A line of index.txt: name, kind, width and height; then, behind the colon, the SHA-256 of the pixels
(rows of width * 3 bytes), and five regions, each as x,y,width,height,hash with the first 16 digits
of the SHA-256 of its pixels. Lines that begin with # say what the next file shows. Kinds:

    rgb    what every version of libjpeg-turbo gives
    simd   what libjpeg-turbo gives with SIMD code; its C code gives something else, since no
           picture has such coefficients (the C code wraps around where SIMD code saturates)
    error  must be refused, or, in Pillow, is
    filled damaged: refused, or filled in as libjpeg-turbo does it while it warns
    lost   damaged, and libjpeg gives up on it: refused either way
"""

import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, features

from cases import CASES, every_case

HERE = pathlib.Path(__file__).parent
CHECK = "--check" in sys.argv


class Tool:
    """jpeg_tool, compiled for this run."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "jpeg_tool"
        source = HERE / "jpeg_tool.c"
        subprocess.run(["cc", "-O2", "-o", self.path, source, "-ljpeg"], check=True)

    def encode(self, pixels, options):
        words = [f"{key}={value}" for key, value in options.items()]
        run = subprocess.run([self.path, "encode", *words], input=pixels, capture_output=True)
        assert run.returncode == 0, (options, run.stderr)
        return run.stdout

    def decode(self, data, simd=True, damaged=False):
        """The pixels, or None for an error or, unless it is said to be `damaged`, a warning."""
        options = ["damaged=1"] if damaged else []
        environment = dict(os.environ, **({} if simd else {"JSIMD_FORCENONE": "1"}))
        run = subprocess.run(
            [self.path, "decode", *options], input=data, capture_output=True, env=environment
        )
        return run.stdout if run.returncode == 0 else None


def picture(width, height, channels, seed):
    """Ramps, a wave, an edge and noise in a third of the area."""
    random = np.random.RandomState(seed)
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    values = 128 + 70 * np.sin((x * (c + 2) + y * 3 + seed) / 9.0) + (x * 2 - y) * (c - 1) % 60
    values += np.where((x + 2 * y) % 31 < 9, 60 - 50 * c, 0)
    noise = random.randint(-120, 120, values.shape)
    values += np.where((x // 5 + y // 3) % 3 == 0, noise, noise // 16)
    return np.clip(values, 0, 255).astype(np.uint8).tobytes()


def by_pillow(data):
    """Mode and pixels, or None where Pillow refuses."""
    try:
        image = Image.open(io.BytesIO(data))
        mode, rgb = image.mode, image.convert("RGB")
        return mode, rgb.size, rgb.tobytes(), image.tobytes()
    except (OSError, SyntaxError, ValueError):
        return None


def regions(name, width, height):
    """Five rectangles inside: corners, one pixel, a strip, and two anywhere."""
    random = np.random.RandomState(int(hashlib.sha256(name.encode()).hexdigest()[:8], 16))

    def anywhere():
        w, h = random.randint(1, width + 1), random.randint(1, height + 1)
        return random.randint(0, width - w + 1), random.randint(0, height - h + 1), w, h

    right, lower = width // 2, height // 2
    return [
        (right, lower, width - right, height - lower),
        (random.randint(0, width), random.randint(0, height), 1, 1),
        (0, lower, width, 1),
        anywhere(),
        anywhere(),
    ]


def cropped(pixels, width, region):
    x, y, w, h = region
    return b"".join(pixels[((y + r) * width + x) * 3 :][: w * 3] for r in range(h))


def sha(data):
    return hashlib.sha256(data).hexdigest()


def hashes(name, pixels, width, height):
    """That of the whole picture, and regions with theirs."""
    parts = [
        ",".join(map(str, region)) + "," + sha(cropped(pixels, width, region))[:16]
        for region in regions(name, width, height)
    ]
    return f"{sha(pixels)} {' '.join(parts)}"


def damaged_expectation(name, data, tool, size):
    """Pillow is not asked: it stops at damage, or fills in less."""
    pixels = tool.decode(data, damaged=True)
    if name.startswith("lost-"):
        assert pixels is None, f"libjpeg takes {name}"
        return f"{name} lost 0 0 :"
    assert pixels is not None, f"libjpeg refuses {name}"
    width, height = size
    if len(pixels) == width * height * 4:
        pixels = Image.frombytes("CMYK", size, bytes(255 - v for v in pixels)).convert("RGB").tobytes()
    return f"{name} filled {width} {height} : {hashes(name, pixels, width, height)}"


def expectation(name, data, tool, size):
    pillow, own, scalar = by_pillow(data), tool.decode(data), tool.decode(data, simd=False)
    if name.startswith(("filled-", "lost-")):
        return damaged_expectation(name, data, tool, size)
    if name.startswith("error-"):
        if pillow is not None and own is not None:
            print(f"  {name}: libjpeg and Pillow take it")
        return f"{name} error 0 0 :"
    assert pillow is not None, f"Pillow refuses {name}"
    assert own is not None, f"libjpeg refuses or warns: {name}"
    mode, (width, height), rgb, stored = pillow
    # Pillow takes every CMYK as inverted.
    theirs = bytes(255 - value for value in stored) if mode == "CMYK" else rgb
    assert theirs == own, f"{name}: Pillow differs from libjpeg"
    kind = "rgb" if scalar == own else "simd"
    return f"{name} {kind} {width} {height} : {hashes(name, rgb, width, height)}"


def write(path, data):
    if CHECK:
        assert path.read_bytes() == data, f"{path.name} would change"
    else:
        path.write_bytes(data)


def main():
    version = features.version("libjpeg_turbo")
    print(f"Pillow {Image.__version__} with libjpeg-turbo {version}")
    every_case()
    lines, bytes_total = [], 0
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(folder)
        if not CHECK:
            for old in HERE.glob("*.jpg"):
                old.unlink()
        for seed, (name, shows, width, height, change, options) in enumerate(CASES):
            channels = {"gray": 1, "cmyk": 4, "unknown": 2}.get(options.get("input"), 3)
            pixels = picture(width, height, channels, seed)
            sizes = {"width": width, "height": height}
            data = tool.encode(pixels, sizes | options)
            data = change(data) if change else data
            bytes_total += len(data)
            write(HERE / f"{name}.jpg", data)
            lines += [f"# {shows}", expectation(name, data, tool, (width, height))]
    write(HERE / "index.txt", ("\n".join(lines) + "\n").encode())
    print(f"{len(CASES)} files, {bytes_total} bytes")


main()
