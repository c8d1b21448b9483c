#!/usr/bin/env python3
"""Writes elements.txt beside itself: what operations on colours make of pictures with alpha, of 16
bits and of floats, in the form of modes.txt, whose files it names.

With alpha, brightness, contrast, saturation, sharpness, equalization and Pillow's blur are Pillow's;
everything else is that of torchvision's functions on tensors, computed in NumPy after
docs/formats.md, and compared here with torchvision: integers differ by at most 1, floats by 1e-5.

    pip install pillow==13.0.0 numpy==2.4.6 torch==2.15.0 torchvision==0.29.2
    python3 elements.py
"""

import io
import math
import pathlib

import modes
import numpy as np
import torch
from modes import numbers, sha, tiff_of
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torchvision.transforms.v2 import functional as F

HERE = pathlib.Path(__file__).parent
LUMA = [np.float32(it) for it in (0.2989, 0.587, 0.114)]
lines = []


def case(name, mode, table, expected):
    recipe = f"name='decode';mode='{mode}';;{table}"
    lines.append(f"{name} {recipe} : {sha(np.ascontiguousarray(expected).tobytes())}")


def check(made, original, below=np.inf):
    """Compares the values below a bound with torchvision's result, channels first."""
    theirs = np.asarray(original).transpose(1, 2, 0)
    assert theirs.dtype == made.dtype and theirs.shape == made.shape, (theirs.dtype, made.dtype)
    most = 1e-5 if made.dtype == np.float32 else 1
    away = np.abs(theirs.astype(np.float64) - made.astype(np.float64))
    assert away[made < below].max() <= most
    return made


class Picture:
    """Rows, columns and channels; what is computed of them is float32 until it is stored."""

    def __init__(self, values):
        self.values, self.dtype = values, values.dtype
        self.is_float = values.dtype == np.float32
        self.bound = np.float32(1 if self.is_float else np.iinfo(values.dtype).max)
        self.floats = values.astype(np.float32)
        self.tensor = torch.from_numpy(values.transpose(2, 0, 1).copy())

    def stored(self, numbers):
        return numbers if self.is_float else np.trunc(numbers).astype(self.dtype)

    def clamped(self, numbers):
        return self.stored(np.clip(numbers, np.float32(0), self.bound))

    def grey(self):
        if self.values.shape[2] == 1:
            return self.floats
        r, g, b = (self.floats[..., c] for c in range(3))
        return (r * LUMA[0] + g * LUMA[1] + b * LUMA[2])[..., None]

    def blend(self, other, factor):
        rest = np.float32(1.0 - factor)
        return self.clamped(self.floats * np.float32(factor) + rest * other)


def whole(picture, numbers):
    return numbers if picture.is_float else np.floor(numbers)


def brightness(picture, factor):
    made = picture.clamped(picture.floats * np.float32(factor))
    return check(made, F.adjust_brightness(picture.tensor, factor))


def contrast(picture, factor):
    grey = whole(picture, picture.grey())
    mean = np.float32(grey.astype(np.float64).sum() / grey.size)
    return check(picture.blend(mean, factor), F.adjust_contrast(picture.tensor, factor))


def saturation(picture, factor):
    made = picture.values
    if made.shape[2] == 3:
        made = picture.blend(whole(picture, picture.grey()), factor)
    return check(made, F.adjust_saturation(picture.tensor, factor))


def random_grayscale(picture):
    made = picture.values
    if made.shape[2] == 3:
        made = np.repeat(picture.stored(picture.grey()), 3, axis=2)
        check(made, F.rgb_to_grayscale(picture.tensor, 3))
    return made


def sharpness(picture, factor):
    values = picture.floats
    height, width, _ = values.shape
    made = values.copy()
    if height > 2 and width > 2:
        smooth = np.zeros_like(values[1:-1, 1:-1])
        for y, x in np.ndindex(3, 3):
            weight = np.float32(5 if (y, x) == (1, 1) else 1) / np.float32(13)
            smooth = smooth + weight * values[y : height - 2 + y, x : width - 2 + x]
        smooth = smooth if picture.is_float else np.round(smooth)
        inside = values[1:-1, 1:-1]
        rest = np.float32(1) - np.float32(factor)
        made[1:-1, 1:-1] = inside + rest * (smooth - inside)
        made = np.clip(made, np.float32(0), picture.bound)
    made = picture.stored(made)
    return check(made, F.adjust_sharpness(picture.tensor, factor))


def autocontrast(picture):
    low, high = picture.floats.min((0, 1)), picture.floats.max((0, 1))
    scale = (high - low) * (np.float32(1) / picture.bound)
    is_flat = low == high
    low, scale = np.where(is_flat, np.float32(0), low), np.where(is_flat, np.float32(1), scale)
    made = picture.clamped((picture.floats - low) / scale)
    return check(made, F.autocontrast(picture.tensor))


def invert(picture):
    made = picture.stored(picture.bound - picture.floats)
    return check(made, F.invert(picture.tensor))


def posterize(picture, bits):
    if picture.is_float:
        levels = np.float32(1 << bits)
        made = np.clip(np.floor(picture.floats * levels), np.float32(0), levels - 1)
        made = made * (np.float32(1) / levels)
    else:
        size = 8 * picture.dtype.itemsize
        made = picture.values & picture.dtype.type(((1 << bits) - 1) << (size - bits))
    return check(made, F.posterize(picture.tensor, bits))


def solarize(picture, threshold):
    inverted = picture.stored(picture.bound - picture.floats)
    made = np.where(picture.floats >= np.float32(threshold), inverted, picture.values)
    return check(made, F.solarize(picture.tensor, threshold))


def gamma(picture, exponent, gain):
    """In float64; pictures of 8 bits with the arithmetic of Pillow's table."""
    if picture.dtype == np.uint8:
        table = [min(int((255 + 1 - 1e-3) * gain * pow(it / 255.0, exponent)), 255) for it in range(256)]
        return check(np.uint8(table)[picture.values], F.adjust_gamma(picture.tensor, exponent, gain))
    most = float(picture.bound)
    power = np.array([math.pow(it / most, exponent) for it in picture.floats.ravel().tolist()])
    power = power.reshape(picture.values.shape)
    if gain != 1.0:
        power = np.clip(power * gain, 0.0, 1.0)
    theirs = F.adjust_gamma(picture.tensor, exponent, gain)
    if picture.is_float:
        return check(power.astype(np.float32), theirs)
    made = np.trunc(np.minimum(power * (most + 1 - 1e-3), most)).astype(picture.dtype)
    # 65535.999 is 65536 in float32, which torchvision makes 0.
    return check(made, theirs, below=most)


def blur(picture, rows, columns, sigma):
    def weights(length):
        x = np.arange(length) - length // 2
        all_ = np.array([math.exp(-float(d) * float(d) / (2.0 * sigma * sigma)) for d in x])
        return (all_ / all_.sum()).astype(np.float32)

    height, width, channels = picture.values.shape
    padded = np.pad(picture.floats, ((rows // 2,) * 2, (columns // 2,) * 2, (0, 0)), mode="reflect")
    lines = np.zeros((padded.shape[0], width, channels), np.float32)
    for tap, weight in enumerate(weights(columns)):
        lines = lines + weight * padded[:, tap : tap + width]
    made = np.zeros_like(picture.floats)
    for tap, weight in enumerate(weights(rows)):
        made = made + weight * lines[tap : tap + height]
    made = made if picture.is_float else np.round(made).astype(picture.dtype)
    # torchvision takes the weights at other distances than the definition does.
    sizes = [columns, rows]
    theirs = F.gaussian_blur(picture.tensor.to(torch.float64), sizes, [sigma, sigma]).numpy()
    most = 1.0 if not picture.is_float else 1e-5
    assert np.abs(theirs.transpose(1, 2, 0) - made.astype(np.float64)).max() <= most
    return made


def elements(name, mode, values):
    """Everything that pictures of 16 bits and of floats can have."""
    picture = Picture(values)
    for factor in (0.0, 0.4, 1.7):
        for word, function in (("brightness", brightness), ("contrast", contrast), ("saturation", saturation)):
            case(name, mode, f"name='color_jitter';{word}=[{factor},{factor}]", function(picture, factor))
        table = f"name='random_adjust_sharpness';sharpness_factor={factor};p=1"
        case(name, mode, table, sharpness(picture, factor))
    case(name, mode, "name='random_autocontrast';p=1", autocontrast(picture))
    case(name, mode, "name='random_grayscale';p=1", random_grayscale(picture))
    any_mode(name, mode, picture)
    if picture.is_float:
        for threshold in (0.0, 0.4, 1.0):
            table = f"name='random_solarize';threshold={threshold};p=1"
            case(name, mode, table, solarize(picture, threshold))


def any_mode(name, mode, picture):
    case(name, mode, "name='random_invert';p=1", invert(picture))
    for bits in (1, 3, 8):
        case(name, mode, f"name='random_posterize';bits={bits};p=1", posterize(picture, bits))
    for exponent, gain in ((0.45, 1.0), (2.2, 1.7)):
        made = gamma(picture, exponent, gain)
        case(name, mode, f"name='adjust_gamma';gamma={exponent};gain={gain}", made)
    for rows, columns, sigma in ((3, 3, 0.8), (5, 9, 2.0)):
        table = f"name='gaussian_blur';kernel_size=[{rows},{columns}];sigma=[{sigma},{sigma}]"
        case(name, mode, table, blur(picture, rows, columns, sigma))


def alphas(name, values):
    """Pillow's arithmetic, and torchvision's on tensors, which takes alpha as a colour."""
    image = Image.fromarray(values, "RGBA")
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(modes.files[name]))), values)
    for factor in (0.0, 0.4, 1.7):
        for word, kind in (("brightness", "Brightness"), ("contrast", "Contrast"), ("saturation", "Color")):
            made = getattr(ImageEnhance, kind)(image).enhance(factor)
            case(name, "rgba", f"name='color_jitter';{word}=[{factor},{factor}]", np.asarray(made))
        made = ImageEnhance.Sharpness(image).enhance(factor)
        table = f"name='random_adjust_sharpness';sharpness_factor={factor};p=1"
        case(name, "rgba", table, np.asarray(made))
    for radius in (0.5, 2.0):
        made = image.filter(ImageFilter.GaussianBlur(radius))
        case(name, "rgba", f"name='pillow_gaussian_blur';radius=[{radius},{radius}]", np.asarray(made))
    # Pillow equalizes no picture with alpha as one; torchvision's channels are Pillow's.
    made = np.stack([np.asarray(ImageOps.equalize(Image.fromarray(np.ascontiguousarray(values[..., c]))))
                     for c in range(4)], -1)
    check(made, F.equalize(Picture(values).tensor))
    case(name, "rgba", "name='random_equalize';p=1", made)
    picture = Picture(values)
    any_mode(name, "rgba", picture)
    for threshold in (0.0, 100.0, 255.0):
        case(name, "rgba", f"name='random_solarize';threshold={threshold};p=1", solarize(picture, threshold))


def unit(kind):
    """float32 from 0 to 1."""
    return numbers(kind, 1).astype(np.float32) / np.float32(65535)


if __name__ == "__main__":
    modes.alphas()
    modes.words()
    for kind in ("noise", "wave"):
        alphas(f"{kind}_rgba", np.array(Image.open(io.BytesIO(modes.files[f"{kind}_rgba"]))))
        for mode, channels in (("gray16", 1), ("rgb16", 3)):
            elements(f"{kind}_{mode}", mode, numbers(kind, channels))
        name = f"{kind}_unit"
        lines.insert(0, f"file {name} : {tiff_of(unit(kind), 'f4').hex()}")
        elements(name, "float", unit(kind))
    (HERE / "elements.txt").write_text("\n".join(lines) + "\n")
