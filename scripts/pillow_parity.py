#!/usr/bin/env python3
"""Compares the pixels of pictures with Pillow's.

    python3 scripts/pillow_parity.py FOLDER [--meetpoint target/release/meetpoint] [--markdown FILE]
    python3 scripts/pillow_parity.py --generate FOLDER

Needs `pip install pillow==13.0.0 numpy`. Every file under FOLDER that Pillow opens and loads, in a
format that Meetpoint reads, is packed alone and shown; the result must be that of
`Image.open(file).convert("RGB")`. Printed are the counts (equal, differing, refused by Meetpoint only,
refused by Pillow only, refused by both) and the files behind all but the first and the last one.
Files in other formats are counted and not tried.

With --generate it writes pictures of the kinds that Pillow can write into FOLDER instead: modes,
bit depths, palettes, transparency, animation, interlacing, compressions and orientations.
"""

import argparse
import collections
import io
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

FORMATS = {"JPEG", "MPO", "PNG", "WEBP", "BMP", "GIF", "TIFF"}
MAGIC = (
    b"\xff\xd8\xff",
    b"\x89PNG\r\n\x1a\n",
    b"BM",
    b"GIF8",
    b"II*\0",
    b"MM\0*",
    b"II+\0",
    b"MM\0+",
)
EQUAL, DIFFERS, OURS_REFUSES = "equal", "differing", "refused by Meetpoint only"
PILLOW_REFUSES, BOTH_REFUSE = "refused by Pillow only", "refused by both"
OTHER = "in another format"


def by_pillow(file):
    """The format and pixels, or the reason why there are none."""
    kind = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # From a path Pillow 13.0.0 maps some TIFFs into memory, and turns those wrongly.
            with Image.open(io.BytesIO(file.read_bytes())) as image:
                kind = image.format
                if kind not in FORMATS:
                    return kind, None, "another format"
                return kind, np.asarray(image.convert("RGB")), None
    except Exception as error:
        return kind, None, f"{type(error).__name__}: {error}"


def by_meetpoint(program, file, folder):
    """The pixels, or the reason why there are none."""
    source, dataset, pixels = folder / "source", folder / "one.set", folder / "pixels.npy"
    for leftover in (dataset, pixels, source):
        subprocess.run(["rm", "-rf", leftover], check=True)
    source.mkdir()
    # A picture's extension, whatever the file is called: its content says what it is.
    (source / "picture.png").write_bytes(file.read_bytes())
    for command in (
        ["pack", source, dataset],
        ["show", dataset, "0", "-o", pixels],
    ):
        done = subprocess.run([program, *command], capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            return None, " ".join(lines)
    return np.load(pixels), None


def compare(program, root):
    counts = collections.Counter()
    found = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        for file in sorted(path for path in root.rglob("*") if path.is_file()):
            kind, expected, why = by_pillow(file)
            begin = file.read_bytes()[:12]
            is_ours = begin.startswith(MAGIC) or begin[8:] == b"WEBP"
            if not is_ours and expected is None:
                counts[OTHER] += 1
                continue
            got, refusal = by_meetpoint(program, file, Path(temporary))
            name = file.relative_to(root)
            if expected is None:
                result = BOTH_REFUSE if got is None else PILLOW_REFUSES
                found[result].append((name, why))
            elif got is None:
                result = OURS_REFUSES
                found[result].append((name, refusal))
            elif got.shape == expected.shape and (got == expected).all():
                result = EQUAL
            else:
                result = DIFFERS
                found[result].append((name, difference(got, expected)))
            counts[result] += 1
            counts[f"{kind} {result}"] += 1
    return counts, found


def difference(got, expected):
    if got.shape != expected.shape:
        return f"shape {got.shape}, Pillow {expected.shape}"
    values = np.abs(got.astype(int) - expected)
    share = (values.max(axis=-1) > 0).mean()
    return f"{share:.2%} of pixels, by {values.max()} at most, {values.mean():.2f} on average"


def report(counts, found):
    yield "| result | files |"
    yield "|---|---|"
    for result in (EQUAL, DIFFERS, OURS_REFUSES, PILLOW_REFUSES, BOTH_REFUSE, OTHER):
        yield f"| {result} | {counts[result]} |"
    for result in (DIFFERS, OURS_REFUSES, PILLOW_REFUSES):
        if found[result]:
            yield ""
            yield f"{result}:"
            yield ""
            for name, why in found[result]:
                yield f"- `{name}`: {why}"


def generate(folder):
    folder.mkdir(parents=True, exist_ok=True)
    picture = Image.effect_mandelbrot((37, 29), (-2, -1.5, 1, 1.5), 60)
    rgb = Image.merge("RGB", (picture, picture.rotate(90), picture.rotate(180)))
    rgba = rgb.copy()
    rgba.putalpha(picture.rotate(180))
    grey = rgb.convert("L")
    modes = {
        "1": rgb.convert("1"),
        "L": grey,
        "LA": Image.merge("LA", (grey, picture)),
        "P": rgb.quantize(200),
        "RGB": rgb,
        "RGBA": rgba,
        "CMYK": rgb.convert("CMYK"),
        "YCbCr": rgb.convert("YCbCr"),
        "I;16": Image.fromarray((np.asarray(grey).astype(np.uint16) * 5)),
        "I": Image.fromarray(np.asarray(grey).astype(np.int32) * 3 - 100),
        "F": Image.fromarray(np.asarray(grey).astype(np.float32) * 1.7 - 60.3),
    }
    written = 0

    def save(name, image, **options):
        nonlocal written
        try:
            image.save(folder / name, **options)
            written += 1
        except (OSError, ValueError, SystemError) as error:
            (folder / name).unlink(missing_ok=True)
            print(f"{name}: not written: {error}")

    for mode, image in modes.items():
        name = mode.replace(";", "")
        for kind in ("png", "bmp", "gif", "tif", "jpg", "webp"):
            save(f"{kind}_{name}.{kind}", image)
        for compression in (
            "tiff_ccitt", "group3", "group4", "tiff_lzw", "jpeg", "tiff_adobe_deflate", "packbits",
        ):
            save(f"tif_{name}_{compression}.tif", image, compression=compression)
        for orientation in range(2, 9):
            exif = Image.Exif()
            exif[274] = orientation
            save(f"tif_{name}_turned_{orientation}.tif", image, tiffinfo={274: orientation})
            if mode in ("RGB", "L"):
                for kind in ("png", "webp", "jpg"):
                    save(f"{kind}_{name}_turned_{orientation}.{kind}", image, exif=exif)
    for colours in (2, 4, 16, 200):
        palette = rgb.quantize(colours)
        save(f"png_palette_{colours}.png", palette)
        save(f"png_palette_{colours}_transparent.png", palette, transparency=1)
        save(f"png_palette_{colours}_alphas.png", palette, transparency=bytes(range(colours)))
        save(f"gif_palette_{colours}_transparent.gif", palette, transparency=1)
        save(f"bmp_palette_{colours}.bmp", palette)
    save("png_grey_transparent.png", grey, transparency=100)
    save("png_rgb_transparent.png", rgb, transparency=(0, 0, 0))
    frames = [rgb, rgb.rotate(90), rgb.rotate(180)]
    for kind in ("png", "webp", "gif", "tif"):
        save(f"{kind}_frames.{kind}", frames[0], save_all=True, append_images=frames[1:])
    save("webp_lossless.webp", rgba, lossless=True, exact=True)
    save("webp_lossless_frames.webp", frames[0], save_all=True, append_images=frames[1:], lossless=True)
    save("gif_interlaced.gif", rgb, interlace=1)
    for subsampling in (0, 1, 2):
        save(f"jpg_{subsampling}.jpg", rgb, subsampling=subsampling)
        save(f"jpg_{subsampling}_progressive.jpg", rgb, subsampling=subsampling, progressive=True)
    for depth in (1, 2, 4, 8, 16):
        for colours, channels in ((0, 1), (2, 3), (3, 1), (4, 2), (6, 4)):
            if depth < 8 and channels > 1 or depth == 16 and colours == 3:
                continue
            for transparent in (False, True):
                if transparent and colours >= 4:
                    continue
                for interlaced in (False, True):
                    data = png(37, 29, depth, colours, channels, transparent, interlaced)
                    kind = f"png_type_{colours}_depth_{depth}"
                    name = kind + "_tRNS" * transparent + "_interlaced" * interlaced
                    (folder / f"{name}.png").write_bytes(data)
                    written += 1
    for width, height in ((0, 5), (5, 0)):
        (folder / f"png_{width}x{height}.png").write_bytes(png(width, height, 8, 2, 3, False, False))
        (folder / f"bmp_{width}x{height}.bmp").write_bytes(
            b"BM" + struct.pack("<IIIIiiHHIIIIII", 54, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
        )
        written += 2
    print(f"{written} pictures in {folder}")


PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def png(width, height, depth, colours, channels, transparent, interlaced):
    """A PNG of any kind. Samples follow from their place, in their full range."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    most = (1 << depth) - 1
    values = np.arange(width * height * channels).reshape(height, width * channels)
    values = (values * 2311 % 65536) * (most + 1) // 65536
    raw = io.BytesIO()
    for x, y, across, down in PASSES if interlaced else ((0, 0, 1, 1),):
        part = values.reshape(height, width, channels)[y::down, x::across]
        if part.size == 0:
            continue
        for row in part.reshape(part.shape[0], -1):
            bits = "".join(f"{value:0{depth}b}" for value in row)
            bits += "0" * (-len(bits) % 8)
            raw.write(b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big"))
    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, int(interlaced))
    parts = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header)]
    if colours == 3:
        palette = bytes((index * 89 + 7) % 256 for index in range(3 << depth))
        parts.append(chunk(b"PLTE", palette))
    if transparent:
        clear = {0: struct.pack(">H", most // 3), 2: struct.pack(">3H", 1, 2, 3), 3: b"\0\x80"}
        parts.append(chunk(b"tRNS", clear[colours]))
    parts += [chunk(b"IDAT", zlib.compress(raw.getvalue(), 9)), chunk(b"IEND", b"")]
    return b"".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--meetpoint", type=Path, default=Path("target/release/meetpoint"))
    parser.add_argument("--markdown", type=Path, help="write the result here, too")
    parser.add_argument("--generate", action="store_true", help="write pictures, compare nothing")
    arguments = parser.parse_args()
    if arguments.generate:
        generate(arguments.folder)
        return 0
    if not arguments.meetpoint.is_file():
        sys.exit(f"{arguments.meetpoint} is missing; build it with: cargo build --release")
    counts, found = compare(arguments.meetpoint.resolve(), arguments.folder)
    text = "\n".join(report(counts, found)) + "\n"
    print(text, end="")
    if arguments.markdown:
        arguments.markdown.write_text(text)
    return 1 if counts[DIFFERS] else 0


if __name__ == "__main__":
    sys.exit(main())
