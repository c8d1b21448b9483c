#!/usr/bin/env python3
"""Writes tiffs.txt beside itself: TIFFs of many kinds, and the hash of the pixels Pillow gives.

A line is "name width height 0 : file sha256", file in hexadecimal digits, as in pictures.txt. What
Pillow cannot write (tiles, planes, unusual samples) is put together here.

    pip install pillow==13.0.0 numpy==2.4.6
    python3 tiffs.py
"""

import hashlib
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent

BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER, ORIENTATION = 258, 259, 262, 266, 274
SAMPLES, PLANAR, PREDICTOR, MAP = 277, 284, 317, 320
EXTRA, FORMAT = 338, 339
RAW, DEFLATE, PACK_BITS = 1, 8, 32773


def tiff(width, height, chunks, tags, tile=None, rows=None, big=False):
    """A file of one picture: `chunks` are the strips or tiles as they are stored."""
    order = ">" if big else "<"
    entries = {256: (4, [width]), 257: (4, [height])}
    entries |= {tag: (3, list(values)) for tag, values in tags.items()}
    offsets = 324 if tile else 273
    if tile:
        entries |= {322: (4, [tile[0]]), 323: (4, [tile[1]])}
    else:
        entries[278] = (4, [rows or height])
    at = 8
    places = []
    for chunk in chunks:
        places.append(at)
        at += len(chunk) + len(chunk) % 2
    entries[offsets] = (4, places)
    entries[325 if tile else 279] = (4, [len(chunk) for chunk in chunks])
    directory = struct.pack(order + "H", len(entries))
    behind = at + 2 + 12 * len(entries) + 4
    values = b""
    for tag, (kind, numbers) in sorted(entries.items()):
        data = struct.pack(order + str(len(numbers)) + {3: "H", 4: "L"}[kind], *numbers)
        if len(data) > 4:
            place = struct.pack(order + "L", behind + len(values))
            values += data
        else:
            place = data.ljust(4, b"\0")
        directory += struct.pack(order + "HHL", tag, kind, len(numbers)) + place
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(order + "L", at)
    body = b"".join(chunk + b"\0" * (len(chunk) % 2) for chunk in chunks)
    return head + body + directory + b"\0\0\0\0" + values


def tiles(pixels, size):
    """The tiles of an array of rows, columns and samples, the last ones padded."""
    height, width = pixels.shape[:2]
    for y in range(0, height, size):
        for x in range(0, width, size):
            tile = pixels[y : y + size, x : x + size]
            pad = [(0, size - tile.shape[0]), (0, size - tile.shape[1]), (0, 0)]
            yield np.pad(tile, pad, constant_values=77).tobytes()


def differences(pixels):
    """Horizontal differences, as predictor 2 stores them."""
    result = pixels.copy()
    result[:, 1:] -= pixels[:, :-1]
    return result


def float_differences(rows):
    """Rows of float32 as predictor 3 stores them."""
    stored = b""
    for row in rows:
        planes = np.frombuffer(row.astype(">f4").tobytes(), np.uint8).reshape(-1, 4).T.flatten()
        stored += np.diff(planes, prepend=np.uint8(0)).astype(np.uint8).tobytes()
    return stored


def saved(image, **options):
    out = io.BytesIO()
    image.save(out, "tiff", **options)
    return out.getvalue()


def written_by_pillow(picture):
    grey = picture.convert("L")
    bilevel = picture.convert("1")
    ramp = np.linspace(-300, 900, 20 * 19).reshape(19, 20)
    yield "palette", saved(picture.quantize(40))
    yield "palette_lzw", saved(picture.quantize(40), compression="tiff_lzw")
    yield "grey_alpha", saved(Image.merge("LA", (grey, grey)))
    yield "ints", saved(Image.fromarray(ramp.astype(np.int32)))
    yield "floats", saved(Image.fromarray(ramp.astype(np.float32)))
    yield "floats_deflate", saved(
        Image.fromarray(ramp.astype(np.float32)), compression="tiff_adobe_deflate"
    )
    for kind in ("tiff_ccitt", "group3", "group4"):
        yield f"bilevel_{kind}", saved(bilevel, compression=kind)
    yield "pack_bits", saved(picture, compression="packbits")
    yield "cmyk_deflate", saved(picture.convert("CMYK"), compression="tiff_adobe_deflate")
    yield "ycbcr", saved(picture.convert("YCbCr"))
    yield "jpeg", saved(picture, compression="jpeg", quality=85)
    yield "jpeg_grey", saved(grey, compression="jpeg", quality=85)
    yield "jpeg_strips", saved(
        picture, compression="jpeg", quality=85, strip_size=3 * picture.width * 8
    )
    yield "large", saved(picture, big_tiff=True)
    for orientation in range(1, 9):
        yield f"turned_{orientation}", saved(picture, tiffinfo={ORIENTATION: orientation})
    yield "turned_group4", saved(bilevel, compression="group4", tiffinfo={ORIENTATION: 6})


def put_together(picture):
    rgb = np.asarray(picture)
    height, width = rgb.shape[:2]
    alpha = (np.arange(width * height).reshape(height, width, 1) * 5 % 256).astype(np.uint8)
    rgba = np.concatenate([rgb, alpha], axis=2)
    multiplied = rgba.copy()
    multiplied[..., :3] = rgb.astype(int) * alpha // 255
    deep = (np.arange(width * height * 4).reshape(height, width, 4) * 2311 % 65536).astype("<u2")
    eight = {BITS: [8, 8, 8], PHOTOMETRIC: [2], SAMPLES: [3]}
    planar = eight | {PLANAR: [2]}
    sixteen = {BITS: [16] * 4, PHOTOMETRIC: [2], SAMPLES: [4], EXTRA: [1]}
    planes = [rgb[..., plane : plane + 1] for plane in range(3)]

    def packed(chunks):
        return [zlib.compress(chunk, 9) for chunk in chunks]

    yield "tiled", tiff(width, height, list(tiles(rgb, 16)), eight, (16, 16))
    yield "one_tile", tiff(width, height, list(tiles(rgb, 32)), eight, (32, 32))
    yield "planar", tiff(width, height, [plane.tobytes() for plane in planes], planar)
    yield (
        "planar_strips",
        tiff(
            width,
            height,
            [plane[y : y + 8].tobytes() for plane in planes for y in range(0, height, 8)],
            planar,
            rows=8,
        ),
    )
    yield (
        "planar_tiled",
        tiff(
            width, height, [t for plane in planes for t in tiles(plane, 16)], planar, (16, 16)
        ),
    )
    yield (
        "planar_tiled_16_multiplied",
        tiff(
            width,
            height,
            packed(t for plane in range(4) for t in tiles(deep[..., plane : plane + 1], 16)),
            sixteen | {PLANAR: [2], COMPRESSION: [DEFLATE]},
            (16, 16),
        ),
    )
    yield "multiplied", tiff(
        width,
        height,
        [multiplied.tobytes()],
        {BITS: [8] * 4, PHOTOMETRIC: [2], SAMPLES: [4], EXTRA: [1]},
    )
    yield "multiplied_16", tiff(width, height, [deep.tobytes()], sixteen)
    yield "multiplied_16_big", tiff(
        width, height, [deep.astype(">u2").tobytes()], sixteen, big=True
    )
    yield "unused_sample", tiff(
        width,
        height,
        [rgba.tobytes()],
        {BITS: [8] * 4, PHOTOMETRIC: [2], SAMPLES: [4], EXTRA: [0]},
    )
    yield "one_size_for_all", tiff(
        width,
        height,
        [rgba.tobytes()],
        {BITS: [8], PHOTOMETRIC: [2], SAMPLES: [4], EXTRA: [2]},
    )
    for big in (False, True):
        stored = differences(deep[..., :3]).astype(">u2" if big else "<u2")
        yield f"differences_16_{'big' if big else 'little'}", tiff(
            width,
            height,
            packed([stored.tobytes()]),
            {
                BITS: [16] * 3,
                PHOTOMETRIC: [2],
                SAMPLES: [3],
                COMPRESSION: [DEFLATE],
                PREDICTOR: [2],
            },
            big=big,
        )
    yield "differences_tiled", tiff(
        width,
        height,
        packed(
            differences(np.frombuffer(t, np.uint8).reshape(16, 16, 3)).tobytes()
            for t in tiles(rgb, 16)
        ),
        eight | {COMPRESSION: [DEFLATE], PREDICTOR: [2]},
        (16, 16),
    )
    ramp = np.linspace(-90, 400, width * height).reshape(height, width)
    yield "float_differences", tiff(
        width,
        height,
        packed([float_differences(ramp)]),
        {BITS: [32], PHOTOMETRIC: [1], FORMAT: [3], COMPRESSION: [DEFLATE], PREDICTOR: [3]},
    )
    yield "cmyk_16", tiff(
        width, height, [deep.tobytes()], {BITS: [16] * 4, PHOTOMETRIC: [5], SAMPLES: [4]}
    )
    bits = bytes((x * 73 + 11) % 256 for x in range(height * 8))
    for photometric, name in ((0, "inverted"), (1, "grey")):
        for size in (1, 2, 4):
            for order in (1, 2):
                row = -(-width * size // 8)
                yield f"{name}_{size}_order_{order}", tiff(
                    width,
                    height,
                    [(bits * 2)[: row * height]],
                    {BITS: [size], PHOTOMETRIC: [photometric], FILL_ORDER: [order]},
                )
        yield f"{name}_8", tiff(
            width, height, [rgb[..., 0].tobytes()], {BITS: [8], PHOTOMETRIC: [photometric]}
        )
        yield f"{name}_16", tiff(
            width,
            height,
            [(deep[..., 0] >> 7).tobytes()],
            {BITS: [16], PHOTOMETRIC: [photometric]},
        )
    for size in (1, 2, 4):
        colours = [(index * 9973) % 65536 for index in range(3 * 2**size)]
        yield f"palette_{size}", tiff(
            width,
            height,
            [(bits * 2)[: -(-width * size // 8) * height]],
            {BITS: [size], PHOTOMETRIC: [3], MAP: colours},
        )
    yield "grey_12", tiff(
        width,
        height,
        [(bits * 8)[: -(-width * 12 // 8) * height]],
        {BITS: [12], PHOTOMETRIC: [1]},
    )
    signed = (deep[..., 0] >> 6).astype("<i2") - 300
    for big in (False, True):
        yield f"signed_16_{'big' if big else 'little'}", tiff(
            width,
            height,
            [signed.astype(">i2" if big else "<i2").tobytes()],
            {BITS: [16], PHOTOMETRIC: [1], FORMAT: [2]},
            big=big,
        )
    yield "grey_16_big", tiff(
        width,
        height,
        [(deep[..., 0] >> 7).astype(">u2").tobytes()],
        {BITS: [16], PHOTOMETRIC: [1]},
        big=True,
    )


def main():
    picture = Image.effect_mandelbrot((20, 19), (-2, -1.5, 1, 1.5), 40)
    picture = Image.merge("RGB", (picture, picture.rotate(90), picture.rotate(180)))
    lines = []
    for name, data in (*written_by_pillow(picture), *put_together(picture)):
        image = Image.open(io.BytesIO(data))
        image.load()
        image = image.convert("RGB")
        expected = hashlib.sha256(image.tobytes()).hexdigest()
        lines.append(f"tiff_{name} {image.width} {image.height} 0 : {data.hex()} {expected}")
    (HERE / "tiffs.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
