#!/usr/bin/env python3
"""Writes warps.txt and geometry.txt beside itself.

What operations on the geometry of a picture must give, from Pillow and NumPy: warps by
Image.transform and Image.rotate with parameters given here, and whole operations with random
parameters drawn as docs/formats.md says. Hashes are SHA-256.

    pip install pillow==13.0.0 numpy==2.4.6
    python3 geometry.py
"""

import math
import random

import numpy as np
from make import PATTERNS, Draws, sha, write
from PIL import Image

WARPS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
SIZES = [(1, 1), (1, 7), (9, 1), (2, 2), (33, 21), (40, 64), (97, 61)]


def words(*items):
    return " ".join(repr(it) if isinstance(it, float) else str(it) for it in items)


def affine_maps(chance, w, h):
    """Of every way of Image.transform: scales, rotations, shears, and positions beyond 32768."""
    yield "same", (1, 0, 0, 0, 1, 0)
    yield "shift", (1, 0, 0.5, 0, 1, -0.25)
    yield "scale", (chance.uniform(0.1, 3), 0, chance.uniform(-2, 2), 0, -0.7, h)
    for number in range(3):
        angle, grow = chance.uniform(-math.pi, math.pi), math.exp(chance.uniform(-1, 1))
        a, b = math.cos(angle) * grow, math.sin(angle) * grow
        shear = chance.uniform(-1, 1)
        move = (chance.uniform(-0.3, 1) * w, chance.uniform(-0.3, 1) * h)
        yield f"turn{number}", (a, b, move[0], -b + shear, a, move[1])
    yield "far", (chance.uniform(-2, 2), 700.25, -33000.5, 900.5, 0.5, -20000.75)


def perspective_maps(chance, w, h):
    yield "flat", (0.9, 0.1, -1.5, 0.05, 1.1, 0.25, 0.0, 0.0)
    for number in range(3):
        tilt = [chance.uniform(-0.5, 0.9) / side for side in (w, h)]
        a = [chance.uniform(0.5, 1.5) if i % 4 == 0 else chance.uniform(-0.4, 0.4) for i in range(6)]
        a[2], a[5] = a[2] * w, a[5] * h
        values = [float(np.float32(v)) for v in (*a, *tilt)]
        yield f"tilt{number}", tuple(values)


def warps():
    chance = random.Random(23)
    lines = []
    for number, (w, h) in enumerate(SIZES):
        for kind in PATTERNS:
            image = PATTERNS[kind](number, w, h)
            size = (chance.randrange(1, 80), chance.randrange(1, 80))
            fill = tuple(chance.randrange(256) for _ in range(3))
            maps = [(Image.Transform.AFFINE, *it) for it in affine_maps(chance, w, h)]
            maps += [(Image.Transform.PERSPECTIVE, *it) for it in perspective_maps(chance, w, h)]
            for method, name, map in maps:
                map = tuple(float(it) for it in map)
                for interpolation, resample in WARPS.items():
                    made = image.transform(size, method, map, resample, fillcolor=fill)
                    before = words(kind, number, w, h, name, interpolation, *size, *fill, *map)
                    lines.append(f"{before} : {sha(made.tobytes())}")
    write("warps.txt", lines)


def rotations():
    """Image.rotate by fixed angles."""
    for number, (w, h) in enumerate([*SIZES, (50, 50)]):
        image = PATTERNS["noise"](number, w, h)
        for angle in (0.0, 90.0, 180.0, -90.0, 270.0, 360.0, 30.5, -123.25, 1e-20, -1e-20, 45.0):
            for expand in (False, True):
                for center in (None, (3.5, 0.0)):
                    for interpolation, resample in WARPS.items():
                        made = image.rotate(angle, resample, expand, center, fillcolor=(9, 8, 7))
                        at = center or ("none", "none")
                        before = words("rotate", number, w, h, angle, expand, *at, interpolation)
                        yield f"{before} : {made.width} {made.height} {sha(made.tobytes())}"


def solved(rows):
    """Gauss's elimination as docs/formats.md has it; close to NumPy's least squares."""
    matrix = [[float(value) for value in row] for row in rows]
    for column in range(8):
        pivot = max(range(column, 8), key=lambda row: abs(matrix[row][column]))
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        if matrix[column][column] == 0:
            return None
        for row in range(column + 1, 8):
            factor = matrix[row][column] / matrix[column][column]
            for at in range(column, 9):
                matrix[row][at] -= factor * matrix[column][at]
    found = [0.0] * 8
    for column in reversed(range(8)):
        known = 0.0
        for at in range(column + 1, 8):
            known += matrix[column][at] * found[at]
        found[column] = (matrix[column][8] - known) / matrix[column][column]
    exact = np.array(rows, float)
    expected = np.linalg.lstsq(exact[:, :8], exact[:, 8], rcond=None)[0]
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-12), (found, expected)
    return [float(np.float32(value)) for value in found]


def perspective(image, distortion_scale, p, resample, fill, draws):
    """torchvision's RandomPerspective."""
    if not draws.uniform() < p:
        return image
    w, h = image.size
    bw, bh = int(distortion_scale * (w // 2)), int(distortion_scale * (h // 2))
    ends = []
    for x, y in ((0, 0), (w - 1 - bw, 0), (w - 1 - bw, h - 1 - bh), (0, h - 1 - bh)):
        x += draws.up_to(bw)
        ends.append((x, y + draws.up_to(bh)))
    starts = [(0, 0), (w - 1, 0), (w - 1, h - 1), (0, h - 1)]
    rows = []
    for (x, y), (u, v) in zip(ends, starts):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y, u])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y, v])
    map = solved(rows)
    if map is None:
        return image
    return image.transform(image.size, Image.Transform.PERSPECTIVE, map, resample, fillcolor=fill)


def perspectives():
    for number, (w, h) in enumerate(SIZES):
        image = PATTERNS["wave"](number, w, h)
        for sample in range(6):
            for interpolation, resample in WARPS.items():
                draws = Draws(7, 2, sample, 1)
                made = perspective(image, 0.6, 0.8, resample, (1, 200, 30), draws)
                before = words("perspective", number, w, h, sample, interpolation)
                yield f"{before} : {made.width} {made.height} {sha(made.tobytes())}"


def operations():
    write("geometry.txt", [*rotations(), *perspectives()])


if __name__ == "__main__":
    warps()
    operations()
