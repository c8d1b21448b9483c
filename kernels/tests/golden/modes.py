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

import numpy as np
from PIL import Image, ImageFile
from make import noise, wave

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


if __name__ == "__main__":
    ImageFile.MAXBLOCK = 1 << 20
    greys()
    known = [f"file {name} : {data.hex()}" for name, data in files.items()]
    (HERE / "modes.txt").write_text("\n".join(known + lines) + "\n")
