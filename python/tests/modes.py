"""Files for every mode of ``decode``, written without a library, and what batches of them hold."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, Dict, Tuple

import numpy

# NumPy's type and the number of channels of a batch.
MODES: Dict[str, Tuple[str, int]] = {
    "rgb": ("uint8", 3),
    "gray": ("uint8", 1),
    "rgba": ("uint8", 4),
    "gray16": ("uint16", 1),
    "rgb16": ("uint16", 3),
    "float": ("float32", 1),
}
HEIGHT, WIDTH, COUNT = 9, 12, 10


def pixels(mode: str, number: int) -> numpy.ndarray:
    """The picture with this number, [height, width, channel]."""
    dtype, channels = MODES[mode]
    shape = (HEIGHT, WIDTH, channels)
    noise = numpy.random.default_rng(number)
    if dtype == "float32":
        return noise.normal(0, 1000, shape).astype(numpy.float32)
    return noise.integers(0, numpy.iinfo(dtype).max + 1, shape, dtype)


def png(picture: numpy.ndarray) -> bytes:
    """A PNG of 8 or 16 bits a channel (PNG specification, section 11.2.2)."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    height, width, channels = picture.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    depth = 8 * picture.itemsize
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    big_endian = picture.astype(picture.dtype.newbyteorder(">"))
    rows = b"".join(b"\0" + row.tobytes() for row in big_endian)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def tiff(picture: numpy.ndarray) -> bytes:
    """A TIFF of one strip of float32 (TIFF 6.0, sections 2 and 19)."""
    height, width, _ = picture.shape
    data = picture.astype("<f4").tobytes()
    long, short = 4, 3
    fields = [
        (256, long, width), (257, long, height), (258, short, 32), (259, short, 1),
        (262, short, 1), (273, long, 8), (277, short, 1), (278, long, height),
        (279, long, len(data)), (339, short, 3),
    ]  # fmt: skip
    directory = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in fields)
    head = struct.pack("<2sHI", b"II", 42, 8 + len(data))
    return head + data + struct.pack("<H", len(fields)) + directory + bytes(4)


def make(folder: Path, mode: str) -> Path:
    """A folder of :data:`COUNT` pictures, whose samples have the numbers of the pictures."""
    folder.mkdir(parents=True)
    for number in range(COUNT):
        picture = pixels(mode, number)
        name, file = (".tif", tiff(picture)) if mode == "float" else (".png", png(picture))
        (folder / f"{number:03}{name}").write_bytes(file)
    return folder


def check(batch: Dict[str, Any], mode: str, layout: str) -> int:
    """Compares the NumPy arrays of a batch with the pictures; returns how many there are."""
    dtype, _ = MODES[mode]
    images, samples = batch["image"], batch["sample"]
    assert images.dtype == dtype
    for image, sample in zip(images, samples):
        expected = pixels(mode, int(sample))
        expected = expected.transpose(2, 0, 1) if layout == "NCHW" else expected
        numpy.testing.assert_array_equal(image, expected)
    return len(images)
