#!/usr/bin/env python3
"""Writes policies.txt beside itself: policies, blurs and noise.

What the kernels must give, from Pillow's functions as torchvision calls them for PIL images and as
timm does, with random parameters drawn after docs/formats.md. The pairs of AutoAugment are those of
torchvision 0.29.2. torchvision's blur is computed in NumPy, and compared with its kernel in two
dimensions.

    pip install pillow==13.0.0 numpy==2.4.6
    python3 policies.py
"""

import math

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from make import PATTERNS, Draws, philox, sha, write
from operations import field, grey, normal

PAIRS = {
    "imagenet": [
        (("Posterize", 0.4, 8), ("Rotate", 0.6, 9)),
        (("Solarize", 0.6, 5), ("AutoContrast", 0.6, None)),
        (("Equalize", 0.8, None), ("Equalize", 0.6, None)),
        (("Posterize", 0.6, 7), ("Posterize", 0.6, 6)),
        (("Equalize", 0.4, None), ("Solarize", 0.2, 4)),
        (("Equalize", 0.4, None), ("Rotate", 0.8, 8)),
        (("Solarize", 0.6, 3), ("Equalize", 0.6, None)),
        (("Posterize", 0.8, 5), ("Equalize", 1.0, None)),
        (("Rotate", 0.2, 3), ("Solarize", 0.6, 8)),
        (("Equalize", 0.6, None), ("Posterize", 0.4, 6)),
        (("Rotate", 0.8, 8), ("Color", 0.4, 0)),
        (("Rotate", 0.4, 9), ("Equalize", 0.6, None)),
        (("Equalize", 0.0, None), ("Equalize", 0.8, None)),
        (("Invert", 0.6, None), ("Equalize", 1.0, None)),
        (("Color", 0.6, 4), ("Contrast", 1.0, 8)),
        (("Rotate", 0.8, 8), ("Color", 1.0, 2)),
        (("Color", 0.8, 8), ("Solarize", 0.8, 7)),
        (("Sharpness", 0.4, 7), ("Invert", 0.6, None)),
        (("ShearX", 0.6, 5), ("Equalize", 1.0, None)),
        (("Color", 0.4, 0), ("Equalize", 0.6, None)),
        (("Equalize", 0.4, None), ("Solarize", 0.2, 4)),
        (("Solarize", 0.6, 5), ("AutoContrast", 0.6, None)),
        (("Invert", 0.6, None), ("Equalize", 1.0, None)),
        (("Color", 0.6, 4), ("Contrast", 1.0, 8)),
        (("Equalize", 0.8, None), ("Equalize", 0.6, None)),
    ],
    "cifar10": [
        (("Invert", 0.1, None), ("Contrast", 0.2, 6)),
        (("Rotate", 0.7, 2), ("TranslateX", 0.3, 9)),
        (("Sharpness", 0.8, 1), ("Sharpness", 0.9, 3)),
        (("ShearY", 0.5, 8), ("TranslateY", 0.7, 9)),
        (("AutoContrast", 0.5, None), ("Equalize", 0.9, None)),
        (("ShearY", 0.2, 7), ("Posterize", 0.3, 7)),
        (("Color", 0.4, 3), ("Brightness", 0.6, 7)),
        (("Sharpness", 0.3, 9), ("Brightness", 0.7, 9)),
        (("Equalize", 0.6, None), ("Equalize", 0.5, None)),
        (("Contrast", 0.6, 7), ("Sharpness", 0.6, 5)),
        (("Color", 0.7, 7), ("TranslateX", 0.5, 8)),
        (("Equalize", 0.3, None), ("AutoContrast", 0.4, None)),
        (("TranslateY", 0.4, 3), ("Sharpness", 0.2, 6)),
        (("Brightness", 0.9, 6), ("Color", 0.2, 8)),
        (("Solarize", 0.5, 2), ("Invert", 0.0, None)),
        (("Equalize", 0.2, None), ("AutoContrast", 0.6, None)),
        (("Equalize", 0.2, None), ("Equalize", 0.6, None)),
        (("Color", 0.9, 9), ("Equalize", 0.6, None)),
        (("AutoContrast", 0.8, None), ("Solarize", 0.2, 8)),
        (("Brightness", 0.1, 3), ("Color", 0.7, 0)),
        (("Solarize", 0.4, 5), ("AutoContrast", 0.9, None)),
        (("TranslateY", 0.9, 9), ("TranslateY", 0.7, 9)),
        (("AutoContrast", 0.9, None), ("Solarize", 0.8, 3)),
        (("Equalize", 0.8, None), ("Invert", 0.1, None)),
        (("TranslateY", 0.7, 9), ("AutoContrast", 0.9, None)),
    ],
    "svhn": [
        (("ShearX", 0.9, 4), ("Invert", 0.2, None)),
        (("ShearY", 0.9, 8), ("Invert", 0.7, None)),
        (("Equalize", 0.6, None), ("Solarize", 0.6, 6)),
        (("Invert", 0.9, None), ("Equalize", 0.6, None)),
        (("Equalize", 0.6, None), ("Rotate", 0.9, 3)),
        (("ShearX", 0.9, 4), ("AutoContrast", 0.8, None)),
        (("ShearY", 0.9, 8), ("Invert", 0.4, None)),
        (("ShearY", 0.9, 5), ("Solarize", 0.2, 6)),
        (("Invert", 0.9, None), ("AutoContrast", 0.8, None)),
        (("Equalize", 0.6, None), ("Rotate", 0.9, 3)),
        (("ShearX", 0.9, 4), ("Solarize", 0.3, 3)),
        (("ShearY", 0.8, 8), ("Invert", 0.7, None)),
        (("Equalize", 0.9, None), ("TranslateY", 0.6, 6)),
        (("Invert", 0.9, None), ("Equalize", 0.6, None)),
        (("Contrast", 0.3, 3), ("Rotate", 0.8, 4)),
        (("Invert", 0.8, None), ("TranslateY", 0.0, 2)),
        (("ShearY", 0.7, 6), ("Solarize", 0.4, 8)),
        (("Invert", 0.6, None), ("Rotate", 0.8, 4)),
        (("ShearY", 0.3, 7), ("TranslateX", 0.9, 3)),
        (("ShearX", 0.1, 6), ("Invert", 0.6, None)),
        (("Solarize", 0.7, 2), ("TranslateY", 0.6, 7)),
        (("ShearY", 0.8, 4), ("Invert", 0.8, None)),
        (("ShearX", 0.7, 9), ("TranslateY", 0.8, 3)),
        (("ShearY", 0.8, 5), ("AutoContrast", 0.7, None)),
        (("ShearX", 0.7, 2), ("Invert", 0.1, None)),
    ],
}
STEPS = (
    "Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness "
    "Posterize Solarize AutoContrast Equalize"
).split()
SIGNED = STEPS[1:10]
PLAIN = ("Identity", "AutoContrast", "Equalize", "Invert")
NEAREST, BILINEAR, BICUBIC = (
    Image.Resampling.NEAREST,
    Image.Resampling.BILINEAR,
    Image.Resampling.BICUBIC,
)


def spaced(start, end, index, count):
    """torch.linspace in float32."""
    start, end = np.float32(start), np.float32(end)
    step = (end - start) / np.float32(count - 1)
    if index < count // 2:
        return float(start + step * np.float32(index))
    return float(end - step * np.float32(count - 1 - index))


def magnitude(name, wide, index, count, image, mix=False):
    """The augmentation spaces of torchvision."""
    ends = {"Shear": 0.99 if wide else 0.3, "Rotate": 135.0 if wide else 30.0}
    if name in PLAIN:
        return 0.0
    if name.startswith("Translate"):
        side = image.width if name == "TranslateX" else image.height
        last = side / 3.0 if mix else 32.0 if wide else 150.0 / 331.0 * side
        return spaced(0.0, last, index, count)
    if name == "Posterize":
        step = np.float32((count - 1) / (6 if wide else 4))
        return float(np.round(np.float32(4 if mix else 8) - np.float32(index) / step))
    if name == "Solarize":
        return spaced(1.0, 0.0, index, count)
    end = ends.get(name.rstrip("XY"), 0.99 if wide else 0.9)
    return spaced(0.0, end, index, count)


def inverse_matrix(center, translate, shear):
    """torchvision's _get_inverse_affine_matrix without a rotation and a scale."""
    sx, sy = math.radians(shear[0]), math.radians(shear[1])
    (cx, cy), (tx, ty) = center, translate
    a = math.cos(-sy) / math.cos(sy)
    b = -math.cos(-sy) * math.tan(sx) / math.cos(sy) - math.sin(0.0)
    c = math.sin(-sy) / math.cos(sy)
    d = -math.sin(-sy) * math.tan(sx) / math.cos(sy) + math.cos(0.0)
    matrix = [d, -b, 0.0, -c, a, 0.0]
    matrix[2] += matrix[0] * (-cx - tx) + matrix[1] * (-cy - ty) + cx
    matrix[5] += matrix[3] * (-cx - tx) + matrix[4] * (-cy - ty) + cy
    return matrix


def transform(image, matrix, resample, fill):
    return image.transform(image.size, Image.Transform.AFFINE, matrix, resample, fillcolor=fill)


def apply(image, name, value, resample, fill):
    """torchvision's _apply_image_or_video_transform on a PIL image."""
    angle = math.degrees(math.atan(value))
    middle = (image.width * 0.5, image.height * 0.5)
    moved = {
        "ShearX": ((0, 0), (0, 0), (angle, 0.0)),
        "ShearY": ((0, 0), (0, 0), (0.0, angle)),
        "TranslateX": (middle, (int(value), 0), (0.0, 0.0)),
        "TranslateY": (middle, (0, int(value)), (0.0, 0.0)),
    }
    if name in moved:
        return transform(image, inverse_matrix(*moved[name]), resample, fill)
    if name == "Rotate":
        return image.rotate(value, resample, fillcolor=fill)
    enhance = getattr(ImageEnhance, name, None)
    if enhance is not None:
        return enhance(image).enhance(1.0 + value)
    functions = {
        "Identity": lambda: image,
        # 0 bits are black, as in Pillow before 13.
        "Posterize": lambda: image.point([i & -(2 ** (8 - int(value))) for i in range(256)] * 3),
        "Solarize": lambda: ImageOps.solarize(image, 255.0 * value),
        "AutoContrast": lambda: ImageOps.autocontrast(image),
        "Equalize": lambda: ImageOps.equalize(image),
        "Invert": lambda: ImageOps.invert(image),
    }
    return functions[name]()


def signed(draws, value):
    return -value if draws.uniform() < 0.5 else value


def trivial_augment(image, draws, count, resample, fill):
    name = STEPS[draws.up_to(13)]
    index = 0 if name in PLAIN else draws.up_to(count - 1)
    value = magnitude(name, True, index, count, image)
    value = signed(draws, value) if name in SIGNED else value
    return apply(image, name, value, resample, fill)


def rand_augment(image, draws, num_ops, index, count, resample, fill):
    for _ in range(num_ops):
        name = STEPS[draws.up_to(13)]
        value = magnitude(name, False, index, count, image)
        value = signed(draws, value) if name in SIGNED else value
        image = apply(image, name, value, resample, fill)
    return image


def auto_augment(image, draws, policy, resample, fill):
    for name, probability, index in PAIRS[policy][draws.up_to(24)]:
        if draws.uniform() < probability:
            value = magnitude(name, False, index, 10, image)
            value = signed(draws, value) if name in SIGNED else value
            image = apply(image, name, value, resample, fill)
    return image


TIMM = (
    "AutoContrast Equalize Invert Rotate Posterize Solarize SolarizeAdd Color Contrast Brightness "
    "Sharpness ShearX ShearY TranslateXRel TranslateYRel"
).split()


def timm_augment(image, draws, num_ops, m, std, most, p, increasing, fill):
    """timm's RandAugment with the level functions of timm 1.0.31."""
    for _ in range(num_ops):
        name = TIMM[draws.up_to(14)]
        if draws.uniform() >= p:
            continue
        level = m
        if std > 100:
            level = draws.uniform_in(0.0, m)
        elif std > 0:
            level = m + std * normal(draws.word())
        level = max(0.0, min(level, most))
        if name in ("AutoContrast", "Equalize", "Invert"):
            image = apply(image, name, 0.0, None, None)
        elif name == "Posterize":
            bits = int((level / 10.0) * 4)
            bits = 4 - bits if increasing else bits
            # Pillow before 13 gives black for 0 bits, and 13 an error.
            mask = 0xFF & ~(2 ** (8 - bits) - 1)
            image = image.point([value & mask for value in range(256)] * 3)
        elif name == "Solarize":
            threshold = min(256, int((level / 10.0) * 256))
            image = ImageOps.solarize(image, 256 - threshold if increasing else threshold)
        elif name == "SolarizeAdd":
            add = min(128, int((level / 10.0) * 110))
            table = [min(255, i + add) if i < 128 else i for i in range(256)]
            image = image.point(table * 3)
        elif name in ("Color", "Contrast", "Brightness", "Sharpness"):
            factor = (level / 10.0) * 1.8 + 0.1
            if increasing:
                factor = max(0.1, 1.0 + signed(draws, (level / 10.0) * 0.9))
            image = getattr(ImageEnhance, name)(image).enhance(factor)
        else:
            full = {"Rotate": 30.0, "ShearX": 0.3, "ShearY": 0.3}.get(name, 0.45)
            value = signed(draws, (level / 10.0) * full)
            resample = BICUBIC if draws.up_to(1) else BILINEAR
            matrix = {
                "ShearX": (1, value, 0, 0, 1, 0),
                "ShearY": (1, 0, 0, value, 1, 0),
                "TranslateXRel": (1, 0, value * image.width, 0, 1, 0),
                "TranslateYRel": (1, 0, 0, 0, 1, value * image.height),
            }
            if name == "Rotate":
                image = image.rotate(value, resample, fillcolor=fill)
            else:
                image = transform(image, matrix[name], resample, fill)
    return image


def three_augment(image, draws):
    chosen = draws.up_to(2)
    if chosen == 0:
        return grey(image)
    if chosen == 1:
        return ImageOps.solarize(image, 128)
    return image.filter(ImageFilter.GaussianBlur(draws.uniform_in(0.1, 2.0)))


def gamma(shape, draws):
    """Marsaglia's and Tsang's gamma numbers."""
    if shape < 1:
        number = gamma(shape + 1.0, draws)
        return number * draws.uniform() ** (1.0 / shape)
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x, u = normal(draws.word()), draws.uniform()
        side = 1.0 + c * x
        v = side * side * side
        if v > 0 and math.log(u) < x * x / 2.0 + d - d * v + d * math.log(v):
            return d * v


def dirichlet(alpha, count, draws):
    numbers = [gamma(alpha, draws) for _ in range(count)]
    if sum(numbers) == 0.0:
        return [1.0 / count] * count
    return [number / sum(numbers) for number in numbers]


MIXED = STEPS[1:6] + STEPS[10:14] + STEPS[6:10]


def aug_mix(image, draws, severity, width, depth, alpha, all_ops, resample, fill):
    """torchvision's AugMix with the operations of Pillow."""
    shares = dirichlet(alpha, 2, draws)
    weights = [weight * shares[1] for weight in dirichlet(alpha, width, draws)]
    mixed = np.float32(shares[0]) * np.asarray(image).astype(np.float32)
    for weight in weights:
        made = image
        for _ in range(depth or 1 + draws.up_to(2)):
            name = MIXED[draws.up_to(12 if all_ops else 8)]
            index = 0 if name in PLAIN else draws.up_to(severity - 1)
            value = magnitude(name, False, index, 10, image, mix=True)
            value = signed(draws, value) if name in SIGNED else value
            made = apply(made, name, value, resample, fill)
        mixed = mixed + np.float32(weight) * np.asarray(made).astype(np.float32)
    return mixed.astype(np.uint8)


def sensor_noise(image, draws, strengths, p):
    values = np.asarray(image).astype(np.int64)
    height, width, _ = values.shape
    if draws.uniform() >= p:
        return values
    strength = draws.uniform_in(*strengths)
    key = [draws.word(), draws.word()]

    def numbers(channel, strength, rows, columns):
        low, high = int(-256 * strength), int(255 * strength)
        made = np.empty((rows, columns))
        for y, block in np.ndindex(rows, (columns + 3) // 4):
            words = philox([block, y, channel, 0], key)[: columns - 4 * block]
            made[y, 4 * block : 4 * block + 4] = [low + (w * (high - low) >> 32) for w in words]
        return made

    def weights(length, coarse):
        at = (np.arange(length) + 0.5) * (coarse / length) - 0.5
        at = np.clip(at, 0, coarse - 1)
        first = np.floor(at).astype(int)
        return first, np.minimum(first + 1, coarse - 1), at - first

    half = max(1, height // 2), max(1, width // 2)
    parts = [(strength, *half), (strength * 0.5, height, width), (strength, *half)]
    for channel, (share, rows, columns) in enumerate(parts):
        made = numbers(channel, share, rows, columns)
        left, right, behind = weights(width, columns)
        made = made[:, left] * (1 - behind) + made[:, right] * behind
        above, under, below = weights(height, rows)
        made = made[above] * (1 - below)[:, None] + made[under] * below[:, None]
        values[..., channel] += np.round(made).astype(np.int64)
    return np.clip(values, 0, 255)


def noise(image, draws, mean, sigma, clip):
    values = np.asarray(image).astype(np.int64)
    height, width, channels = values.shape
    made = mean * 255 + field(draws, channels, height, width).transpose(1, 2, 0) * (sigma * 255)
    values = values + np.trunc(made).astype(np.int64)
    return np.clip(values, 0, 255) if clip else values % 256


def blur(image, size, sigma):
    """torchvision's gaussian_blur by docs/formats.md, and at most 1 from its own kernel."""
    values = np.asarray(image).astype(np.float32)

    def weights(length):
        x = np.arange(length) - length // 2
        all_ = np.array([math.exp(-float(d) * float(d) / (2.0 * sigma * sigma)) for d in x])
        return (all_ / all_.sum()).astype(np.float32)

    down, across = weights(size[0]), weights(size[1])
    padding = ((size[0] // 2,) * 2, (size[1] // 2,) * 2, (0, 0))
    padded = np.pad(values, padding, mode="reflect")
    height, width, _ = values.shape
    rows = np.zeros((padded.shape[0], width, 3), np.float32)
    for tap, weight in enumerate(across):
        rows = rows + weight * padded[:, tap : tap + width]
    summed = np.zeros_like(values)
    for tap, weight in enumerate(down):
        summed = summed + weight * rows[tap : tap + height]
    made = np.round(summed).astype(np.uint8)

    def theirs(length):
        limit = (length - 1) / (2.0 * math.sqrt(2.0))
        x = np.exp(-((np.linspace(-limit, limit, length) / sigma) ** 2))
        return x / x.sum()

    kernel = np.outer(theirs(size[0]), theirs(size[1]))
    other = sum(
        kernel[y, x] * padded[y : y + height, x : x + width].astype(np.float64)
        for y, x in np.ndindex(*size)
    )
    assert np.abs(np.round(other) - made.astype(np.float64)).max() <= 1
    return made


def lines():
    large = [("noise", 1, 61, 43), ("wave", 2, 90, 57), ("wave", 5, 40, 40)]
    for kind, seed, width, height in large:
        image = PATTERNS[kind](seed, width, height)
        words = f"{kind} {seed} {width} {height}"
        for sample in range(40):

            def draws(sample=sample):
                return Draws(7, 2, sample, 1)

            black, colour = (0, 0, 0), (9, 200, 77)
            made = trivial_augment(image, draws(), 31, NEAREST, black)
            yield f"{words} recipe trivial {sample}", made
            made = trivial_augment(image, draws(), 7, BILINEAR, colour)
            yield f"{words} recipe trivial_bilinear {sample}", made
            yield f"{words} recipe rand {sample}", rand_augment(
                image, draws(), 2, 9, 31, NEAREST, black
            )
            yield f"{words} recipe rand_bicubic {sample}", rand_augment(
                image, draws(), 3, 10, 11, BICUBIC, colour
            )
            for policy in PAIRS:
                made = auto_augment(image, draws(), policy, NEAREST, black)
                yield f"{words} recipe auto_{policy} {sample}", made
            grey_fill = (128, 128, 128)
            made = timm_augment(image, draws(), 2, 9.0, 0.5, 10.0, 0.5, True, grey_fill)
            yield f"{words} recipe timm {sample}", made
            made = timm_augment(image, draws(), 4, 10.0, 101.0, 10.0, 1.0, False, colour)
            yield f"{words} recipe timm_plain {sample}", made
            made = timm_augment(image, draws(), 3, 10.0, 0.0, 10.0, 1.0, True, grey_fill)
            yield f"{words} recipe timm_full {sample}", made
            made = aug_mix(image, draws(), 3, 3, 0, 1.0, True, BILINEAR, black)
            yield f"{words} recipe mix {sample}", made
            made = aug_mix(image, draws(), 10, 2, 2, 0.5, False, NEAREST, colour)
            yield f"{words} recipe mix_some {sample}", made
            yield f"{words} recipe three {sample}", three_augment(image, draws())
        for sample in range(3):
            stream = Draws(7, 2, sample, 1)
            made = sensor_noise(image, stream, (0.1, 0.6), 0.75)
            yield f"{words} recipe sensor {sample}", made
            stream = Draws(7, 2, sample, 1)
            yield f"{words} recipe noise {sample}", noise(image, stream, 0.0, 0.1, True)
            stream = Draws(7, 2, sample, 1)
            yield f"{words} recipe noise_wrapped {sample}", noise(image, stream, 0.25, 0.5, False)
    for kind, seed, width, height in [("noise", 1, 61, 43), ("wave", 6, 3, 3), ("noise", 9, 1, 7)]:
        image = PATTERNS[kind](seed, width, height)
        words = f"{kind} {seed} {width} {height}"
        for radius in (0.0, 0.1, 0.5, 1.0, 2.0, 3.3, 20.0):
            made = image.filter(ImageFilter.GaussianBlur(radius))
            yield f"{words} pillow_gaussian_blur radius=[{radius},{radius}]", made
        for height, width in [(1, 1), (3, 3), (5, 9), (23, 7), (3, 31)]:
            for sigma in (0.1, 0.8, 2.0, 5.5):
                keys = f"kernel_size=[{height},{width}] sigma=[{sigma},{sigma}]"
                yield f"{words} gaussian_blur {keys}", blur(image, (height, width), sigma)
        for share in (0.01, 0.05, 0.3):
            # OpenCV's kernel for uint8, as crumpets' add_blur takes it.
            sigma = share * image.width
            side = round(6 * sigma + 1) | 1
            keys = f"sigma_relative=[{share},{share}]"
            yield f"{words} gaussian_blur {keys}", blur(image, (side, side), sigma)


if __name__ == "__main__":
    made = [(words, np.asarray(image).astype(np.uint8)) for words, image in lines()]
    write("policies.txt", [f"{words} : {sha(image.tobytes())}" for words, image in made])
