#!/usr/bin/env python3
"""Writes modes.txt beside itself: what `decode` gives with each value of `mode`, and what operations
make of it, from Pillow and NumPy.

A line is "FILE RECIPE : sha256". FILE is a name in pictures.txt or tiffs.txt, `jpeg/NAME` (a file of
the JPEG corpus) or one of the lines "file NAME : file" at the beginning. RECIPE consists of tables
separated by `;;` and keys separated by `;`. The hash is that of the tensor.

    pip install pillow==13.0.0 numpy==2.4.6
    python3 modes.py
"""

import hashlib
import io
import pathlib
import zlib

import numpy as np
from geometry import perspective
from make import Draws, noise, png, wave
from PIL import Image, ImageFile
from tiffs import (
    BITS,
    COMPRESSION,
    DEFLATE,
    EXTRA,
    FORMAT,
    ORIENTATION,
    PHOTOMETRIC,
    PLANAR,
    PREDICTOR,
    RAW,
    SAMPLES,
    differences,
    float_differences,
    tiff,
    tiles,
)

HERE = pathlib.Path(__file__).parent
JPEGS = HERE / "../../../jpeg/tests/golden/jpeg"
Transpose = Image.Transpose
BILINEAR, BICUBIC = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC
FILTERS = {
    "bilinear": BILINEAR,
    "bicubic": BICUBIC,
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}

files = {}
lines = []


def sha(data):
    return hashlib.sha256(data).hexdigest()


def save(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def case(name, mode, tables, expected):
    """A recipe that begins with `decode`, and the tensor that it gives, NHWC unless it says more."""
    recipe = ";;".join([f"name='decode';mode='{mode}'", *tables])
    lines.append(f"{name} {recipe} : {sha(np.ascontiguousarray(expected).tobytes())}")


def listed():
    """The files of pictures.txt and tiffs.txt whose pixels equal Pillow's."""
    for table in ("pictures.txt", "tiffs.txt"):
        for line in (HERE / table).read_text().splitlines():
            before, after = line.split(" : ")
            name, _, _, most = before.split()
            if most == "0":
                yield name, bytes.fromhex(after.split()[0])


def corpus():
    """The sound files of the JPEG corpus."""
    for line in (JPEGS / "index.txt").read_text().splitlines():
        name, kind = line.split()[:2]
        if kind == "rgb":
            yield f"jpeg/{name}", (JPEGS / f"{name}.jpg").read_bytes()


def grey(data):
    """libjpeg's grayscale output of a JPEG, which `draft` asks for; `convert` of others."""
    image = Image.open(io.BytesIO(data))
    if image.format == "JPEG" and image.mode == "RGB":
        image.draft("L", None)
        assert image.mode == "L"
    return np.asarray(image.convert("L"))


def resizes(name, mode, image, to_array):
    """Filters and sizes on an image of Pillow; `to_array` gives the tensor of one."""
    width, height = image.size
    for word, resample in FILTERS.items():
        for to in ((40, 31), (100, 77), (width, 20), (25, height)):
            made = image.resize(to, resample)
            table = f"name='resize';size=[{to[1]},{to[0]}];interpolation='{word}'"
            case(name, mode, [table], to_array(made))
    made = image.resize((45, 33), BICUBIC)
    left, top = int(round((45 - 32) / 2.0)), int(round((33 - 24) / 2.0))
    made = made.crop((left, top, left + 32, top + 24))
    made = made.transpose(Transpose.FLIP_LEFT_RIGHT).transpose(Transpose.FLIP_TOP_BOTTOM)
    tables = [
        "name='resize';size=[33,45];interpolation='bicubic'",
        "name='center_crop';size=[24,32]",
        "name='random_horizontal_flip';p=1",
        "name='random_vertical_flip';p=1",
    ]
    case(name, mode, tables, to_array(made))
    # The mirror lies between two resizes.
    made = made.resize((50, 21), BILINEAR)
    tables.append("name='resize';size=[21,50];interpolation='bilinear'")
    case(name, mode, tables, to_array(made))


def paddings(name, mode, values):
    """Pixels around an array of rows, columns and channels."""
    around = [(3, 5), (2, 4), (0, 0)]
    table = "name='pad';padding=[2,3,4,5]"
    for word in ("edge", "reflect", "symmetric"):
        made = np.pad(values, around, word)
        case(name, mode, [f"{table};padding_mode='{word}'"], made)
    case(name, mode, [f"{table};fill=200"], np.pad(values, around, constant_values=200))
    flipped = np.pad(values, around, constant_values=7)[::-1, ::-1]
    flips = ["name='random_horizontal_flip';p=1", "name='random_vertical_flip';p=1"]
    case(name, mode, [f"{table};fill=7", *flips], flipped)


def normalised(name, mode, values, most):
    """Element types: torchvision's scale by 1 / `most`, and a normalisation, in float32."""
    channels = values.shape[2]
    mean, std = [0.485, 0.456, 0.406, 0.5][:channels], [0.229, 0.224, 0.225, 0.25][:channels]
    scaled = values.astype(np.float32)
    if most is not None:
        scaled = scaled * np.float32(1 / most)
    made = (scaled - np.float32(mean)) / np.float32(std)
    tables = ["name='to_dtype';dtype='float32';scale=true", f"name='normalize';mean={mean};std={std}"]
    tables = [table.replace(" ", "") for table in tables]
    case(name, mode, tables, made)
    case(name, mode, [*tables, "name='layout';layout='NCHW'"], made.transpose(2, 0, 1))
    tables = ["name='layout';layout='NCHW'"]
    case(name, mode, tables, values.transpose(2, 0, 1))


def greys():
    for name, data in [*listed(), *corpus()]:
        case(name, "gray", [], grey(data))
    for kind, image in (("noise", noise(5, 61, 47)), ("wave", wave(2, 61, 47))):
        image = image.convert("L")
        name = f"{kind}_l"
        files[name] = save(image, "png")
        values = np.asarray(image)[..., None]
        resizes(name, "gray", image, np.asarray)
        paddings(name, "gray", values)
        normalised(name, "gray", values, 255)


def alphas():
    """RGBA: Pillow multiplies colours by their alpha before it mixes them."""
    for name, data in [*listed(), *list(corpus())[:3]]:
        if name == "png_grey16_transparent":
            continue  # Pillow looks for the transparent grey after it has clipped all of them.
        case(name, "rgba", [], np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")))
    for kind, image in (("noise", noise(6, 61, 47)), ("wave", wave(4, 61, 47))):
        alpha = np.asarray(wave(9, 61, 47))[..., 0].astype(np.int16) * 2 - 128
        image.putalpha(Image.fromarray(alpha.clip(0, 255).astype(np.uint8)))
        name = f"{kind}_rgba"
        files[name] = save(image, "png")
        values = np.asarray(image)
        resizes(name, "rgba", image, np.asarray)
        paddings(name, "rgba", values)
        normalised(name, "rgba", values, 255)
        colour = (9, 80, 200, 100)
        table = "name='pad';padding=[2,3,4,5];fill=[9,80,200,100]"
        made = np.stack(
            [np.pad(values[..., c], [(3, 5), (2, 4)], constant_values=colour[c]) for c in range(4)], -1
        )
        case(name, "rgba", [table], made)
        for word in ("nearest", "bilinear", "bicubic"):
            for angle, expand in ((30.5, True), (90.0, True), (180.0, False), (-123.25, False)):
                made = image.rotate(angle, FILTERS[word], expand, fillcolor=colour)
                table = f"name='random_rotation';degrees=[{angle},{angle}];interpolation='{word}'"
                table += f";expand={str(expand).lower()};fill=[9,80,200,100]"
                case(name, "rgba", [table], np.asarray(made))
            made = perspective(image, 0.6, 1.0, FILTERS[word], colour, Draws(7, 2, 0, 1))
            table = f"name='random_perspective';distortion_scale=0.6;p=1;interpolation='{word}'"
            case(name, "rgba", [f"{table};fill=[9,80,200,100]"], np.asarray(made))


def tiff_of(values, kind, compression=RAW, big=False, planar=False, predictor=1, tile=None, **extra):
    """A TIFF of an array: `kind` is the letter of NumPy's type, its samples grey or RGB."""
    height, width, channels = values.shape
    order = ">" if big else "<"
    stored = values.astype(order + kind)
    tags = {
        BITS: [8 * stored.itemsize] * channels,
        COMPRESSION: [compression],
        PHOTOMETRIC: [2 if channels >= 3 else 1],
        SAMPLES: [channels],
        PREDICTOR: [predictor],
        FORMAT: [3 if kind == "f4" else 1] * channels,
        PLANAR: [2 if planar else 1],
    } | {globals()[key]: value for key, value in extra.items()}
    if planar:
        chunks = [stored[..., c].tobytes() for c in range(channels)]
    elif predictor == 3:
        chunks = [float_differences(stored[..., 0])]
    elif predictor == 2:
        # Differences wrap in the numbers, whatever their order of bytes.
        chunks = [differences(values.astype(kind)).astype(order + kind).tobytes()]
    elif tile:
        chunks = list(tiles(stored, tile))
    else:
        chunks = [stored.tobytes()]
    if compression == DEFLATE:
        chunks = [zlib.compress(chunk) for chunk in chunks]
    return tiff(width, height, chunks, tags, tile=tile and (tile, tile), big=big)


def png16(values):
    """A PNG of an array of 16 bits."""
    height, width, channels = values.shape
    raw = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return png(width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], raw)


def numbers(kind, channels):
    """An array of 16 bits: every value beside every other, or ramps."""
    if kind == "noise":
        values = np.frombuffer(noise(8, 61, 47 * 2).tobytes(), "<u2")
        values = values[: 47 * 61 * 3].reshape(47, 61, 3)
    else:
        values = np.asarray(wave(4, 61, 47)).astype(np.uint16) * 257
    return np.ascontiguousarray(values[..., :channels])


def per_channel(values):
    """An object with the methods of an image that the functions above use, channel by channel."""

    class Channels:
        def __init__(self, images):
            self.images = images
            self.size = images[0].size

        def __getattr__(self, name):
            return lambda *args: Channels([getattr(image, name)(*args) for image in self.images])

    return Channels([Image.fromarray(np.ascontiguousarray(values[..., c])) for c in range(values.shape[2])])


def array(channels):
    return np.stack([np.asarray(image) for image in channels.images], axis=-1)


def words():
    """16 bits: each channel as Pillow's mode I;16."""
    for mode, channels in (("gray16", 1), ("rgb16", 3)):
        for kind in ("noise", "wave"):
            values = numbers(kind, channels)
            name = f"{kind}_{mode}"
            files[name] = png16(values)
            case(name, mode, [], values)
            resizes(name, mode, per_channel(values), array)
            paddings(name, mode, values)
            normalised(name, mode, values, 65535)
            made = per_channel(values).rotate(30.5, Image.Resampling.NEAREST, True)
            table = "name='random_rotation';degrees=[30.5,30.5];expand=true"
            case(name, mode, [table], array(made))
        values = numbers("noise", channels)[:19, :23]
        variants = {
            "raw": {},
            "big": {"big": True},
            "deflate": {"compression": DEFLATE},
            "differences": {"compression": DEFLATE, "predictor": 2},
            "big_differences": {"compression": DEFLATE, "predictor": 2, "big": True},
            "tiles": {"tile": 16},
        }
        if channels == 3:
            variants["planar"] = {"planar": True}
        for variant, keys in variants.items():
            files[f"{mode}_tiff_{variant}"] = tiff_of(values, "u2", **keys)
            case(f"{mode}_tiff_{variant}", mode, [], values)
        files[f"{mode}_tiff_turned"] = tiff_of(values, "u2", ORIENTATION=[6])
        case(f"{mode}_tiff_turned", mode, [], np.rot90(values, -1))
        alpha = np.concatenate([values, values[..., :1]], axis=-1)
        files[f"{mode}_alpha"] = png16(alpha)
        case(f"{mode}_alpha", mode, [], values)
        files[f"{mode}_tiff_alpha"] = tiff_of(alpha, "u2", EXTRA=[2])
        case(f"{mode}_tiff_alpha", mode, [], values)


def floats():
    """float32: Pillow's mode F."""
    ramps = numbers("wave", 1).astype(np.float32) / 7 - 1000
    rough = numbers("noise", 1).astype(np.float32) * np.float32(1e-3) - 20
    for kind, values in (("wave", ramps), ("noise", rough)):
        name = f"{kind}_float"
        files[name] = tiff_of(values, "f4")
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(files[name])))[..., None], values)
        case(name, "float", [], values)
        resizes(name, "float", per_channel(values), array)
        paddings(name, "float", values)
        mean, std = np.float32([0.485]), np.float32([0.229])
        table = "name='normalize';mean=[0.485];std=[0.229]"
        case(name, "float", ["name='to_dtype';dtype='float32';scale=true", table], (values - mean) / std)
        case(name, "float", ["name='to_dtype';dtype='float16'"], values.astype(np.float16))
        made = per_channel(values).rotate(30.5, Image.Resampling.NEAREST, True)
        table = "name='random_rotation';degrees=[30.5,30.5];expand=true"
        case(name, "float", [table], array(made))
    for variant, keys in {
        "big": {"big": True},
        "differences": {"compression": DEFLATE, "predictor": 3},
        "big_differences": {"compression": DEFLATE, "predictor": 3, "big": True},
        "turned": {"ORIENTATION": [3]},
    }.items():
        few = rough[:19, :23]
        files[f"floats_{variant}"] = tiff_of(few, "f4", **keys)
        expected = few[::-1, ::-1] if variant == "turned" else few
        case(f"floats_{variant}", "float", [], expected)


if __name__ == "__main__":
    ImageFile.MAXBLOCK = 1 << 20
    greys()
    alphas()
    words()
    floats()
    known = [f"file {name} : {data.hex()}" for name, data in files.items()]
    (HERE / "modes.txt").write_text("\n".join(known + lines) + "\n")
