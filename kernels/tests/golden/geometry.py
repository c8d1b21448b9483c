#!/usr/bin/env python3
"""Writes warps.txt, filters.txt and geometry.txt beside itself.

What operations on the geometry of a picture must give, from Pillow and NumPy: warps by
Image.transform and Image.rotate with parameters given here, and whole operations with random
parameters drawn as docs/formats.md says. Hashes are SHA-256; of those in warps.txt and geometry.txt, the first
16 digits.

    pip install pillow==13.0.0 numpy==2.4.6
    python3 geometry.py
"""

import math
import random
import statistics

import numpy as np
from make import PATTERNS, Draws, philox, sha, write
from PIL import Image, ImageOps

def short(image):
    """The first digits of the hash of an image's pixels."""
    return sha(image.tobytes())[:16]


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
                    lines.append(f"{before} : {short(made)}")
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
                        yield f"{before} : {made.width} {made.height} {short(made)}"


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
                yield f"{before} : {made.width} {made.height} {short(made)}"


FILTERS = {
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}


def filters():
    """Resizes by the filters that make.py does not have, in the form of resize.txt."""
    chance = random.Random(31)
    sizes = [
        (1, 1, 5, 3),
        (7, 1, 3, 9),
        (1, 13, 6, 4),
        (2, 2, 64, 64),
        (33, 65, 1, 1),
        (64, 48, 29, 48),
        (101, 77, 37, 53),
        (37, 53, 101, 77),
        (300, 200, 224, 224),
        (250, 999, 11, 13),
        (999, 40, 100, 7),
        (48, 48, 48, 48),
    ]
    lines = []
    for number, (w, h, to_w, to_h) in enumerate(sizes):
        for kind in PATTERNS:
            image = PATTERNS[kind](number, w, h)
            ends = sorted(chance.uniform(0, w) for _ in range(2))
            tops = sorted(chance.uniform(0, h) for _ in range(2))
            box = [float(np.float32(v)) for v in (ends[0], tops[0], ends[1], tops[1])]
            for name, resample in FILTERS.items():
                for source in (None, box):
                    made = image.resize((to_w, to_h), resample, box=source)
                    before = [kind, number, w, h, name, "antialias", to_w, to_h]
                    before += source or ["whole"]
                    lines.append(f"{words(*before)} : {sha(made.tobytes())}")
    write("filters.txt", lines)


def inverse_affine(center, angle, shift, scale, shear, to):
    """torchvision's _get_inverse_affine_matrix; the center of the result is that of the source
    for a result of another size."""
    turn, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    m = [value / scale for value in (d, -b, 0.0, -c, a, 0.0)]
    m[2] += m[0] * (-to[0] - shift[0]) + m[1] * (-to[1] - shift[1])
    m[5] += m[3] * (-to[0] - shift[0]) + m[4] * (-to[1] - shift[1])
    return [m[0], m[1], m[2] + center[0], m[3], m[4], m[5] + center[1]]


def affine(image, draws, resample, center, size, samples):
    """random_affine with the keys of the test's recipe."""
    w, h = image.size
    to_w, to_h = size or (w, h)
    angle = draws.uniform_in(-40.0, 60.0)
    shift = tuple(round(draws.uniform_in(-most, most)) for most in (0.25 * to_w, 0.5 * to_h))
    scale = draws.uniform_in(0.4, 1.75)
    shear = draws.uniform_in(-10.0, 20.0), draws.uniform_in(-5.0, 5.0)
    at = center or (w * 0.5, h * 0.5)
    to, grow = at, 1.0
    if size:
        to, grow = (to_w * 0.5, to_h * 0.5), max(to_w / w, to_h / h)
    scale *= grow
    if samples == "auto":
        samples = min(max(math.ceil(1 / scale), 1), 3)
    map = inverse_affine(at, angle, shift, scale, shear, to)
    map = [map[i] if i in (2, 5) else map[i] / samples for i in range(6)]
    large = (to_w * samples, to_h * samples)
    made = image.transform(large, Image.Transform.AFFINE, map, resample, fillcolor=(9, 80, 200))
    return made.reduce(samples) if samples > 1 else made


def affines():
    for number, (w, h) in enumerate(SIZES):
        image = PATTERNS["wave"](number, w, h)
        for sample in range(3):
            for interpolation, resample in WARPS.items():
                for center in (None, (1.5, 20.0)):
                    for size in (None, (31, 18)):
                        for samples in (1, 2, 3, "auto"):
                            draws = Draws(7, 2, sample, 1)
                            made = affine(image, draws, resample, center, size, samples)
                            before = ["affine", number, w, h, sample, interpolation, samples]
                            before += [*(center or ("none", "none")), *(size or ("none", "none"))]
                            yield f"{words(*before)} : {made.width} {made.height} {short(made)}"


def crumpets_matrix(source, target, scale, aspect, angle, shear, shift, mode):
    """crumpets' make_transform, from homogeneous points of the result to those of the source; it
    takes pixels at whole numbers, Pillow half a pixel further, from the corner to the centre."""
    (w, h), (u, v) = source, target
    ratio = (min if mode == "shortest" else max)(h / v, w / u) / scale
    to_centre = np.array([[1, 0, -u / 2], [0, 1, -v / 2], [0, 0, 1]])
    sheared = np.array([[1, shear[1], 0], [shear[0], 1, 0], [0, 0, 1]])
    scaled = np.diag([ratio * aspect, ratio / aspect, 1.0])
    turn = math.radians(angle)
    turned = np.array(
        [[math.cos(turn), -math.sin(turn), 0], [math.sin(turn), math.cos(turn), 0], [0, 0, 1]]
    )
    beyond = abs(w / 2 - u / 2 * ratio), abs(h / 2 - v / 2 * ratio)
    at = np.array(
        [[1, 0, w / 2 + beyond[0] * shift[1]], [0, 1, h / 2 + beyond[1] * shift[0]], [0, 0, 1]]
    )
    return ratio, at @ turned @ scaled @ sheared @ to_centre


def crumpets(image, draws, size, mode, resample, samples):
    """crumpets_affine with the keys of the test's recipe. The map is summed in the order of
    docs/formats.md, which NumPy's product agrees with to the last digits."""
    (w, h), (u, v) = image.size, size
    angle = 25.0 * normal(draws.word())
    scale = draws.uniform_in(0.5, 2.25)
    shear = draws.uniform_in(-0.25, 0.5), draws.uniform_in(-0.25, 0.5)
    shift = draws.uniform_in(-1.0, 1.0), draws.uniform_in(-1.0, 1.0)
    aspect = max(1.0 + 0.25 * normal(draws.word()), 0.1)
    ratio, matrix = crumpets_matrix((w, h), size, scale, aspect, angle, shear, shift, mode)
    across, down = ratio * aspect, ratio / aspect
    a, b, c, d = across, across * shear[1], down * shear[0], down
    turn = angle * (math.pi / 180.0)
    cos, sin = math.cos(turn), math.sin(turn)
    a0, a1, a3, a4 = cos * a - sin * c, cos * b - sin * d, sin * a + cos * c, sin * b + cos * d
    x = w / 2 + abs(w / 2 - u / 2 * ratio) * shift[1]
    y = h / 2 + abs(h / 2 - v / 2 * ratio) * shift[0]
    map = [a0, a1, x - a0 * (u / 2) - a1 * (v / 2), a3, a4, y - a3 * (u / 2) - a4 * (v / 2)]
    assert np.allclose(map, matrix[:2].reshape(-1), rtol=1e-9, atol=1e-9), (map, matrix)
    if samples == "auto":
        samples = min(max(math.ceil(ratio), 1), 3)
    map = [map[i] if i in (2, 5) else map[i] / samples for i in range(6)]
    large = (u * samples, v * samples)
    made = image.transform(large, Image.Transform.AFFINE, map, resample, fillcolor=(9, 80, 200))
    return made.reduce(samples) if samples > 1 else made


def crumpets_affines():
    for number, (w, h) in enumerate(SIZES):
        image = PATTERNS["wave"](number, w, h)
        for sample in range(6):
            for mode in ("shortest", "longest"):
                for interpolation in ("nearest", "bilinear"):
                    for samples in (1, "auto"):
                        draws = Draws(7, 2, sample, 1)
                        resample = WARPS[interpolation]
                        made = crumpets(image, draws, (31, 18), mode, resample, samples)
                        before = words("crumpets", number, w, h, sample, mode, interpolation, samples)
                        yield f"{before} : {made.width} {made.height} {short(made)}"


def normal(word):
    return statistics.NormalDist().inv_cdf((word + 0.5) / 2**32)


MODES = ("constant", "edge", "reflect", "symmetric")


def padded(image, padding, mode, fill):
    if mode == "constant":
        return ImageOps.expand(image, border=tuple(padding), fill=fill)
    left, top, right, bottom = padding
    values = np.pad(np.asarray(image), ((top, bottom), (left, right), (0, 0)), mode)
    return Image.fromarray(values)


def pads():
    for number, (w, h) in enumerate(SIZES):
        image = PATTERNS["noise"](number, w, h)
        for mode in MODES:
            for padding in ((0, 0, 0, 0), (1, 2, 3, 4), (100, 0, 3, 77)):
                made = padded(image, padding, mode, (3, 2, 1))
                before = words("pad", number, w, h, mode, *padding)
                yield f"{before} : {made.width} {made.height} {short(made)}"


def crop_of(image, draws, size, padding, if_needed, mode):
    """torchvision's RandomCrop; None where it raises."""
    w, h = size
    left, top, right, bottom = padding
    if if_needed:
        down = max(0, h - (image.height + top + bottom))
        across = max(0, w - (image.width + left + right))
        left, top, right, bottom = left + across, top + down, right + across, bottom + down
    image = padded(image, (left, top, right, bottom), mode, (3, 2, 1))
    if image.height < h or image.width < w:
        return None
    y = draws.up_to(image.height - h) if image.height > h else 0
    x = draws.up_to(image.width - w) if image.width > w else 0
    return image.crop((x, y, x + w, y + h))


def crops():
    for number, (w, h) in enumerate(SIZES):
        image = PATTERNS["noise"](number, w, h)
        for mode in MODES:
            for padding in ((0, 0, 0, 0), (4, 4, 4, 4), (30, 0, 1, 25)):
                for size in ((20, 16), (3, 2)):
                    for if_needed in (False, True):
                        for sample in range(3):
                            draws = Draws(7, 2, sample, 1)
                            made = crop_of(image, draws, size, padding, if_needed, mode)
                            before = ["crop", number, w, h, sample, mode, *padding, *size, if_needed]
                            after = ["small", "small", "small"]
                            if made:
                                after = [made.width, made.height, short(made)]
                            yield f"{words(*before)} : {words(*after)}"


def zooms():
    for number, (w, h) in enumerate(SIZES):
        image = PATTERNS["noise"](number, w, h)
        for sample in range(4):
            draws = Draws(7, 2, sample, 1)
            made = image
            if draws.uniform() < 0.8:
                ratio = draws.uniform_in(1.0, 3.0)
                wide, high = int(w * ratio), int(h * ratio)
                left = int((wide - w) * draws.uniform())
                top = int((high - h) * draws.uniform())
                sides = (left, top, wide - w - left, high - h - top)
                made = padded(image, sides, "constant", (3, 2, 1))
            before = words("zoom", number, w, h, sample)
            yield f"{before} : {made.width} {made.height} {short(made)}"


def resized(image, width, height):
    if width < 1 or height < 1:
        return "small small small"
    made = image.resize((width, height), Image.Resampling.LANCZOS)
    return f"{made.width} {made.height} {short(made)}"


def resizes():
    for number, (w, h) in enumerate([*SIZES, (3, 200), (400, 3)]):
        image = PATTERNS["wave"](number, w, h)
        short, long = min(w, h), max(w, h)
        for side, most in ((20, 21), (40, 60), (7, 100)):
            to_short, to_long = side, int(side * long / short)
            if to_long > most:
                to_short, to_long = int(most * to_short / to_long), most
            size = (to_short, to_long) if w <= h else (to_long, to_short)
            yield f"{words('max_size', number, w, h, side, most)} : {resized(image, *size)}"
        for sample in range(4):
            side = 5 + Draws(7, 2, sample, 1).up_to(20 - 5 - 1)
            long_side = int(side * long / short)
            size = (side, long_side) if w <= h else (long_side, side)
            yield f"{words('random_resize', number, w, h, sample)} : {resized(image, *size)}"
            ratio = (8, 16, 33)[Draws(7, 2, sample, 1).up_to(2)] / short
            ratio = min(ratio, 50 / long)
            after = resized(image, int(w * ratio), int(h * ratio))
            yield f"{words('shortest', number, w, h, sample)} : {after}"
            scale = Draws(7, 2, sample, 1).uniform_in(0.1, 2.0)
            ratio = min(30 / h, 40 / w) * scale
            after = resized(image, int(w * ratio), int(h * ratio))
            yield f"{words('jitter', number, w, h, sample)} : {after}"


def smoothed(values, taps, sigmas):
    """Both passes of a Gaussian over a field, in float32, sums from the first tap on."""
    radius = taps // 2
    for axis, sigma in ((1, sigmas[0]), (0, sigmas[1])):
        exact = [math.exp(-((tap - radius) ** 2) / (2 * sigma * sigma)) for tap in range(taps)]
        total = sum(exact)
        pad = [(radius, radius) if at == axis else (0, 0) for at in range(2)]
        wide = np.pad(values, pad, "reflect")
        made = np.zeros_like(values)
        for tap, weight in enumerate(exact):
            part = np.take(wide, range(tap, tap + values.shape[axis]), axis)
            made = made + np.float32(weight / total) * part
        values = made
    return values


def elastic(image, draws, alpha, sigma, nearest, fill):
    w, h = image.size
    key = [draws.word(), draws.word()]
    fields = []
    for channel in range(2):
        field = np.zeros((h, w), np.float32)
        for y in range(h):
            for block in range((w + 3) // 4):
                for lane, word in enumerate(philox([block, y, channel, 0], key)):
                    if block * 4 + lane < w:
                        field[y, block * 4 + lane] = (word >> 8) * 2.0**-24 * 2 - 1
        if sigma[channel] > 0:
            taps = int(8 * sigma[channel] + 1)
            field = smoothed(field, taps + (taps % 2 == 0), sigma)
        fields.append(field.astype(np.float64))
    ys, xs = np.mgrid[0:h, 0:w].astype(np.float64)
    xs = xs + fields[0] * alpha[0] / 2.0
    ys = ys + fields[1] * alpha[1] / 2.0
    values = np.asarray(image).astype(np.float64)
    fill = np.array(fill, np.float64)

    def at(x, y):
        inside = (x >= 0) & (x < w) & (y >= 0) & (y < h)
        x, y = x.clip(0, w - 1).astype(int), y.clip(0, h - 1).astype(int)
        return inside[..., None].astype(np.float64), values[y, x]

    if nearest:
        inside, found = at(np.round(xs), np.round(ys))
        made = np.where(inside > 0, found, fill)
    else:
        left, above = np.floor(xs), np.floor(ys)
        dx, dy = (xs - left)[..., None], (ys - above)[..., None]
        total, share = np.zeros_like(values), np.zeros((h, w, 1))
        for right, below, weight in (
            (0, 0, (1 - dx) * (1 - dy)),
            (1, 0, dx * (1 - dy)),
            (0, 1, (1 - dx) * dy),
            (1, 1, dx * dy),
        ):
            inside, found = at(left + right, above + below)
            total += inside * weight * found
            share += inside * weight
        made = np.round((total - fill) * share + fill)
    return Image.fromarray(made.clip(0, 255).astype(np.uint8))


def elastics():
    for number, (w, h) in enumerate(SIZES):
        image = PATTERNS["wave"](number, w, h)
        for name, alpha, sigma in (
            ("default", (50.0, 50.0), (5.0, 5.0)),
            ("rough", (9.0, 3.0), (0.0, 0.0)),
            ("uneven", (300.0, 40.0), (1.0, 3.3)),
        ):
            for nearest in (False, True):
                draws = Draws(7, 2, number, 1)
                made = elastic(image, draws, alpha, sigma, nearest, (9, 200, 31))
                before = words("elastic", number, w, h, name, "nearest" if nearest else "bilinear")
                yield f"{before} : {made.width} {made.height} {short(made)}"


def operations():
    lines = [*rotations(), *perspectives(), *affines(), *pads(), *crops(), *zooms(), *resizes(), *elastics(), *crumpets_affines()]
    write("geometry.txt", lines)


if __name__ == "__main__":
    warps()
    filters()
    operations()
