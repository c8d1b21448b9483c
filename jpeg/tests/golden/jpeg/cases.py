"""The pictures of this folder: name, what it shows, size, and how its file is made."""

from changes import (
    after,
    cut,
    fill_bytes,
    first_scans,
    in_data,
    inserted,
    lines_in_dnl,
    orientation,
    patched,
    segments,
    split_tables,
    without,
    wrong_restart,
)

CASES = []


def case(name, shows, width, height, change=None, **options):
    """A file made by libjpeg; `change` maps its bytes to those that are written."""
    CASES.append((name, shows, width, height, change, options))


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
