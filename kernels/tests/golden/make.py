#!/usr/bin/env python3
"""Writes resize.txt, boxes.txt, tensors.txt, crops.txt, recipes.txt, colours.txt and pictures.txt
beside itself.

What the kernels must give, from other implementations: Pillow for resizing, cropping, decoding and
colours, NumPy for element types and normalisation, and, for random draws and the choice of a crop,
Python code after docs/formats.md and torchvision's RandomResizedCrop.get_params. Hashes are
SHA-256.

    pip install pillow==13.0.0 numpy==2.4.6
    python3 make.py
"""

import hashlib
import io
import math
import pathlib
import random
import struct
import zlib

import numpy as np
from PIL import Image, ImageEnhance, ImageFile

HERE = pathlib.Path(__file__).parent
MASK = 0xFFFFFFFF
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def sha(data):
    return hashlib.sha256(data).hexdigest()


def write(name, lines):
    (HERE / name).write_text("\n".join(lines) + "\n")


def noise(seed, width, height):
    """Bytes of a linear congruential generator: every value beside every other."""
    values, state = bytearray(), seed
    for _ in range(width * height * 3):
        state = (state * 1664525 + 1013904223) & MASK
        values.append(state >> 24)
    return Image.frombytes("RGB", (width, height), bytes(values))


def wave(seed, width, height):
    """Smooth ramps with folds."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    values = (x * (seed + 3) + y * (2 * seed + 1) + c * 71) % 512
    return Image.fromarray(np.where(values < 256, values, 511 - values).astype(np.uint8))


PATTERNS = {"noise": noise, "wave": wave}


def plain_filter(name, x):
    x = abs(x)
    if name == "bilinear":
        return max(0.0, 1.0 - x)
    if x < 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def plain_axis(values, name, length):
    """One axis without antialiasing, over axis 0, from the definition."""
    whole, support = values.shape[0], {"bilinear": 1, "bicubic": 2}[name]
    rows = []
    for out in range(length):
        center = (out + 0.5) * whole / length
        taps = [i for i in range(whole) if abs(i + 0.5 - center) <= support + 0.5]
        weights = [plain_filter(name, i + 0.5 - center) for i in taps]
        total = sum(weights)
        fixed = [math.floor(abs(w / total) * 2**22 + 0.5) * (1 if w > 0 else -1) for w in weights]
        summed = sum(values[i].astype(np.int64) * w for i, w in zip(taps, fixed)) + 2**21
        rows.append(np.clip(summed >> 22, 0, 255))
    return np.stack(rows)


def plain_resize(image, name, width, height):
    values = np.asarray(image).astype(np.int64)
    rows, columns = image.height - height, image.width - width
    for axis in (0, 1) if rows > 0 and rows > columns * 2 else (1, 0):
        length = (height, width)[axis]
        if length != values.shape[axis]:
            values = plain_axis(values.swapaxes(0, axis), name, length).swapaxes(0, axis)
    return values.astype(np.uint8)


def resizes():
    chance = random.Random(5)
    sizes = [
        (1, 1, 1, 1),
        (1, 1, 5, 3),
        (7, 1, 3, 9),
        (1, 13, 6, 4),
        (2, 2, 64, 64),
        (33, 65, 1, 1),
        (64, 48, 64, 31),
        (64, 48, 29, 48),
        (101, 77, 37, 53),
        (37, 53, 101, 77),
        (97, 61, 224, 224),
        (300, 200, 224, 224),
        (320, 213, 384, 256),
        (250, 999, 11, 13),
        (999, 40, 100, 7),
        (48, 48, 48, 48),
        (17, 19, 16, 20),
        (130, 70, 43, 35),
    ]
    lines = []
    for number, (w, h, to_w, to_h) in enumerate(sizes):
        for kind in PATTERNS:
            image = PATTERNS[kind](number, w, h)
            for name, resample in FILTERS.items():
                boxes = [None]
                for _ in range(2):
                    ends = sorted(chance.uniform(0, w) for _ in range(2))
                    tops = sorted(chance.uniform(0, h) for _ in range(2))
                    boxes.append(
                        [float(np.float32(v)) for v in (ends[0], tops[0], ends[1], tops[1])]
                    )
                boxes.append([float(v) for v in (w // 3, h // 4, w - w // 5, h)])
                for box in boxes:
                    result = image.resize((to_w, to_h), resample, box=box)
                    words = [kind, number, w, h, name, "antialias", to_w, to_h]
                    words += [repr(v) for v in box] if box else ["whole"]
                    lines.append(f"{' '.join(map(str, words))} : {sha(result.tobytes())}")
                if max(w, h, to_w, to_h) < 330:
                    result = plain_resize(image, name, to_w, to_h)
                    words = [kind, number, w, h, name, "plain", to_w, to_h, "whole"]
                    lines.append(f"{' '.join(map(str, words))} : {sha(result.tobytes())}")
    write("resize.txt", lines)


def boxes():
    """Boxes of any kind, and the nearest pixel, from a stream of chance of their own."""
    chance = random.Random(13)
    nearest = {"nearest": Image.Resampling.NEAREST}
    lines = []

    def interval(length):
        ends = sorted(chance.uniform(0, length) for _ in range(2))
        kind = chance.randrange(4)
        if kind == 0:
            ends = [math.floor(ends[0]), math.ceil(ends[1])]
        elif kind == 1:
            ends = [ends[0], ends[0] + (length - ends[0]) * chance.random() ** 4]
        elif kind == 2:
            ends = [0, length]
        return [float(np.float32(v)) for v in ends]

    for number in range(120):
        w, h = (round(math.exp(chance.uniform(0, 6))) for _ in range(2))
        to_w, to_h = (round(math.exp(chance.uniform(0, 5.5))) for _ in range(2))
        kind = chance.choice(list(PATTERNS))
        image = PATTERNS[kind](number, w, h)
        (left, right), (top, bottom) = interval(w), interval(h)
        box = (left, top, min(right, w), min(bottom, h)) if number % 5 else None
        for name, resample in (FILTERS | nearest).items():
            if number % 5 == 0 and name != "nearest":
                continue
            result = image.resize((to_w, to_h), resample, box=box)
            words = [kind, number, w, h, name, "antialias", to_w, to_h]
            words += [repr(float(v)) for v in box] if box else ["whole"]
            lines.append(f"{' '.join(map(str, words))} : {sha(result.tobytes())}")
    write("boxes.txt", lines)


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def elements(values, dtype, scale, normalize):
    """torchvision's to_dtype (v1's with "Divide") and normalize on uint8, in PyTorch's arithmetic."""
    kind = np.dtype(dtype).type
    values = values.astype(np.float32)
    if scale == "Divide":
        values = values / np.float32(255)
    elif scale:
        values = values * np.float32(1.0 / 255)
    values = values.astype(kind)
    if normalize:
        mean, std = (
            np.array(v, dtype=np.float64).astype(np.float32).astype(kind) for v in normalize
        )
        values = (values - mean).astype(kind)
        values = (values / std).astype(kind)
    return values


def tensors():
    every = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    lines = []
    for dtype in ("float16", "float32"):
        for scale in (False, True, "Divide"):
            for normalize in (None, IMAGENET, ((127.5, 0.1, -3.0), (58.395, 1e-3, 7.0))):
                made = elements(every, dtype, scale, normalize)
                numbers = (
                    "none" if not normalize else " ".join(repr(v) for n in normalize for v in n)
                )
                some = made[[0, 1, 100, 255]].tobytes().hex()
                lines.append(f"{dtype} {scale} {numbers} : {sha(made.tobytes())} {some}")
    write("tensors.txt", lines)


def philox(counter, key):
    for _ in range(10):
        left, right = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (right >> 32) ^ counter[1] ^ key[0],
            right & MASK,
            (left >> 32) ^ counter[3] ^ key[1],
            left & MASK,
        ]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return counter


class Draws:
    def __init__(self, seed, epoch, sample, operation):
        self.key = [seed & MASK, seed >> 32]
        self.counter = [sample & MASK, sample >> 32, epoch, operation << 24]
        self.words = []

    def word(self):
        if not self.words:
            self.words = philox(self.counter, self.key)
            self.counter[3] += 1
        return self.words.pop(0)

    def uniform(self):
        low, high = self.word(), self.word()
        return ((low | high << 32) >> 11) / 2**53

    def uniform_in(self, low, high):
        return low + (high - low) * self.uniform()

    def up_to(self, high):
        count = high + 1
        while True:
            product = self.word() * count
            if product & MASK >= 2**32 % count:
                return product >> 32


def random_region(draws, width, height, scale, ratio):
    for _ in range(10):
        area = height * width * draws.uniform_in(*scale)
        aspect = math.exp(draws.uniform_in(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            top = draws.up_to(height - h)
            return draws.up_to(width - w), top, w, h
    aspect = width / height
    w, h = width, height
    if aspect < min(ratio):
        h = round(w / min(ratio))
    elif aspect > max(ratio):
        w = round(h * max(ratio))
    w, h = max(1, min(w, width)), max(1, min(h, height))
    return (width - w) // 2, (height - h) // 2, w, h


DEFAULT = ((0.08, 1.0), (3 / 4, 4 / 3))


def crops():
    lines = []
    kinds = [
        (500, 375, *DEFAULT),
        (1, 1, *DEFAULT),
        (3, 900, *DEFAULT),
        (4000, 31, *DEFAULT),
        (224, 224, (1.0, 1.0), (1.0, 1.0)),
        (640, 480, (0.3, 0.3), (0.5, 2.0)),
        (500, 100, (0.9, 1.0), (1.0, 1.0)),
        (100, 333, (1.0, 1.0), (0.75, 1.25)),
    ]
    for number, (w, h, scale, ratio) in enumerate(kinds):
        found = []
        for sample in range(25):
            draws = Draws(11 + (number << 40), number, sample + (number << 33), number)
            x, y, cw, ch = random_region(draws, w, h, scale, ratio)
            found.append(f"{x},{y},{cw},{ch}")
        numbers = f"{w} {h} {scale[0]!r} {scale[1]!r} {ratio[0]!r} {ratio[1]!r}"
        lines.append(f"{number} {numbers} : {' '.join(found)}")
    write("crops.txt", lines)


def center_crop(image, width, height):
    left, top = max(0, width - image.width) // 2, max(0, height - image.height) // 2
    if width > image.width or height > image.height:
        padded = Image.new("RGB", (max(width, image.width), max(height, image.height)))
        padded.paste(image, (left, top))
        image = padded
    x, y = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((x, y, x + width, y + height))


def shorter_side(image, side, resample):
    w, h = image.size
    size = (side, int(side * h / w)) if w <= h else (int(side * w / h), side)
    return image.resize(size, resample)


def recipes():
    lines = []
    sources = [
        ("wave", 1, 301, 257),
        ("noise", 2, 333, 500),
        ("wave", 3, 90, 131),
        ("noise", 4, 260, 256),
    ]
    for kind, seed, w, h in sources:
        image = PATTERNS[kind](seed, w, h)
        words = f"{kind} {seed} {w} {h}"
        val = center_crop(shorter_side(image, 256, FILTERS["bilinear"]), 224, 224)
        made = elements(np.asarray(val), "float32", True, IMAGENET)
        lines.append(f"{words} evaluation : {sha(made.tobytes())}")
        made = center_crop(image, 280, 300)
        lines.append(f"{words} padded : {sha(made.tobytes())}")
        made = center_crop(shorter_side(image, 99, FILTERS["bicubic"]), 98, 97)
        made = np.asarray(made.transpose(Image.Transpose.FLIP_LEFT_RIGHT).crop((9, 8, 89, 89)))
        lines.append(f"{words} flipped : {sha(made.transpose(2, 0, 1).tobytes())}")
        for sample in range(4):
            x, y, cw, ch = random_region(Draws(7, 2, sample, 1), w, h, *DEFAULT)
            made = image.crop((x, y, x + cw, y + ch)).resize((112, 96), FILTERS["bicubic"])
            if Draws(7, 2, sample, 2).uniform() < 0.5:
                made = made.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            made = elements(np.asarray(made), "float16", True, IMAGENET).transpose(2, 0, 1)
            lines.append(f"{words} training {sample} : {sha(made.tobytes())}")
    write("recipes.txt", lines)


def hue(image, factor):
    """torchvision's adjust_hue on a PIL image."""
    if image.mode == "L":
        return image
    h, s, v = image.convert("HSV").split()
    turned = (np.asarray(h).astype(int) + int(factor * 255)) % 256
    h = Image.fromarray(turned.astype(np.uint8))
    return Image.merge("HSV", (h, s, v)).convert("RGB")


# torchvision's adjust_brightness, adjust_contrast, adjust_saturation and adjust_hue on PIL images.
PROPERTIES = {
    "brightness": lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    "contrast": lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    "saturation": lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    "hue": hue,
}


def jitter(image, draws, **bounds):
    """torchvision's ColorJitter with our random parameters, by docs/formats.md."""
    order = list(PROPERTIES)
    for last in (3, 2, 1):
        other = draws.up_to(last)
        order[last], order[other] = order[other], order[last]
    factors = {it: draws.uniform_in(*bounds[it]) for it in PROPERTIES if it in bounds}
    for it in order:
        if it in factors:
            image = PROPERTIES[it](image, factors[it])
    return image


def colours():
    """Colour operations on a grid of colours, and recipes that hold them."""
    lines = []
    grid = np.mgrid[0:256:3, 0:256:3, 0:256:3].astype(np.uint8)
    grid = Image.fromarray(np.ascontiguousarray(grid.transpose(1, 2, 3, 0)).reshape(86, -1, 3))
    factors = {
        "brightness": (0.0, 0.37, 1.0, 1.9, 300.0),
        "contrast": (0.0, 0.62, 1.0, 1.43, 40.0),
        "saturation": (0.0, 0.21, 1.0, 2.2, 77.0),
        # Zero leaves the hue alone; 0.003 does not, but adds nothing to it.
        "hue": (-0.5, -0.101, 0.003, 0.25, 0.5),
    }
    for name, some in factors.items():
        for factor in some:
            made = PROPERTIES[name](grid, factor)
            lines.append(f"grid {name} {factor!r} : {sha(made.tobytes())}")
    every = np.mgrid[0:256, 0:256, 0:256].astype(np.uint8).transpose(1, 2, 3, 0)
    every = Image.fromarray(np.ascontiguousarray(every).reshape(4096, 4096, 3))
    lines.append(f"every hue 0.1 : {sha(hue(every, 0.1).tobytes())}")

    top_bottom, left_right = Image.Transpose.FLIP_TOP_BOTTOM, Image.Transpose.FLIP_LEFT_RIGHT
    for kind, seed, w, h in [("wave", 1, 301, 257), ("noise", 2, 133, 200)]:
        image = PATTERNS[kind](seed, w, h)
        for sample in range(6):
            words = f"{kind} {seed} {w} {h}"

            def draws(operation):
                return Draws(7, 2, sample, operation)

            def crop(operation, image):
                x, y, cw, ch = random_region(draws(operation), *image.size, *DEFAULT)
                part = image.crop((x, y, x + cw, y + ch))
                return part.resize((112, 96), FILTERS["bicubic"])

            # random_vertical_flip, resize, center_crop, random_vertical_flip, center_crop
            made = image
            if draws(1).uniform() < 0.5:
                made = made.transpose(top_bottom)
            made = center_crop(shorter_side(made, 99, FILTERS["bicubic"]), 98, 97)
            if draws(4).uniform() < 0.5:
                made = made.transpose(top_bottom)
            made = np.asarray(center_crop(made, 80, 110))
            lines.append(f"{words} upside_down {sample} : {sha(made.tobytes())}")

            # random_resized_crop, random_horizontal_flip, color_jitter, random_grayscale,
            # random_vertical_flip, to_dtype, normalize, layout
            made = crop(1, image)
            if draws(2).uniform() < 0.5:
                made = made.transpose(left_right)
            made = jitter(
                made,
                draws(3),
                brightness=(1 - 0.8, 1 + 0.8),
                contrast=(1 - 0.8, 1 + 0.8),
                saturation=(1 - 0.8, 1 + 0.8),
                hue=(-0.2, 0.2),
            )
            if draws(4).uniform() < 0.2:
                made = made.convert("L").convert("RGB")
            if draws(5).uniform() < 0.5:
                made = made.transpose(top_bottom)
            made = elements(np.asarray(made), "float16", True, IMAGENET).transpose(2, 0, 1)
            lines.append(f"{words} contrastive {sample} : {sha(made.tobytes())}")

            # random_horizontal_flip, color_jitter of two properties, random_resized_crop,
            # random_grayscale
            made = image
            if draws(1).uniform() < 0.5:
                made = made.transpose(left_right)
            made = jitter(made, draws(2), contrast=(0.1, 3.0), hue=(0.3, 0.3))
            made = crop(3, made)
            if draws(4).uniform() < 0.5:
                made = made.convert("L").convert("RGB")
            lines.append(f"{words} before_the_crop {sample} : {sha(np.asarray(made).tobytes())}")

            # grayscale, random_resized_crop, color_jitter, to_dtype, normalize
            made = crop(2, image.convert("L"))
            made = jitter(
                made,
                draws(3),
                brightness=(0.5, 1.5),
                contrast=(0.5, 1.5),
                saturation=(0.5, 1.5),
                hue=(-0.1, 0.1),
            )
            made = elements(np.asarray(made), "float32", True, ((0.45,), (0.225,)))
            lines.append(f"{words} grey {sample} : {sha(made.tobytes())}")
    write("colours.txt", lines)


def png(width, height, depth, colours, raw, chunks=()):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header)]
    parts += [chunk(*c) for c in chunks]
    return b"".join(parts + [chunk(b"IDAT", zlib.compress(raw, 9)), chunk(b"IEND", b"")])


def encoded_pictures():
    """(name, file, most a value may differ from Pillow's)"""
    smooth = wave(3, 13, 11)
    rgba = smooth.convert("RGBA")
    rgba.putalpha(Image.fromarray((np.arange(143).reshape(11, 13) % 256).astype(np.uint8)))

    def save(image, kind, **options):
        out = io.BytesIO()
        image.save(out, kind, **options)
        return out.getvalue()

    chance = random.Random(9)
    for name, image in (
        ("rgb", smooth),
        ("rgba", rgba),
        ("grey", smooth.convert("L")),
        ("grey_alpha", rgba.convert("LA")),
        ("palette", smooth.quantize(40)),
        ("bits1", smooth.convert("1")),
        ("palette2", smooth.quantize(3)),
    ):
        yield f"png_{name}", save(image, "png"), 0
    yield "png_palette_transparent", save(smooth.quantize(40), "png", transparency=5), 0
    yield "png_grey2", png(8, 1, 2, 0, b"\0\x1b\xe4"), 0
    yield "png_grey4", png(8, 1, 4, 0, b"\0\x01\x5a\xb7\xff"), 0
    few = struct.pack(">8H", 0, 100, 255, 256, 257, 1000, 32768, 65535)
    yield "png_grey16_clipped", png(8, 1, 16, 0, b"\0" + few), 0
    for name, transparent in (("", 1000), ("_low", 100)):
        chunks = [(b"tRNS", struct.pack(">H", transparent))]
        yield f"png_grey16_transparent{name}", png(8, 1, 16, 0, b"\0" + few, chunks), 0
    for name, colours, channels in (("rgb16", 2, 3), ("grey_alpha16", 4, 2), ("rgba16", 6, 4)):
        raw = b"".join(b"\0" + chance.randbytes(5 * 2 * channels) for _ in range(3))
        yield f"png_{name}", png(5, 3, 16, colours, raw), 0
    for name, image in (
        ("24", smooth),
        ("grey", smooth.convert("L")),
        ("palette", smooth.quantize(40)),
        ("bits1", smooth.convert("1")),
        ("32", rgba),
    ):
        yield f"bmp_{name}", save(image, "bmp"), 0
    for name, image in (("palette", smooth.quantize(40)), ("bits1", smooth.convert("1"))):
        data = bytearray(save(image, "bmp"))
        data[10:14] = struct.pack("<I", 54)
        yield f"bmp_{name}_offset_of_palette", bytes(data), 0
        yield f"bmp_{name}_without_padding", bytes(data[:-1]), 0
    yield "gif_plain", save(smooth.quantize(40), "gif"), 0
    frames = [smooth.quantize(9), wave(8, 13, 11).quantize(9)]
    yield "gif_animated", save(frames[0], "gif", save_all=True, append_images=frames[1:]), 0
    yield "gif_transparent", save(smooth.quantize(9), "gif", transparency=2), 0
    yield "webp_lossless", save(smooth, "webp", lossless=True), 0
    yield "webp_lossless_alpha", save(rgba, "webp", lossless=True, exact=True), 0
    yield "webp_lossy", save(smooth, "webp", quality=80), 0
    for name, image in (
        ("rgb", smooth),
        ("rgba", rgba),
        ("grey", smooth.convert("L")),
        ("bits1", smooth.convert("1")),
        ("cmyk", smooth.convert("CMYK")),
    ):
        yield f"tiff_{name}", save(image, "tiff"), 0
    yield "tiff_lzw", save(smooth, "tiff", compression="tiff_lzw"), 0
    yield "tiff_deflate", save(smooth, "tiff", compression="tiff_adobe_deflate"), 0
    yield (
        "tiff_grey16",
        save(Image.fromarray(np.array([[0, 9, 255, 256, 999, 65535]], np.uint16)), "tiff"),
        0,
    )
    yield from encoded_jpegs(save)


def encoded_jpegs(save):
    smooth = wave(3, 21, 19)
    rough = Image.blend(smooth, noise(5, 21, 19), 0.2)
    for name, image in (("smooth", smooth), ("rough", rough)):
        for subsampling, most in ((0, 3), (1, 5), (2, 9)):
            for progressive in (False, True):
                kind = ("444", "422", "420")[subsampling]
                kind += "_progressive" if progressive else "_baseline"
                data = save(
                    image, "jpeg", quality=85, subsampling=subsampling, progressive=progressive
                )
                yield f"jpeg_{name}_{kind}", data, most
    yield "ppm", save(rough, "ppm"), 0
    yield "pgm", save(rough.convert("L"), "ppm"), 0
    commented = b"P6 # width\r\n%d\t%d # height\n255 " % rough.size
    yield "ppm_comments", commented + rough.tobytes() + b"behind", 0
    yield "jpeg_grey", save(smooth.convert("L"), "jpeg", quality=90), 1
    yield "jpeg_rgb", save(rough, "jpeg", quality=90, keep_rgb=True), 1
    yield (
        "jpeg_restarts",
        save(rough, "jpeg", quality=90, subsampling=2, restart_marker_blocks=2),
        9,
    )
    cmyk = save(rough.convert("CMYK"), "jpeg", quality=90)
    yield "jpeg_cmyk", cmyk, 2
    adobe = cmyk.index(b"Adobe")
    yield "jpeg_ycck", cmyk[: adobe + 11] + b"\2" + cmyk[adobe + 12 :], 3


def pictures():
    lines = []
    for name, data, most in encoded_pictures():
        image = Image.open(io.BytesIO(data)).convert("RGB")
        expected = sha(image.tobytes()) if most == 0 else image.tobytes().hex()
        words = f"{name} {image.width} {image.height} {most}"
        lines.append(f"{words} : {data.hex()} {expected}")
    write("pictures.txt", lines)


if __name__ == "__main__":
    ImageFile.MAXBLOCK = 1 << 20
    resizes()
    boxes()
    tensors()
    crops()
    recipes()
    colours()
    pictures()
