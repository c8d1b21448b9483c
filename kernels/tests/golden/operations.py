#!/usr/bin/env python3
"""Writes operations.txt beside itself: operations on colours, and those that choose among others.

What the kernels must give, from Pillow's functions that torchvision calls for PIL images, with
random parameters drawn after docs/formats.md. A line holds a picture, a recipe's name or an
operation with its keys, and the SHA-256 of the result.

    pip install pillow==13.0.0 numpy==2.4.6
    python3 operations.py
"""

import math
import statistics

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from make import PATTERNS, PROPERTIES, Draws, elements, philox, sha, write

PICTURES = [
    ("noise", 1, 61, 43),
    ("wave", 2, 90, 57),
    ("noise", 3, 1, 1),
    ("wave", 4, 2, 9),
    ("noise", 5, 9, 2),
    ("wave", 6, 3, 3),
    ("noise", 7, 300, 40),
]


def adjust_gamma(image, gamma, gain=1.0):
    """torchvision's adjust_gamma on a PIL image."""
    table = [int((255 + 1 - 1e-3) * gain * pow(value / 255.0, gamma)) for value in range(256)]
    return image.point(table * 3)


def sigmoid_contrast(image, contrast, gammas=(1.0, 1.0, 1.0)):
    """The tables of crumpets' add_gamma for uint8, in float64."""
    span = 6.279
    offset = 1 / (1 + math.exp(span))
    end = math.atanh(1 - 2 * offset)
    table = []
    for value in range(256):
        at = value / 255
        if contrast < 0:
            curve = (math.atanh((1 - 2 * offset) * (2 * at - 1)) + end) / (2 * end)
        else:
            curve = (1 / (1 + math.exp(span - 2 * span * at)) - offset) / (1 - 2 * offset)
        table.append((1 - abs(contrast)) * at + abs(contrast) * curve)
    powers = [[min(max(at, 0.0), 1.0) ** gamma for at in table] for gamma in gammas]
    return image.point([round(255 * power) for powers in powers for power in powers])


def human_gamma(human):
    """crumpets' human2gamma."""
    if human >= 0.999:
        return 0.00099999999999988987
    if human <= -0.999:
        return 999.99999999999909
    gamma = human + 1
    return 2 - gamma if gamma > 1 else 1 / gamma


def random_gamma(image, draws, brightness, color, contrast, p):
    """crumpets' add_gamma with the random parameters of its MixtureRNG, in its order."""
    gray, colors, share = 1.0, [1.0] * 3, 0.0
    if brightness is not None and draws.uniform() < p:
        gray = human_gamma(draws.uniform_in(*brightness))
    if color is not None and draws.uniform() < p:
        colors = [human_gamma(draws.uniform_in(*color)) for _ in range(3)]
    if contrast is not None and draws.uniform() < p:
        share = draws.uniform_in(*contrast)
    return sigmoid_contrast(image, share, [gray * gamma for gamma in colors])


def random_sigmoid_contrast(image, draws, contrast, p):
    if draws.uniform() >= p:
        return image
    return sigmoid_contrast(image, draws.uniform_in(*contrast))


def sharpness(image, sharpness_factor):
    return ImageEnhance.Sharpness(image).enhance(sharpness_factor)


def permute(image, order):
    return Image.fromarray(np.ascontiguousarray(np.asarray(image)[..., order]))


def grey(image):
    return image.convert("L").convert("RGB")


SINGLE = {
    "random_invert": (ImageOps.invert, [{}]),
    "random_posterize": (ImageOps.posterize, [{"bits": bits} for bits in (1, 3, 4, 8)]),
    "random_solarize": (
        ImageOps.solarize,
        [{"threshold": value} for value in (0.0, 100.5, 128.0, 255.0, 256.0)],
    ),
    "random_autocontrast": (ImageOps.autocontrast, [{}]),
    "random_equalize": (ImageOps.equalize, [{}]),
    "random_adjust_sharpness": (
        sharpness,
        [{"sharpness_factor": value} for value in (0.0, 0.37, 1.0, 2.0, 9.5)],
    ),
    "adjust_gamma": (
        adjust_gamma,
        [
            {"gamma": gamma, "gain": gain}
            for gamma in (0.0, 0.45, 1.0, 2.2)
            for gain in (0.3, 1.0, 1.7)
        ],
    ),
    "sigmoid_contrast": (
        sigmoid_contrast,
        [{"contrast": value} for value in (-1.0, -0.3, 0.0, 0.5, 1.0)],
    ),
}


def singles():
    for kind, seed, width, height in PICTURES:
        image = PATTERNS[kind](seed, width, height)
        for name, (function, cases) in SINGLE.items():
            for keys in cases:
                words = " ".join(f"{key}={value!r}" for key, value in keys.items())
                made = function(image, **keys)
                yield f"{kind} {seed} {width} {height} {name} {words}", made
                # Few values, from 0 to 76 or from 89 on: histograms with gaps.
                for gain in (0.3, 0.35):
                    few = adjust_gamma(image, 1.0, gain)
                    if gain == 0.35:
                        few = ImageOps.invert(few)
                    made = function(few, **keys)
                    yield f"{kind} {seed} {width} {height} {name} {words} gain={gain}", made


def shuffled(items, draws):
    items = list(items)
    for last in range(len(items) - 1, 0, -1):
        other = draws.up_to(last)
        items[last], items[other] = items[other], items[last]
    return items


def distort(image, draws, p):
    """torchvision's RandomPhotometricDistort with our random parameters."""
    bounds = {
        "brightness": (0.875, 1.125),
        "contrast": (0.5, 1.5),
        "saturation": (0.5, 1.5),
        "hue": (-0.05, 0.05),
    }
    factors = {
        name: draws.uniform_in(*interval) if draws.uniform() < p else None
        for name, interval in bounds.items()
    }
    contrast_before = draws.uniform() < 0.5
    order = shuffled(range(3), draws) if draws.uniform() < p else None

    def change(name):
        nonlocal image
        if factors[name] is not None:
            image = PROPERTIES[name](image, factors[name])

    change("brightness")
    if contrast_before:
        change("contrast")
    change("saturation")
    change("hue")
    if not contrast_before:
        change("contrast")
    return image if order is None else permute(image, order)


def nested(image, draws):
    """Operations by their numbers: 1 random_order of 2 random_apply (3 random_solarize, 4
    color_jitter of the brightness), 5 random_choice (6 grayscale, 7 random_invert, 8 random_apply
    (9 random_posterize, 10 random_invert)) with weights 1, 0 and 2.5, 11 random_equalize; then 12
    random_invert."""

    def solarize(image):
        return ImageOps.solarize(image, 90.0) if draws(3).uniform() < 0.5 else image

    def jitter(image):
        stream = draws(4)
        shuffled(range(4), stream)
        return PROPERTIES["brightness"](image, stream.uniform_in(0.5, 1.5))

    def invert(number):
        def run(image):
            return ImageOps.invert(image) if draws(number).uniform() < 0.5 else image

        return run

    def posterize(image):
        return ImageOps.posterize(image, 3) if draws(9).uniform() < 0.5 else image

    def apply(number, p, functions):
        def run(image):
            if draws(number).uniform() < p:
                for function in functions:
                    image = function(image)
            return image

        return run

    def choose(image):
        position = draws(5).uniform() * 3.5
        chosen = grey if position < 1.0 else apply(8, 1.0, [posterize, invert(10)])
        return chosen(image)

    def equalize(image):
        return ImageOps.equalize(image) if draws(11).uniform() < 0.5 else image

    content = [apply(2, 0.7, [solarize, jitter]), choose, equalize]
    for function in shuffled(content, draws(1)):
        image = function(image)
    return invert(12)(image)


def recipes():
    for kind, seed, width, height in PICTURES[:2]:
        image = PATTERNS[kind](seed, width, height)
        for sample in range(16):

            def draws(number, sample=sample):
                return Draws(7, 2, sample, number)

            words = f"{kind} {seed} {width} {height}"
            yield f"{words} recipe distort {sample}", distort(image, draws(1), 0.5)
            yield f"{words} recipe always_distort {sample}", distort(image, draws(1), 1.0)
            made = permute(image, shuffled(range(3), draws(1)))
            yield f"{words} recipe permute {sample}", made
            yield f"{words} recipe nested {sample}", nested(image, draws)
            made = random_gamma(image, draws(1), (-0.5, 0.5), (-0.5, 0.5), (-1.0, 1.0), 0.5)
            yield f"{words} recipe crumpets_train {sample}", made
            made = random_gamma(image, draws(1), (-1.0, 1.0), (-1.0, 1.0), None, 1.0)
            yield f"{words} recipe gamma_wide {sample}", made
            made = random_sigmoid_contrast(image, draws(1), (-0.75, 1.0), 0.8)
            yield f"{words} recipe contrast {sample}", made


def normal(word):
    return statistics.NormalDist().inv_cdf((word + 0.5) / 2**32)


def field(draws, channels, height, width):
    """Normal numbers for each element, by docs/formats.md."""
    key = [draws.word(), draws.word()]
    values = np.empty((channels, height, width))
    for c, y, block in np.ndindex(channels, height, (width + 3) // 4):
        words = philox([block, y, c, 0], key)[: width - 4 * block]
        values[c, y, 4 * block : 4 * block + 4] = [normal(word) for word in words]
    return values


def erase(values, draws, p, scale, ratio, mode, value, counts):
    """torchvision's and timm's RandomErasing of an array of channels, rows and columns."""
    values = values.copy()
    channels, height, width = values.shape
    if draws.uniform() >= p:
        return values
    count = counts[0] + (draws.up_to(counts[1] - counts[0]) if counts[1] > counts[0] else 0)
    for _ in range(count):
        for _ in range(10):
            area = height * width * draws.uniform_in(*scale) / count
            aspect = math.exp(draws.uniform_in(math.log(ratio[0]), math.log(ratio[1])))
            h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if h < height and w < width:
                top = draws.up_to(height - h)
                left = draws.up_to(width - w)
                if mode == "const":
                    made = np.array(value)[:, None, None]
                elif mode == "rand":
                    made = np.array([normal(draws.word()) for _ in range(channels)])[:, None, None]
                else:
                    made = field(draws, channels, h, w)
                made = made.astype(np.float32).astype(values.dtype)
                values[:, top : top + h, left : left + w] = made
                break
    return values


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
USUAL = ((0.02, 0.33), (0.3, 3.3))


def erasings():
    for kind, seed, width, height in [*PICTURES[:2], PICTURES[3], PICTURES[6]]:
        image = np.asarray(PATTERNS[kind](seed, width, height))
        floats = elements(image, "float32", True, IMAGENET).transpose(2, 0, 1)
        halves = elements(image, "float16", True, None).transpose(2, 0, 1)
        grey = elements(
            np.asarray(Image.fromarray(image).convert("L"))[..., None], "float32", True, None
        ).transpose(2, 0, 1)
        for sample in range(12):

            def line(name, made, words=f"{kind} {seed} {width} {height}", sample=sample):
                return f"{words} recipe {name} {sample}", np.ascontiguousarray(made)

            def run(values, number, p, scale, ratio, mode, value, counts, sample=sample):
                draws = Draws(7, 2, sample, number)
                return erase(values, draws, p, scale, ratio, mode, value, counts)

            plain = image.transpose(2, 0, 1)
            made = run(plain, 1, 1.0, *USUAL, "const", [7.0, 8.0, 255.0], (1, 1))
            yield line("erase_bytes", made.transpose(1, 2, 0))
            yield line("erase_half", run(floats, 4, 0.5, *USUAL, "const", [0.0], (1, 1)))
            made = run(floats, 4, 1.0, (0.02, 1 / 3), (0.3, 1 / 0.3), "pixel", None, (1, 1))
            yield line("erase_pixel", made)
            made = run(halves, 2, 1.0, (0.02, 1 / 3), (0.3, 1 / 0.3), "rand", None, (1, 4))
            yield line("erase_rand", made.transpose(1, 2, 0))
            made = run(grey, 3, 1.0, (0.9, 1.0), (0.5, 2.0), "pixel", None, (2, 2))
            yield line("erase_grey", made)


if __name__ == "__main__":
    made = [*singles(), *recipes(), *erasings()]
    write("operations.txt", [f"{words} : {sha(image.tobytes())}" for words, image in made])
