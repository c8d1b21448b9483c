"""Writes small datasets with the programs that own their formats, and what is in them.

    python make_b.py                (writes into tables/ beside this file)

Needs pyarrow, datasets, polars, duckdb, tfrecord, mosaicml-streaming (with xxhash, cramjam, zstd,
Brotli and catalogue; not PyTorch), datadings, msgpack, numpy and pillow. The
`.beton` file is written here, after the description of the format in FFCV's own source
(https://github.com/libffcv/ffcv: types.py, fields/); the one that FFCV itself wrote is of
make_ffcv.py.
`expected.json` holds what each source must yield; content as SHA-256.
"""

import base64
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import sys
import types

import datasets
import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from PIL import Image

HERE = pathlib.Path(__file__).parent / "tables"
EXPECTED = {}


def picture(index, form="JPEG", mode="RGB"):
    """A file of a small picture."""
    rng = np.random.default_rng(index)
    shape = (6, 7, 3) if mode == "RGB" else (6, 7)
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, shape, dtype=np.uint8), mode).save(file, form)
    return file.getvalue()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def expect(path, samples, labels=(), kind="image", name="image", **options):
    """Notes what the source at `path`, opened with `options`, must yield."""
    key = path + ("?" + "&".join(f"{k}={v}" for k, v in options.items()) if options else "")
    rows = [
        {"key": k, "content": sha(c), "label": label, "extra": extra}
        for k, c, label, extra in samples
    ]
    EXPECTED[key] = {
        "path": path, "options": options, "kind": kind, "name": name, "labels": list(labels),
        "samples": rows,
    }


PICTURES = [picture(i) for i in range(5)]
NAMES = ["cat", "dog", "eel"]


def parquet():
    folder = HERE / "parquet"
    folder.mkdir()
    boxes = [[0.5, 1.0], [], None, [2.25], [3.0, 4.0, 5.5]]
    sizes = [{"w": 7, "h": i} for i in range(5)]
    table = pa.table({
        "image": pa.array(PICTURES, pa.binary()),
        "label": pa.array([2, 0, None, 1, 1], pa.int64()),
        "author": pa.array(["ann", "bob", "ann", None, "bob"]).dictionary_encode(),
        "caption": pa.array(["a", "b" * 20, "c", "ü", ""], pa.string_view()),
        "boxes": pa.array(boxes, pa.list_(pa.float32())),
        "size": pa.array(sizes),
        "key": pa.array([f"k/{i}.jpg" for i in range(5)]),
    })
    extra = [
        {"author": a, "caption": c, "boxes": b, "size": s}
        for a, c, b, s in zip(
            ["ann", "bob", "ann", None, "bob"], ["a", "b" * 20, "c", "ü", ""], boxes, sizes)
    ]
    for codec in ["none", "snappy", "gzip", "lz4", "brotli", "zstd"]:
        for version in ["1.0", "2.0"]:
            path = f"parquet/{codec}-{version}.parquet"
            pa.parquet.write_table(
                table, HERE / path, compression=codec, data_page_version=version,
                row_group_size=2, write_page_checksum=True)
            samples = zip([f"k/{i}.jpg" for i in range(5)], PICTURES, [2, 0, None, 1, 1], extra)
            expect(path, samples)
    # Labels by name, no key, no picture metadata: numbered, with an extension.
    named = pa.table({"jpg": pa.array(PICTURES, pa.large_binary()),
                      "label": ["dog", "cat", "dog", "eel", "cat"]})
    pa.parquet.write_table(named, HERE / "parquet/named.parquet")
    keys = [f"{i:06}.jpg" for i in range(5)]
    expect("parquet/named.parquet", zip(keys, PICTURES, [0, 1, 0, 2, 1], [None] * 5),
           ["dog", "cat", "eel"], name="jpg")
    # A table without content.
    pa.parquet.write_table(pa.table({"a": [1, 2], "b": [0.5, None]}), HERE / "parquet/bare.parquet")
    expect("parquet/bare.parquet",
           [("000000", b"", None, {"a": 1, "b": 0.5}), ("000001", b"", None, {"a": 2, "b": None})],
           kind="none", name="")


def hugging_face():
    features = datasets.Features({
        "img": datasets.Image(), "label": datasets.ClassLabel(names=NAMES),
        "mask": datasets.Image(), "note": datasets.Value("string"),
        "coarse": datasets.ClassLabel(names=["x", "y"]),
    })

    def rows(paths, start, count):
        masks = [picture(50 + start + i, "PNG", "L") for i in range(count)]
        data = {
            "img": [{"bytes": PICTURES[start + i], "path": paths(start + i)} for i in range(count)],
            "label": [(start + i) % 3 for i in range(count)],
            "mask": [{"bytes": m, "path": None} for m in masks],
            "note": [f"n{start + i}" for i in range(count)],
            "coarse": [i % 2 for i in range(count)],
        }
        extra = [{"mask": {"bytes": m.hex(), "path": None}, "note": f"n{start + i}",
                  "coarse": i % 2} for i, m in enumerate(masks)]
        return datasets.Dataset.from_dict(data, features=features), data, extra

    train, data, extra = rows(lambda i: f"photo{i}.jpg", 0, 4)
    test, _, test_extra = rows(lambda i: "same.jpg", 4, 1)
    folder = HERE / "hub" / "data"
    folder.mkdir(parents=True)
    train.select([0, 1]).to_parquet(folder / "train-00000-of-00002.parquet")
    train.select([2, 3]).to_parquet(folder / "train-00001-of-00002.parquet")
    test.to_parquet(folder / "test-00000-of-00001.parquet")
    samples = list(zip([f"photo{i}.jpg" for i in range(4)], PICTURES, [0, 1, 2, 0], extra))
    expect("hub", samples, NAMES, name="img", split="train")
    tests = [("same.jpg", PICTURES[4], 1, test_extra[0])]
    expect("hub", tests, NAMES, name="img", split="test")
    # Paths that are there twice are no keys: they go along as a column.
    double, _, double_extra = rows(lambda i: "same.jpg", 0, 2)
    double.to_parquet(HERE / "hub" / "double.parquet")
    expect("hub/double.parquet", [
        (f"{i:06}.jpg", PICTURES[i], i, double_extra[i] | {"img_path": "same.jpg"})
        for i in range(2)], NAMES, name="img")

    saved = datasets.DatasetDict({"train": train, "test": test})
    saved.save_to_disk(HERE / "saved", num_shards={"train": 2, "test": 1})
    expect("saved", samples, NAMES, name="img", split="train")
    expect("saved/train", samples, NAMES, name="img")
    expect("saved", tests, NAMES, name="img", split="test")
    for path in (HERE / "saved").rglob("cache-*"):
        path.unlink()


def arrow():
    folder = HERE / "arrow"
    folder.mkdir()
    table = pa.table({
        "image": pa.array([PICTURES[0], None, PICTURES[2]], pa.binary()),
        "label": pa.array([1, 0, 2], pa.int16()),
        "tag": pa.array(["u", "v", "u"]).dictionary_encode(),
    })
    present = [("000000.jpg", PICTURES[0], 1, {"tag": "u"}),
               ("000002.jpg", PICTURES[2], 2, {"tag": "u"})]
    for codec in ["uncompressed", "lz4", "zstd"]:
        path = f"arrow/{codec}.feather"
        pa.feather.write_feather(table, HERE / path, compression=codec, chunksize=2)
        if codec != "zstd":
            expect(path, present)
    with pa.OSFile(str(folder / "stream.arrow"), "wb") as sink:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=1)
    expect("arrow/stream.arrow", present)
    sounds = [b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes([i] * 20) for i in range(2)]
    table = pa.table({"data": pa.array(sounds, pa.large_binary()), "n": pa.nulls(2)})
    with pa.OSFile(str(folder / "sounds.arrow"), "wb") as sink:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    expect("arrow/sounds.arrow",
           [(f"{i:06}.wav", s, None, {"n": None}) for i, s in enumerate(sounds)],
           kind="audio", name="data")
    texts = pa.table({"text": ["one", "zwei"], "label": [0, 1]})
    pa.feather.write_feather(texts, folder / "texts.feather", compression="uncompressed")
    expect("arrow/texts.feather",
           [("000000", b"one", 0, None), ("000001", "zwei".encode(), 1, None)],
           kind="text", name="text")


def other_writers():
    """The same table by polars (Zstandard, views) and DuckDB."""
    import duckdb
    import polars

    folder = HERE / "writers"
    folder.mkdir()
    data = {"image": PICTURES, "label": [4, 3, 2, 1, 0], "note": ["a", None, "c" * 30, "", "e"],
            "sizes": [[1, 2], [], None, [3], [4]]}
    samples = [(f"{i:06}.jpg", PICTURES[i], 4 - i,
                {"note": data["note"][i], "sizes": data["sizes"][i]}) for i in range(5)]
    frame = polars.DataFrame(data, schema_overrides={"sizes": polars.List(polars.Int32)})
    frame.write_parquet(folder / "polars.parquet")
    frame.write_ipc(folder / "polars.arrow")
    frame.write_ipc_stream(folder / "stream.arrow")
    arrow = frame.to_arrow()
    duckdb.sql(f"copy (from arrow) to '{folder}/duckdb.parquet' (format parquet)")
    for name in ["polars.parquet", "polars.arrow", "stream.arrow", "duckdb.parquet"]:
        expect(f"writers/{name}", samples)


def tfrecord():
    from tfrecord.writer import TFRecordWriter

    folder = HERE / "tfrecord"
    folder.mkdir()
    path = folder / "photos-train.tfrecord-00000-of-00001"
    writer = TFRecordWriter(str(path))
    samples = []
    for i in range(4):
        boxes = [0.5 * j for j in range(i)]
        writer.write({
            "image/encoded": (PICTURES[i], "byte"),
            "image/class/label": (i % 3, "int"),
            "image/class/text": (NAMES[i % 3].encode(), "byte"),
            "image/filename": (f"p{i}.jpg".encode(), "byte"),
            "image/height": (6, "int"),
            "image/object/bbox/xmin": (boxes, "float"),
            "image/object/class/label": ([-1] * i + [7], "int"),
            "score": (0.25 * i, "float"),
            "tags/text": ([b"x"] * i, "byte"),
        })
        samples.append((f"p{i}.jpg", PICTURES[i], i % 3, {
            "image/class/text": NAMES[i % 3], "image/height": 6,
            "image/object/bbox/xmin": boxes, "image/object/class/label": [-1] * i + [7],
            "score": 0.25 * i, "tags/text": ["x"] * i,
        }))
    writer.close()
    (folder / "photos-train.tfrecord.gz").write_bytes(
        gzip.compress(path.read_bytes(), mtime=0))
    expect("tfrecord/" + path.name, samples, name="image/encoded")
    expect("tfrecord/photos-train.tfrecord.gz", samples, name="image/encoded")


def mds():
    # The library imports PyTorch for parts that are not used here.
    class Anything(types.ModuleType):
        __path__ = []

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {"__class_getitem__": classmethod(lambda c, _: c)})

    class Finder:
        def find_spec(self, name, path=None, target=None):
            import importlib.machinery
            roots = ("torch", "torchvision", "transformers", "google", "boto3", "botocore",
                     "oci", "azure", "paramiko")
            if name.split(".")[0] in roots:
                return importlib.machinery.ModuleSpec(name, self)
            return None

        def create_module(self, spec):
            return Anything(spec.name)

        def exec_module(self, module):
            pass

    sys.meta_path.append(Finder())
    from streaming.base.format.mds.writer import MDSWriter

    columns = {
        "image": "jpeg", "label": "int", "name": "str", "small": "uint8", "half": "float16",
        "array": "ndarray", "typed": "ndarray:int16", "fixed": "ndarray:float32:2,2",
        "digits": "str_int", "amount": "str_decimal", "ratio": "str_float", "meta": "json",
        "thumb": "pil", "pages": "list[png]", "raw": "bytes",
    }
    samples, expected = [], []
    for i in range(4):
        thumb = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) + i
        page = picture(80 + i, "PNG")
        samples.append({
            "image": PICTURES[i], "label": i % 2, "name": f"n{i}", "small": 200 + i,
            "half": np.float16(0.5 * i), "array": np.arange(2 * (i + 1), dtype=np.uint8).reshape(2, -1),
            "typed": np.array([[i, -i]], np.int16),
            "fixed": np.full((2, 2), i / 4, np.float32), "digits": 10 ** i,
            "amount": __import__("decimal").Decimal(f"{i}.50"), "ratio": i / 8,
            "meta": {"i": i}, "thumb": Image.fromarray(thumb),
            "pages": [Image.open(io.BytesIO(page))] * i, "raw": bytes([i] * i),
        })
        expected.append({
            "name": f"n{i}", "small": 200 + i, "half": 0.5 * i,
            "array": {"data": list(range(2 * (i + 1))), "shape": [2, i + 1]},
            "typed": [i, -i], "fixed": [i / 4] * 4, "digits": 10 ** i,
            "amount": f"{i}.50", "ratio": i / 8, "meta": json.dumps({"i": i}),
            "raw": bytes([i] * i).hex(),
        })
    keys = [f"{i:06}.jpg" for i in range(4)]
    for compression in [None, "gz", "br", "zstd", "snappy"]:
        out = HERE / f"mds-{compression or 'plain'}"
        try:
            with MDSWriter(columns=columns, out=str(out), compression=compression,
                           hashes=["sha1", "xxh64"], size_limit=1500) as writer:
                for sample in samples:
                    writer.write(sample)
        except Exception as error:  # a codec that is not installed
            print(f"mds {compression}: {error!r}", file=sys.stderr)
            shutil.rmtree(out, ignore_errors=True)
            continue
        # What pictures become is compared by their pixels, in the test.
        expect(out.name, zip(keys, PICTURES, [0, 1, 0, 1], expected),
               columns="name,small,half,array,typed,fixed,digits,amount,ratio,meta,raw")


def datadings():
    from datadings.writer import FileWriter

    folder = HERE / "datadings"
    folder.mkdir()
    path = folder / "photos.msgpack"
    samples, expected = [], []
    for i in range(5):
        sample = {
            "key": f"c/{i}.jpg", "image": PICTURES[i], "label": i % 3, "weight": 0.5 * i,
            "mask": np.arange(4, dtype=">u2").reshape(2, 2) + i,
            "points": np.arange(2 * i, dtype=np.float32).reshape(-1, 2),
            "flag": bool(i % 2), "note": None if i == 1 else f"n{i}",
            "boxes": [{"x": j, "name": "b"} for j in range(i)], "scalar": np.float32(i / 2),
        }
        samples.append(sample)
        expected.append((sample["key"], PICTURES[i], i % 3, {
            "weight": 0.5 * i, "mask": [i, i + 1, i + 2, i + 3],
            "points": {"data": [float(j) for j in range(2 * i)], "shape": [i, 2]},
            "flag": bool(i % 2), "note": None if i == 1 else f"n{i}",
            "boxes": [{"x": j, "name": "b"} for j in range(i)], "scalar": i / 2,
        }))
    with FileWriter(str(path), total_samples=5, overwrite=True, disable=True) as writer:
        for sample in samples:
            writer.write(sample)
    expect("datadings/photos.msgpack", expected)
    # The index of older versions: a map of keys to offsets.
    legacy = folder / "legacy.msgpack"
    legacy.write_bytes(path.read_bytes())
    offsets = np.frombuffer((folder / "photos.msgpack.offsets").read_bytes(), ">u8")
    index = {s["key"]: int(o) for s, o in zip(samples, offsets)}
    (folder / "legacy.msgpack.index").write_bytes(msgpack.packb(index))
    expect("datadings/legacy.msgpack", expected)


def ffcv():
    folder = HERE / "ffcv"
    folder.mkdir()
    header_type = np.dtype([("version", "<u2"), ("num_fields", "<u2"), ("page_size", "<u4"),
                            ("num_samples", "<u8"), ("alloc_table_ptr", "<u8")], align=True)
    field_type = np.dtype([("type_id", "<u1"), ("name", ("<u1", 16)),
                           ("arguments", ("<u1", (1024,)))], align=True)
    image_type = np.dtype([("mode", "<u1"), ("width", "<u2"), ("height", "<u2"),
                           ("data_ptr", "<u8")])
    blob_type = np.dtype([("ptr", "<u8"), ("size", "<u8")])
    array_type = np.dtype([("shape", "<u8", 32), ("type_length", "<u8")])
    fields = [("image", 2, image_type), ("label", 1, np.dtype("<i8")),
              ("score", 0, np.dtype("<f8")), ("blob", 3, blob_type), ("points", 4, np.dtype("<u8")),
              ("meta", 5, blob_type)]
    sample_type = np.dtype([(name, dtype) for name, _, dtype in fields], align=True)
    count, page = 4, 1 << 12
    header = np.zeros(1, header_type)
    descriptors = np.zeros(len(fields), field_type)
    for i, (name, type_id, _) in enumerate(fields):
        descriptors[i]["type_id"] = type_id
        descriptors[i]["name"][: len(name)] = np.frombuffer(name.encode(), "<u1")
    arguments = np.zeros(1, array_type)
    arguments["shape"][0][:2] = [2, 3]
    described = json.dumps(np.dtype("<f4").descr).encode()
    arguments["type_length"] = len(described)
    packed = arguments.tobytes() + described
    descriptors[4]["arguments"][: len(packed)] = np.frombuffer(packed, "<u1")
    metadata = np.zeros(count, sample_type)
    start = header.nbytes + descriptors.nbytes + metadata.nbytes
    start = -(-start // page) * page
    data, allocations, samples = bytearray(), [], []

    def store(sample, value):
        pointer = start + len(data)
        allocations.append((sample, pointer, len(value)))
        data.extend(value)
        return pointer

    for i in range(count):
        pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) + i
        is_raw = i % 2 == 1
        value = pixels.tobytes() if is_raw else PICTURES[i]
        metadata[i]["image"] = (1, 3, 2, store(i, value)) if is_raw else (0, 7, 6, store(i, value))
        metadata[i]["label"], metadata[i]["score"] = i, i / 4
        blob = bytes(range(i))
        metadata[i]["blob"] = (store(i, blob), len(blob))
        points = np.full((2, 3), i, np.float32)
        metadata[i]["points"] = store(i, points.tobytes())
        meta = json.dumps({"i": i}).encode()
        metadata[i]["meta"] = (store(i, meta), len(meta))
        samples.append((f"{i:06}.{'png' if is_raw else 'jpg'}", value, i, {
            "score": i / 4, "blob": blob.hex(), "points": [float(i)] * 6, "meta": meta.decode()}))
    header["version"], header["num_fields"] = 2, len(fields)
    header["page_size"], header["num_samples"] = page, count
    data.extend(bytes(-len(data) % page))
    header["alloc_table_ptr"] = start + len(data)
    table = np.array(allocations, np.dtype([("s", "<u8"), ("p", "<u8"), ("n", "<u8")]))
    head = header.tobytes() + descriptors.tobytes() + metadata.tobytes()
    (folder / "photos.beton").write_bytes(
        head + bytes(start - len(head)) + bytes(data) + table.tobytes())
    expect("ffcv/photos.beton", samples)
    # Pixels come as PNG: the test compares them decoded.
    for row in EXPECTED["ffcv/photos.beton"]["samples"]:
        if row["key"].endswith(".png"):
            index = int(row["key"][:6])
            pixels = np.arange(18, dtype=np.uint8) + index
            row["content"] = "pixels:" + base64.b16encode(pixels.tobytes()).decode().lower()


if __name__ == "__main__":
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    for make in [parquet, hugging_face, arrow, other_writers, tfrecord, mds, datadings, ffcv]:
        make()
    (HERE / "expected.json").write_text(json.dumps(EXPECTED, indent=1, ensure_ascii=False) + "\n")
