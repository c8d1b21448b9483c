#!/usr/bin/env python3
"""Writes the pictures of this folder and index.txt: small JPEGs of every kind, and what they are.

The pictures are generated (ramps, waves and noise) and encoded by libjpeg (jpeg_tool.c), some then
changed byte by byte. What they decode to is what libjpeg-turbo's default decoder gives, for CMYK and
YCCK what Pillow's `convert("RGB")` makes of that. Two versions must agree on every file: the one that
jpeg_tool is linked with (2.1.5 when this was made) and the one inside Pillow (3.2.0), each with its
SIMD code; where the first one differs without it, the index says so.

    apt install gcc libjpeg62-turbo-dev
    pip install pillow==13.0.0 numpy==2.4.6
    python3 make.py            # --check: changes nothing, fails where something would change

A line of index.txt: name, kind, width and height; then, behind the colon, the SHA-256 of the pixels
(rows of width * 3 bytes), and five regions, each as x,y,width,height,hash with the first 16 digits
of the SHA-256 of its pixels. Lines that begin with # say what the next file shows. Kinds:

    rgb    what every version of libjpeg-turbo gives
    simd   what libjpeg-turbo gives with SIMD code; its C code gives something else, since no
           picture has such coefficients (the C code wraps around where SIMD code saturates)
    error  must be refused, or, in Pillow, is
    filled damaged: refused, or filled in as libjpeg-turbo does it while it warns
    lost   damaged, and libjpeg gives up on it: refused either way
"""

import hashlib
import io
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, features

HERE = pathlib.Path(__file__).parent
CHECK = "--check" in sys.argv
CASES = []


class Tool:
    """jpeg_tool, compiled for this run."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "jpeg_tool"
        source = HERE / "jpeg_tool.c"
        subprocess.run(["cc", "-O2", "-o", self.path, source, "-ljpeg"], check=True)

    def encode(self, pixels, options):
        words = [f"{key}={value}" for key, value in options.items()]
        run = subprocess.run([self.path, "encode", *words], input=pixels, capture_output=True)
        assert run.returncode == 0, (options, run.stderr)
        return run.stdout

    def decode(self, data, simd=True, damaged=False):
        """The pixels, or None for an error or, unless it is said to be `damaged`, a warning."""
        options = ["damaged=1"] if damaged else []
        environment = dict(os.environ, **({} if simd else {"JSIMD_FORCENONE": "1"}))
        run = subprocess.run(
            [self.path, "decode", *options], input=data, capture_output=True, env=environment
        )
        return run.stdout if run.returncode == 0 else None


def picture(width, height, channels, seed):
    """Ramps, a wave, an edge and noise in a third of the area."""
    random = np.random.RandomState(seed)
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    values = 128 + 70 * np.sin((x * (c + 2) + y * 3 + seed) / 9.0) + (x * 2 - y) * (c - 1) % 60
    values += np.where((x + 2 * y) % 31 < 9, 60 - 50 * c, 0)
    noise = random.randint(-120, 120, values.shape)
    values += np.where((x // 5 + y // 3) % 3 == 0, noise, noise // 16)
    return np.clip(values, 0, 255).astype(np.uint8).tobytes()


def case(name, shows, width, height, change=None, **options):
    """A file made by libjpeg; `change` maps its bytes to those that are written."""
    CASES.append((name, shows, width, height, change, options))


# Changes to the bytes of a file.


def segments(data):
    """(offset, marker, length with marker) up to and with the first SOS."""
    at = 2
    while True:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0] + 2
        yield at, marker, length
        if marker == 0xDA:
            return
        at += length


def inserted(marker, payload):
    """A segment put behind SOI."""
    segment = bytes([0xFF, marker]) + struct.pack(">H", len(payload) + 2) + payload
    return lambda data: data[:2] + segment + data[2:]


def orientation(value):
    """An Exif segment that says how the picture lies."""
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0" + struct.pack("<HHIHH", 0x0112, 3, 1, value, 0)
    return inserted(0xE1, exif + b"\0\0\0\0")


def fill_bytes(data):
    """Three more 0xFF before every marker segment and before EOI, one before each RST."""
    out, last = bytearray(data[:2]), 2
    for at, _, length in segments(data):
        out += b"\xff\xff\xff" + data[at : at + length]
        last = at + length
    scan = data[last:-2]
    for index in range(8):
        scan = scan.replace(bytes([0xFF, 0xD0 + index]), bytes([0xFF, 0xFF, 0xD0 + index]))
    return bytes(out) + scan + b"\xff\xff\xff" + data[-2:]


def without(*markers):
    """Drops segments."""

    def change(data):
        out, last = bytearray(data[:2]), 2
        for at, marker, length in segments(data):
            if marker not in markers:
                out += data[at : at + length]
            last = at + length
        return bytes(out) + data[last:]

    return change


def patched(marker, offset, new):
    """Overwrites bytes of the first segment of a kind; offset 0 is its length field."""

    def change(data):
        for at, found, _ in segments(data):
            if found == marker:
                at += 2 + offset
                return data[:at] + bytes(new) + data[at + len(new) :]
        raise ValueError(f"no marker {marker:02x}")

    return change


def split_tables(data):
    """Each Huffman table in a segment of its own, all first sent wrong and then right."""
    out, wrong = bytearray(data[:2]), bytearray()
    rest = bytearray()
    for at, marker, length in segments(data):
        segment = data[at : at + length]
        if marker != 0xC4:
            rest += segment
            last = at + length
            continue
        at = 4
        while at < len(segment):
            count = 17 + sum(segment[at + 1 : at + 17])
            table = segment[at : at + count]
            head = b"\xff\xc4" + struct.pack(">H", count + 2)
            # The same symbols backwards: a valid table with other meanings.
            wrong += head + table[:17] + bytes(reversed(table[17:]))
            out += head + table
            at += count
        last = at + length if marker == 0xC4 else last
    right = bytes(out[2:])
    return data[:2] + bytes(wrong) + right + bytes(rest) + data[last:]


def lines_in_dnl(data):
    """The height 0 in the frame header and a DNL segment behind the scan."""
    for at, marker, _ in segments(data):
        if marker == 0xC0:
            height = data[at + 5 : at + 7]
            data = data[: at + 5] + b"\0\0" + data[at + 7 :]
    return data[:-2] + b"\xff\xdc\0\x04" + height + data[-2:]


def cut(count):
    """Breaks the file off, `count` bytes before its end."""
    return lambda data: data[:-count]


def wrong_restart(data):
    """The second restart marker has a wrong number."""
    return data.replace(b"\xff\xd1", b"\xff\xd5", 1)


def after(*changes):
    def change(data):
        for step in changes:
            data = step(data)
        return data

    return change


SAMPLINGS = {
    "444": "1x1,1x1,1x1",
    "422": "2x1,1x1,1x1",
    "420": "2x2,1x1,1x1",
    "440": "1x2,1x1,1x1",
    "411": "4x1,1x1,1x1",
    "410": "4x2,1x1,1x1",
}
SIZES = [(1, 1), (2, 2), (3, 3), (7, 9), (8, 8), (9, 8), (16, 16), (17, 15), (33, 47), (1, 40)]
SIZES += [(40, 1), (5, 6), (6, 5), (4, 18), (31, 2)]


def every_case():
    for index, (width, height) in enumerate(SIZES):
        quality = [5, 30, 50, 75, 85, 90, 95, 100][index % 8]
        case(f"420-{width}x{height}", f"4:2:0 at quality {quality}, a small size", width, height,
             sampling=SAMPLINGS["420"], quality=quality)
    for index, (width, height) in enumerate([(1, 1), (3, 5), (5, 3), (6, 17), (35, 19)]):
        case(f"422-{width}x{height}", "4:2:2", width, height,
             sampling=SAMPLINGS["422"], quality=70 + 5 * index)
    for index, (width, height) in enumerate([(1, 3), (9, 8), (17, 33)]):
        case(f"444-{width}x{height}", "4:4:4", width, height,
             sampling=SAMPLINGS["444"], quality=[60, 90, 100][index])
        case(f"grey-{width}x{height}", "one component", width, height,
             input="gray", quality=[5, 75, 95][index])
    for name, (width, height) in {"440": (19, 35), "411": (41, 18), "410": (45, 37)}.items():
        case(f"{name}-{width}x{height}", f"4:{name[1]}:{name[2]}", width, height,
             sampling=SAMPLINGS[name])
    case("440-5x3", "4:4:0, chroma of two rows", 5, 3, sampling=SAMPLINGS["440"])
    case("411-9x8", "4:1:1, chroma of three columns", 9, 8, sampling=SAMPLINGS["411"])
    case("411-4x4", "4:1:1, chroma of one column", 4, 4, sampling=SAMPLINGS["411"])
    factors = {
        "2x1-1x2-1x1": "Cb sampled across, Cr in both directions",
        "1x2-2x1-1x1": "Y sampled down, Cb across",
        "3x1-1x1-1x1": "chroma a third as wide",
        "1x3-1x1-1x1": "chroma a third as high",
        "2x2-2x1-1x2": "Cb whole across, Cr whole down",
        "2x2-2x2-1x1": "only Cr subsampled",
        "1x1-2x2-2x2": "chroma finer than luma",
        "4x1-2x1-1x1": "three widths",
        "2x2-1x2-1x2": "4:2:2 said with doubled factors",
        "2x1-2x1-2x1": "4:4:4 said with factors of 2",
        "2x4-1x1-1x1": "chroma half as wide, a quarter as high",
    }
    for name, shows in factors.items():
        case(f"factors-{name}", shows, 37, 29, sampling=name.replace("-", ","))
    case("factors-too-many-blocks", "4:4:4 with factors of 2, too many blocks for one scan of all",
         37, 29, sampling="2x2,2x2,2x2", scans="0;1;2")
    case("grey-factors-2x2", "one component with factors of 2, which mean nothing", 21, 19,
         input="gray", sampling="2x2")
    case("tables-optimised", "Huffman tables of its own", 33, 31,
         sampling=SAMPLINGS["420"], optimize=1, quality=90)
    case("tables-resent", "Huffman tables sent one by one, twice, the first ones wrong", 33, 31,
         split_tables, sampling=SAMPLINGS["420"], optimize=1)
    case("tables-swapped", "luma takes the second tables, chroma the first ones", 33, 31,
         sampling=SAMPLINGS["420"], dc="1,0,0", ac="1,0,0", quant="1,0,0")
    case("tables-crossed", "DC and AC tables of different numbers", 33, 31,
         sampling=SAMPLINGS["422"], dc="0,1,0", ac="1,0,1", quant="0,0,1", optimize=1)
    case("tables-absent", "no Huffman tables, which means the standard ones", 24, 24,
         without(0xC4), sampling=SAMPLINGS["420"])
    case("sof1-three-tables", "extended sequential, three tables of each kind", 33, 31,
         dc="0,2,3", ac="1,2,3", quant="0,2,3", optimize=1, sampling=SAMPLINGS["420"])
    case("sof1-quant-16-bit", "extended sequential, quantisation values beyond 255", 33, 31,
         scale=600, sampling=SAMPLINGS["420"])
    case("sof1-quant-large", "extended sequential, quantisation values up to thousands", 33, 31,
         scale=4000, sampling=SAMPLINGS["444"])
    for interval in (1, 3):
        case(f"restart-{interval}", f"a restart marker every {interval} MCUs", 50, 41,
             restart=interval, sampling=SAMPLINGS["420"])
    case("restart-row", "a restart marker every row of MCUs", 50, 41,
         restart_rows=1, sampling=SAMPLINGS["422"])
    case("restart-row-444", "more than eight restart markers, so that their numbers wrap", 19, 90,
         restart_rows=1, sampling=SAMPLINGS["444"])
    case("restart-grey", "restart markers, one component", 50, 41, restart=2, input="gray")
    case("restart-long", "a restart interval longer than the picture", 20, 20, restart=999)
    case("scans-three", "baseline, a scan for each component", 45, 35,
         scans="0;1;2", sampling=SAMPLINGS["420"])
    case("scans-two", "baseline, Y alone, then both chroma components", 45, 35,
         scans="0;1,2", sampling=SAMPLINGS["422"], optimize=1)
    case("scans-restart", "baseline, three scans with restart markers", 45, 35,
         scans="0;1;2", restart=2, sampling=SAMPLINGS["420"])
    case("scans-backwards", "baseline, Cr before Cb before Y", 45, 35,
         scans="2;1;0", sampling=SAMPLINGS["411"])
    case("scans-two-444", "baseline, Y and Cb, then Cr", 27, 18,
         scans="0,1;2", sampling=SAMPLINGS["444"])
    progressive_cases()
    colour_cases()
    marker_cases()
    coefficient_cases()
    refused_cases()
    damaged_cases()


def progressive_cases():
    for name in ("420", "444", "422"):
        case(f"progressive-{name}", "progressive, libjpeg's script", 45, 35,
             progressive=1, sampling=SAMPLINGS[name])
    case("progressive-grey", "progressive, one component", 45, 35, progressive=1, input="gray")
    case("progressive-restart", "progressive with restart markers", 45, 35,
         progressive=1, restart=2, sampling=SAMPLINGS["420"])
    case("progressive-3x3", "progressive, smaller than a block", 3, 3,
         progressive=1, sampling=SAMPLINGS["420"], quality=95)
    case("progressive-spectral", "progressive, spectral selection alone", 33, 21,
         scans="0,1,2:0-0:0-0;0:1-5:0-0;2:1-63:0-0;1:1-63:0-0;0:6-63:0-0",
         sampling=SAMPLINGS["420"])
    case("progressive-refined", "progressive, two refinements of DC and three of AC", 33, 21,
         quality=96, sampling=SAMPLINGS["444"],
         scans="0,1,2:0-0:0-2;0,1,2:0-0:2-1;0,1,2:0-0:1-0;"
               "0:1-63:0-3;1:1-63:0-3;2:1-63:0-3;0:1-63:3-2;1:1-63:3-2;2:1-63:3-2;"
               "0:1-63:2-1;1:1-63:2-1;2:1-63:2-1;0:1-63:1-0;1:1-63:1-0;2:1-63:1-0")
    case("progressive-ycck", "progressive, four components", 19, 23, progressive=1, input="cmyk",
         space="ycck")
    case("progressive-flat", "progressive, long runs of empty blocks", 90, 60,
         progressive=1, coefficients="zero", sampling=SAMPLINGS["420"])
    case("progressive-noise", "progressive, every coefficient in use", 40, 24,
         progressive=1, coefficients="noise", scale=3, sampling=SAMPLINGS["444"])


def colour_cases():
    case("rgb-adobe", "RGB, said by an Adobe segment", 23, 19, space="rgb", adobe=1)
    case("rgb-ids", "RGB, said by the component numbers R, G, B alone", 23, 19,
         space="rgb", adobe=0, ids="82,71,66")
    case("ycc-ids-rgb-jfif", "numbers R, G, B, but a JFIF segment, so YCbCr", 23, 19,
         jfif=1, ids="82,71,66")
    case("ycc-plain", "neither JFIF nor Adobe, numbers 1, 2, 3", 23, 19, jfif=0)
    case("ycc-ids-odd", "neither JFIF nor Adobe, odd numbers", 23, 19, jfif=0, ids="7,200,3")
    case("ycc-ids-0", "JFIF, component numbers from 0", 23, 19, ids="0,1,2")
    case("ycc-adobe", "YCbCr, said by an Adobe segment without JFIF", 23, 19, jfif=0, adobe=1)
    case("ycc-jfif-adobe-rgb", "JFIF and an Adobe segment that says RGB: JFIF counts", 23, 19,
         inserted(0xEE, b"Adobe\0\x64\0\0\0\0\0"))
    case("rgb-420", "RGB with red at full resolution only", 23, 19, space="rgb", adobe=1,
         sampling=SAMPLINGS["420"])
    case("cmyk-adobe", "CMYK, inverted as Photoshop stores it", 21, 17, input="cmyk", adobe=1)
    case("cmyk-plain", "CMYK without an Adobe segment", 21, 17, input="cmyk", adobe=0)
    case("cmyk-420", "CMYK with C and K at full resolution only", 21, 17, input="cmyk", adobe=1,
         sampling="2x2,1x1,1x1,2x2")
    case("ycck-adobe", "YCCK as Photoshop stores it", 21, 17, input="cmyk", space="ycck")
    case("ycck-420", "YCCK with subsampled chroma", 21, 17, input="cmyk", space="ycck",
         sampling="2x2,1x1,1x1,2x2", quality=90)
    case("ycck-restart", "YCCK with restart markers", 40, 17, input="cmyk", space="ycck", restart=1)


def marker_cases():
    for value in range(1, 9):
        case(f"exif-{value}", f"Exif orientation {value}, which is not applied", 11, 6,
             orientation(value), sampling=SAMPLINGS["420"])
    case("segments-com-icc", "a comment and a colour profile", 12, 12,
         after(inserted(0xE2, b"ICC_PROFILE\0\x01\x01" + bytes(range(200))),
               inserted(0xFE, b"made by make.py")))
    case("segments-marker-inside", "a comment with marker bytes inside", 12, 12,
         inserted(0xFE, b"\xff\xd8\xff\xc0\0\x11\xff\xda\xff\xd9"))
    case("fill-bytes", "0xFF fill bytes before every marker", 40, 30, fill_bytes,
         restart=2, sampling=SAMPLINGS["420"])
    case("trailing-bytes", "bytes behind the end marker", 16, 16,
         lambda data: data + b"\0trailing \xff\xd8\xff bytes")
    case("trailing-picture", "a second picture behind the first one", 16, 16, lambda data: data * 2)
    case("zero-before-eoi", "two zero bytes between scan and end marker", 16, 16,
         lambda data: data[:-2] + b"\0\0" + data[-2:])


def coefficient_cases():
    for pattern, shows in {
        "zero": "every coefficient zero",
        "dc": "DC coefficients alone",
        "last": "DC and the very last coefficient",
        "row": "first row of coefficients alone",
        "column": "first column of coefficients alone",
        "sparse": "few coefficients, long runs of zeros",
        "noise": "every coefficient in use",
    }.items():
        case(f"blocks-{pattern}", shows, 40, 24, coefficients=pattern, scale=20,
             sampling=SAMPLINGS["420"])
    case("blocks-largest", "largest coefficients that there are, quantised by 1", 24, 24,
         coefficients="largest", quality=100, sampling=SAMPLINGS["444"])
    case("blocks-noise-100", "noise of blocks, quantised by 1", 40, 24,
         coefficients="noise", quality=100, sampling=SAMPLINGS["422"])
    case("blocks-noise-coarse", "noise of blocks beyond what a picture can be", 40, 24,
         coefficients="noise", scale=50, sampling=SAMPLINGS["444"])


def refused_cases():
    case("error-cut-half", "breaks off inside the scan", 40, 30, lambda d: d[: len(d) * 3 // 4],
         quality=90)
    case("error-cut-header", "breaks off inside a table", 40, 30, lambda data: data[:100])
    case("error-progressive-cut", "progressive, breaks off inside a scan", 40, 30,
         lambda data: data[: len(data) * 3 // 4], progressive=1, quality=90)
    case("error-restart-number", "a restart marker with a wrong number", 50, 41, wrong_restart,
         restart=3)
    case("error-dnl", "height 0 with a DNL segment", 16, 16, lines_in_dnl)
    case("error-width-0", "no columns", 16, 16, patched(0xC0, 5, b"\0\0"))
    case("error-precision-12", "says 12 bits a sample", 16, 16, patched(0xC0, 2, b"\x0c"))
    case("error-lossless", "says lossless", 16, 16,
         lambda data: data.replace(b"\xff\xc0", b"\xff\xc3", 1))
    case("error-hierarchical", "says hierarchical", 16, 16,
         lambda data: data.replace(b"\xff\xc0", b"\xff\xc5", 1))
    case("error-arithmetic-lossless", "says lossless and arithmetic", 16, 16,
         lambda data: data.replace(b"\xff\xc0", b"\xff\xcb", 1))
    case("error-two-components", "two components, of no known colours", 16, 16,
         components=2, input="unknown", space="unknown")
    case("error-fractional", "factors 3 and 2: no whole number of samples", 31, 17,
         after(patched(0xC0, 9, b"\x31"), patched(0xC0, 12, b"\x21")))
    case("error-factor-0", "a sampling factor of 0", 16, 16, patched(0xC0, 9, b"\x01"))
    case("error-component-twice", "two components with one number", 16, 16,
         patched(0xC0, 11, b"\x01"))
    case("error-quant-absent", "no quantisation tables", 16, 16, without(0xDB))
    case("error-huffman-overfull", "a Huffman table with too many codes of one bit", 16, 16,
         patched(0xC4, 3, b"\x05"))
    case("error-no-scan", "ends before a scan", 16, 16, lambda data: data[:20] + b"\xff\xd9")
    case("error-empty-scan", "a scan without data", 40, 30,
         lambda data: data[: [at + length for at, _, length in segments(data)][-1]] + b"\xff\xd9")


def in_data(*changes):
    """Overwrites bytes of the data of the last scan, each at a share of its length."""

    def change(data):
        at = data.rindex(b"\xff\xda") + 2
        at += struct.unpack(">H", data[at : at + 2])[0]
        data, length = bytearray(data), len(data) - 2 - at
        for share, new in changes:
            place = at + int(length * share)
            data[place : place + len(new)] = new
        return bytes(data)

    return change


def first_scans(count):
    """Ends the file behind so many scans."""

    def change(data):
        at = 0
        for _ in range(count + 1):
            at = data.index(b"\xff\xda", at + 2)
        # The segments in front of the scan that goes may stay.
        return data[:at] + b"\xff\xd9"

    return change


def damaged_cases():
    sampled = {"sampling": SAMPLINGS["420"]}
    case("filled-cut", "breaks off inside the scan", 60, 50, lambda d: d[: len(d) * 3 // 4],
         quality=90, **sampled)
    case("filled-cut-early", "breaks off at the first byte of the scan", 40, 30,
         lambda data: data[: [at + length for at, _, length in segments(data)][-1] + 1],
         quality=90, **sampled)
    case("filled-no-data", "no byte of the scan", 40, 30,
         lambda data: data[: [at + length for at, _, length in segments(data)][-1]], **sampled)
    case("filled-no-end", "no end marker", 40, 30, cut(2), quality=85)
    case("filled-half-end", "half an end marker", 40, 30, cut(1), quality=85)
    case("filled-grey", "one component, breaks off", 60, 50, cut(300), input="gray", quality=95)
    case("filled-cmyk", "four components, breaks off", 40, 50, cut(900), input="cmyk", quality=95)
    case("filled-ones", "bits that are no code", 60, 50, in_data((0.4, b"\xfe" * 9)),
         quality=90, optimize=1, **sampled)
    case("filled-zeros", "a stretch of zero bits", 60, 50, in_data((0.4, bytes(60))),
         quality=90, **sampled)
    case("filled-fill-bytes", "0xff twice in data that are read the quick way", 160, 120,
         in_data((0.1, b"\xff\xff\0"), (0.3, b"\xff\xff\xff\0")), quality=95)
    case("filled-marker-inside", "a restart marker in data that should have none", 60, 50,
         in_data((0.5, b"\xff\xd3")), quality=90, **sampled)
    case("filled-segment-inside", "a comment in the middle of the data", 60, 50,
         in_data((0.5, b"\xff\xfe\0\x04ab")), quality=90, **sampled)
    case("filled-between", "bytes between segments", 30, 20,
         lambda data: data[:20] + b"lost\xff\0" + data[20:], **sampled)
    numbers = {
        "next": "the next number", "after-next": "the number after the next", "far": "a number far",
        "previous": "the number before", "absent": "nothing", "reserved": "a reserved marker",
        "twice": "it twice",
    }
    for name, new in zip(numbers, [b"\xff\xd3", b"\xff\xd4", b"\xff\xd6", b"\xff\xd1", b"",
                                   b"\xff\x07", b"\xff\xd2\xff\xd2"]):
        case(f"filled-restart-{name}", f"instead of the third restart marker {numbers[name]}",
             70, 60, lambda data, new=new: data.replace(b"\xff\xd2", new, 1), restart=3, **sampled)
    case("filled-restart-few", "restart markers end early", 70, 60,
         lambda data: data[: data.index(b"\xff\xd5")] + b"\xff\xd9", restart=2, **sampled)
    case("filled-restart-many", "more restart markers than intervals", 40, 30,
         lambda data: data[:-2] + b"\xff\xd6" + data[-2:], restart=2, **sampled)
    case("filled-restart-hole", "some bytes of an interval are gone", 70, 60,
         lambda data: data[: data.index(b"\xff\xd2") - 9] + data[data.index(b"\xff\xd2") :],
         restart=3, quality=90, **sampled)
    case("filled-scans-cut", "sequential, breaks off in the second of three scans", 60, 50,
         lambda d: d[: d.rindex(b"\xff\xda") - 200], scans="0;1;2", quality=95)
    case("filled-scans-absent", "sequential, no scan for the last component", 45, 35,
         lambda d: d[: d.rindex(b"\xff\xda")] + b"\xff\xd9", scans="0;1;2", **sampled)
    for count in (1, 2, 3, 5, 8):
        case(f"filled-progressive-{count}", f"progressive, without the scans behind number {count}",
             77, 61, first_scans(count), progressive=1, quality=80, **sampled)
    for share in (0.3, 0.5, 0.7, 0.9):
        case(f"filled-progressive-cut-{int(share * 100)}",
             f"progressive, breaks off at {int(share * 100)} % of its bytes", 90, 75,
             lambda data, share=share: data[: int(len(data) * share)],
             progressive=1, quality=85, **sampled)
    case("filled-progressive-grey", "progressive, one component, DC alone", 61, 47,
         first_scans(1), progressive=1, input="gray")
    case("filled-progressive-grey-2x2", "progressive, one component with factors of 2, DC alone",
         61, 47, first_scans(1), progressive=1, input="gray", sampling="2x2")
    case("filled-progressive-444", "progressive, 4:4:4, some AC coefficients", 61, 47,
         first_scans(3), progressive=1, sampling=SAMPLINGS["444"])
    for width, height in [(1, 1), (9, 5), (17, 17), (5, 40), (40, 5)]:
        case(f"filled-progressive-{width}x{height}", "progressive, DC alone, a small size",
             width, height, first_scans(1), progressive=1, **sampled)
    case("filled-progressive-restart", "progressive with restart markers, breaks off", 70, 60,
         lambda data: data[: len(data) * 2 // 3], progressive=1, restart=2, quality=85, **sampled)
    case("filled-progressive-wrong", "progressive, wrong bits in the last scan", 60, 50,
         in_data((0.2, b"\x5a\xa5\x5a"), (0.6, b"\xfe\xfe\xfe")), progressive=1, quality=90)
    case("lost-cut-header", "breaks off inside a table", 40, 30, lambda data: data[:100])
    case("lost-reserved-marker", "a reserved marker", 16, 16,
         lambda data: data[:20] + b"\xff\x05" + data[20:])
    case("lost-start-twice", "a second start marker", 16, 16,
         lambda data: data[:20] + b"\xff\xd8" + data[20:])
    case("lost-quant-absent", "no quantisation tables, and it breaks off", 16, 16,
         after(without(0xDB), cut(5)))


# What the files decode to.


def by_pillow(data):
    """Mode and pixels, or None where Pillow refuses."""
    try:
        image = Image.open(io.BytesIO(data))
        mode, rgb = image.mode, image.convert("RGB")
        return mode, rgb.size, rgb.tobytes(), image.tobytes()
    except (OSError, SyntaxError, ValueError):
        return None


def regions(name, width, height):
    """Five rectangles inside: corners, one pixel, a strip, and two anywhere."""
    random = np.random.RandomState(int(hashlib.sha256(name.encode()).hexdigest()[:8], 16))

    def anywhere():
        w, h = random.randint(1, width + 1), random.randint(1, height + 1)
        return random.randint(0, width - w + 1), random.randint(0, height - h + 1), w, h

    right, lower = width // 2, height // 2
    return [
        (right, lower, width - right, height - lower),
        (random.randint(0, width), random.randint(0, height), 1, 1),
        (0, lower, width, 1),
        anywhere(),
        anywhere(),
    ]


def cropped(pixels, width, region):
    x, y, w, h = region
    return b"".join(pixels[((y + r) * width + x) * 3 :][: w * 3] for r in range(h))


def sha(data):
    return hashlib.sha256(data).hexdigest()


def hashes(name, pixels, width, height):
    """That of the whole picture, and regions with theirs."""
    parts = [
        ",".join(map(str, region)) + "," + sha(cropped(pixels, width, region))[:16]
        for region in regions(name, width, height)
    ]
    return f"{sha(pixels)} {' '.join(parts)}"


def damaged_expectation(name, data, tool, size):
    """Pillow is not asked: it stops at damage, or fills in less."""
    pixels = tool.decode(data, damaged=True)
    if name.startswith("lost-"):
        assert pixels is None, f"libjpeg takes {name}"
        return f"{name} lost 0 0 :"
    assert pixels is not None, f"libjpeg refuses {name}"
    width, height = size
    if len(pixels) == width * height * 4:
        pixels = Image.frombytes("CMYK", size, bytes(255 - v for v in pixels)).convert("RGB").tobytes()
    return f"{name} filled {width} {height} : {hashes(name, pixels, width, height)}"


def expectation(name, data, tool, size):
    pillow, own, scalar = by_pillow(data), tool.decode(data), tool.decode(data, simd=False)
    if name.startswith(("filled-", "lost-")):
        return damaged_expectation(name, data, tool, size)
    if name.startswith("error-"):
        if pillow is not None and own is not None:
            print(f"  {name}: libjpeg and Pillow take it")
        return f"{name} error 0 0 :"
    assert pillow is not None, f"Pillow refuses {name}"
    assert own is not None, f"libjpeg refuses or warns: {name}"
    mode, (width, height), rgb, stored = pillow
    # Pillow takes every CMYK as inverted.
    theirs = bytes(255 - value for value in stored) if mode == "CMYK" else rgb
    assert theirs == own, f"{name}: Pillow differs from libjpeg"
    kind = "rgb" if scalar == own else "simd"
    return f"{name} {kind} {width} {height} : {hashes(name, rgb, width, height)}"


def write(path, data):
    if CHECK:
        assert path.read_bytes() == data, f"{path.name} would change"
    else:
        path.write_bytes(data)


def main():
    version = features.version("libjpeg_turbo")
    print(f"Pillow {Image.__version__} with libjpeg-turbo {version}")
    every_case()
    lines, bytes_total = [], 0
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(folder)
        if not CHECK:
            for old in HERE.glob("*.jpg"):
                old.unlink()
        for seed, (name, shows, width, height, change, options) in enumerate(CASES):
            channels = {"gray": 1, "cmyk": 4, "unknown": 2}.get(options.get("input"), 3)
            pixels = picture(width, height, channels, seed)
            sizes = {"width": width, "height": height}
            data = tool.encode(pixels, sizes | options)
            data = change(data) if change else data
            bytes_total += len(data)
            write(HERE / f"{name}.jpg", data)
            lines += [f"# {shows}", expectation(name, data, tool, (width, height))]
    write(HERE / "index.txt", ("\n".join(lines) + "\n").encode())
    print(f"{len(CASES)} files, {bytes_total} bytes")


main()
