#!/usr/bin/env python3
"""Round trips between Meetpoint and the programs whose formats it reads and writes.

    python3 scripts/roundtrip.py [--meetpoint target/release/meetpoint] [--python PYTHON]
                                 [--markdown FILE] [--packed] [--large]

A small set of pictures with keys, labels and two further columns is written in every source by the
program that the format belongs to (those that have none, CIFAR, IDX, ZIP, tables and FFCV, by plain
Python after their description), converted by `meetpoint convert` into every sink, and read again by
the program that the sink's format belongs to; its result is compared with what was written.
Without --python it creates a virtual environment with pinned versions. Packages that do not
install are listed in the table and count as failures.

With --packed a source is packed into a dataset and that unpacked into each sink, in place of
`convert`. With --large the pictures are of 0.1 to 1 MiB, so that a dataset exceeds what is
written at once.

A cell says `ok` if every sample has the same key, bytes, label and columns, otherwise the difference.
Of CIFAR, IDX and FFCV's raw images, which hold pixels and no files, the pixels must be the same.
"""

import argparse
import csv
import importlib.metadata
import importlib.util
import io
import json
import os
import platform
import random
import struct
import subprocess
import sys
import tempfile
import types
import venv
import zipfile
from pathlib import Path
from unittest.mock import MagicMock

PINNED = [
    "datadings==3.4.7",
    "datasets==5.2.0",
    "mosaicml-streaming==0.13.0",
    "pillow==13.0.0",
    "pyarrow==26.0.1",
    "tfrecord==1.14.6",
    "webdataset==1.0.2",
]
CLASSES = ["cat", "dog", "owl"]
COUNT = 24
# Set, to the program, where the script runs in the Python with the peers.
GUARD = "MEETPOINT_ROUNDTRIP_PEERS"
# What of a writer's folder is the source, where that is not the folder itself.
NAMED = {
    "zip": "set.zip",
    "arrow": "set",
    "meetpoint": "set",
    "ffcv": "set.beton",
}
# Columns and samples of the sources that were written.
EXPECTED = {}
SINKS = ["folder", "webdataset", "parquet", "mds", "datadings", "tfrecord"]


class Differs(Exception):
    """What was read is not what was written."""


def samples(is_large):
    """The set: key, bytes, label, count, caption."""
    from PIL import Image

    made = []
    for index in range(COUNT):
        name = CLASSES[index % 3]
        if is_large:
            size = (640 + 16 * index, 360)
            noise = random.Random(index).randbytes(size[0] * size[1] * 3)
            picture = Image.frombytes("RGB", size, noise)
        else:
            picture = Image.new("RGB", (40 + index, 30), (index * 9, 128, 255 - index * 9))
        picture.putpixel((index, 7), (255, 255, 0))
        file = io.BytesIO()
        kind = "PNG" if index % 8 == 5 else "JPEG"
        picture.save(file, kind)
        ending = "png" if kind == "PNG" else "jpg"
        made.append(
            {
                "key": f"{name}/{index:04}.{ending}",
                "image": file.getvalue(),
                "label": index % 3,
                "count": index * 1_000_003,
                "caption": f"{name} № {index}",
            }
        )
    return sorted(made, key=lambda sample: sample["key"])


def mds_package():
    """Lets parts of `streaming` be imported without torch, which they do not use here."""
    if "streaming" in sys.modules:
        return
    for name in ["streaming", "streaming.base"]:
        package = types.ModuleType(name)
        package.__path__ = list(importlib.util.find_spec(name).submodule_search_locations)
        sys.modules[name] = package
    stand_ins = []
    others = ["torch", "torch.distributed", "torch.utils", "torch.utils.data", "zstd", "snappy"]
    for name in others:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = MagicMock()
            stand_ins.append(name)
    importlib.import_module("streaming.base.format.mds.writer")
    importlib.import_module("streaming.base.format.mds.reader")
    # Other programs must not take them for the real ones.
    for name in stand_ins:
        del sys.modules[name]


# Writers: what a program makes of the set, into a folder; the columns that its format has.


def write_folder(folder, made):
    for sample in made:
        path = folder / sample["key"]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(sample["image"])
    return []


def write_webdataset(folder, made):
    import webdataset

    with webdataset.ShardWriter(f"{folder}/set-%06d.tar", maxcount=10, verbose=0) as writer:
        for sample in made:
            stem, ending = sample["key"].rsplit(".", 1)
            more = {name: sample[name] for name in ["count", "caption"]}
            more["meetpoint.key"] = sample["key"]
            content = {"__key__": stem, ending: sample["image"], "cls": sample["label"]}
            writer.write({**content, "json": more})
    return ["count", "caption"]


def write_parquet(folder, made):
    hugging_face(made).to_parquet(f"{folder}/set.parquet")
    return ["count", "caption"]


def write_mds(folder, made):
    mds_package()
    from streaming.base.format.mds.writer import MDSWriter

    columns = {"key": "str", "image": "bytes", "label": "int", "count": "int64", "caption": "str"}
    with MDSWriter(columns=columns, out=str(folder), size_limit=8000, exist_ok=True) as writer:
        for sample in made:
            writer.write(sample)
    return ["count", "caption"]


def write_datadings(folder, made):
    from datadings.writer import FileWriter

    with FileWriter(folder / "set.msgpack", disable=True) as writer:
        for sample in made:
            writer.write(sample)
    return ["count", "caption"]


def write_tfrecord(folder, made):
    from tfrecord.writer import TFRecordWriter

    writer = TFRecordWriter(str(folder / "set.tfrecord"))
    for sample in made:
        writer.write(
            {
                "key": (sample["key"].encode(), "byte"),
                "image": (sample["image"], "byte"),
                "label": (sample["label"], "int"),
                "count": (sample["count"], "int"),
                "caption": (sample["caption"].encode(), "byte"),
            }
        )
    writer.close()
    return ["count", "caption"]


def write_zip(folder, made):
    with zipfile.ZipFile(folder / "set.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for index, sample in enumerate(made):
            stored = zipfile.ZIP_STORED if index % 2 else zipfile.ZIP_DEFLATED
            archive.writestr(sample["key"], sample["image"], stored)
    return []


def write_table(folder, made):
    write_folder(folder, made)
    with open(folder / "set.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "label", "count", "caption"])
        for sample in made:
            label = CLASSES[sample["label"]]
            writer.writerow([sample["key"], label, sample["count"], sample["caption"]])
    return ["count", "caption"]


def hugging_face(made):
    """The set as `datasets` has it."""
    import datasets

    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=CLASSES),
            "count": datasets.Value("int64"),
            "caption": datasets.Value("string"),
        }
    )
    rows = [
        {**sample, "image": {"bytes": sample["image"], "path": sample["key"]}} for sample in made
    ]
    for row in rows:
        del row["key"]
    return datasets.Dataset.from_list(rows, features=features)


def write_arrow(folder, made):
    import datasets

    hugging_face(made).save_to_disk(str(folder / "set"))
    # It keeps the last name of a path alone; what it reads itself is what there is.
    loaded = datasets.load_from_disk(str(folder / "set"))
    expected = []
    for row in loaded.cast_column("image", datasets.Image(decode=False)):
        image = row.pop("image")
        expected.append({**row, "key": image["path"], "image": image["bytes"]})
    return ["count", "caption"], expected


def write_meetpoint(folder, made):
    hugging_face(made).to_parquet(f"{folder}/set.parquet")
    command = [os.environ[GUARD], "pack", f"{folder}/set.parquet", f"{folder}/set"]
    subprocess.run(command, check=True, capture_output=True)
    return ["count", "caption"]


def pixels(sample, mode, size):
    """The pixels of a sample's picture, row by row."""
    from PIL import Image

    return Image.open(io.BytesIO(sample["image"])).convert(mode).resize(size).tobytes()


def write_cifar(folder, made):
    names = CLASSES + [f"class{index}" for index in range(3, 10)]
    (folder / "batches.meta.txt").write_text("\n".join(names) + "\n")
    expected = []
    for batch in [1, 2, 3, 4, 5]:
        records = bytearray()
        for index, sample in enumerate(made[batch - 1 :: 5]):
            rgb = pixels(sample, "RGB", (32, 32))
            records += bytes([sample["label"]]) + rgb[0::3] + rgb[1::3] + rgb[2::3]
            expected.append(
                {
                    "key": f"data_batch_{batch}/{index:05}",
                    "pixels": rgb,
                    "label": sample["label"],
                    "split": "train",
                }
            )
        (folder / f"data_batch_{batch}.bin").write_bytes(records)
    return ["split"], expected


def write_idx(folder, made):
    grey = [pixels(sample, "L", (28, 28)) for sample in made]
    labels = [sample["label"] for sample in made]
    images = folder / "train-images-idx3-ubyte"
    images.write_bytes(struct.pack(">IIII", 0x803, len(made), 28, 28) + b"".join(grey))
    names = folder / "train-labels-idx1-ubyte"
    names.write_bytes(struct.pack(">II", 0x801, len(made)) + bytes(labels))
    return ["split"], [
        {"key": f"train/{index:05}", "pixels": picture, "label": label, "split": "train"}
        for index, (picture, label) in enumerate(zip(grey, labels))
    ]


def write_ffcv(folder, made):
    """A .beton file, after FFCV's types.py and fields/: JPEGs as they are, PNGs as raw pixels."""
    page = 1 << 12
    fields = [("image", 2), ("label", 1), ("count", 1)]
    descriptors = b"".join(
        struct.pack("<B16s1024x", kind, name.encode()) for name, kind in fields
    )
    head_bytes, row_bytes = 24, 32
    start = -(-(head_bytes + len(descriptors) + row_bytes * len(made)) // page) * page
    data, table, rows, expected = bytearray(), b"", b"", []
    for index, sample in enumerate(made):
        from PIL import Image

        width, height = Image.open(io.BytesIO(sample["image"])).size
        is_raw = sample["key"].endswith(".png")
        value = pixels(sample, "RGB", (width, height)) if is_raw else sample["image"]
        pointer = start + len(data)
        table += struct.pack("<QQQ", index, pointer, len(value))
        data += value
        # The image is packed into 13 bytes; the structure of a sample is aligned to 8.
        rows += struct.pack("<BHHQ3xqq", int(is_raw), width, height, pointer, sample["label"],
                            sample["count"])
        row = {"label": sample["label"], "count": sample["count"]}
        ending, content = ("png", "pixels") if is_raw else ("jpg", "image")
        expected.append({**row, "key": f"{index:06}.{ending}", content: value})
    data += bytes(-len(data) % page)
    header = struct.pack("<HHIQQ", 2, len(fields), page, len(made), start + len(data))
    head = header + descriptors + rows
    whole = head + bytes(start - len(head)) + bytes(data) + table
    (folder / "set.beton").write_bytes(whole)
    return ["count"], expected


WRITERS = {
    "folder": (write_folder, "pillow", CLASSES),
    "table": (write_table, "python", CLASSES),
    "zip": (write_zip, "python", CLASSES),
    "arrow": (write_arrow, "datasets", CLASSES),
    "meetpoint": (write_meetpoint, "meetpoint", CLASSES),
    "cifar": (write_cifar, "python", CLASSES + [f"class{index}" for index in range(3, 10)]),
    "idx": (write_idx, "python", None),
    "ffcv": (write_ffcv, "python", None),
    "webdataset": (write_webdataset, "webdataset", None),
    "parquet": (write_parquet, "datasets", CLASSES),
    "mds": (write_mds, "mosaicml-streaming", None),
    "datadings": (write_datadings, "datadings", None),
    "tfrecord": (write_tfrecord, "tfrecord", None),
}


# Readers: the samples in a sink, as its program gives them, and names of labels where it has them.


def read_folder(folder):
    rows = {}
    table = folder / "metadata.jsonl"
    if table.exists():
        for line in table.read_text().splitlines():
            row = json.loads(line)
            rows[row["file_name"]] = row
    found = []
    for path in folder.rglob("*"):
        key = str(path.relative_to(folder))
        if not path.is_file() or path == table:
            continue
        sample = {"key": key, "image": path.read_bytes(), **rows.get(key, {})}
        sample.pop("file_name", None)
        sample["key"] = sample.pop("meetpoint.key", key)
        label = sample.get("label", key.split("/")[0])
        # In a dataset, integers without names have their digits as names.
        if isinstance(label, str) and label.isdigit():
            label = int(label)
        sample["label"] = CLASSES.index(label) if label in CLASSES else label
        found.append(sample)
    return found, None


def read_webdataset(folder):
    import webdataset

    found = []
    shards = sorted(str(path) for path in folder.glob("*.tar"))
    for sample in webdataset.WebDataset(shards, shardshuffle=False):
        more = json.loads(sample["json"]) if "json" in sample else {}
        content = next(sample[ending] for ending in ["jpg", "png"] if ending in sample)
        key = more.pop("meetpoint.key", sample["__key__"])
        found.append({**more, "key": key, "image": content, "label": int(sample["cls"])})
    return found, None


def read_parquet(folder):
    import datasets

    files = sorted(str(path) for path in folder.glob("*.parquet"))
    with tempfile.TemporaryDirectory() as cache:
        loaded = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
        label = loaded.features["label"]
        names = label.names if isinstance(label, datasets.ClassLabel) else None
        if not isinstance(loaded.features["image"], datasets.Image):
            raise Differs(f"image is {loaded.features['image']}")
        loaded[0]["image"].load()
        found = []
        for row in loaded.cast_column("image", datasets.Image(decode=False)):
            image = row.pop("image")
            found.append({**row, "key": image["path"], "image": image["bytes"]})
    return found, names


def read_mds(folder):
    mds_package()
    from streaming.base.format.mds.reader import MDSReader

    found = []
    for shard in json.loads((folder / "index.json").read_text())["shards"]:
        reader = MDSReader.from_json(str(folder), "", shard)
        for index in range(reader.samples):
            sample = reader.decode_sample(reader.get_sample_data(index))
            found.append({**sample, "count": int(sample["count"])} if "count" in sample else sample)
    return found, None


def read_datadings(folder):
    from datadings.reader import MsgpackReader

    path = folder / "data.msgpack"
    with MsgpackReader(path) as reader:
        found = [dict(sample) for sample in reader]
        for index, sample in enumerate(found):
            if sample["key"] not in reader or reader.find_index(sample["key"]) != index:
                raise Differs(f"the index does not find {sample['key']}")
    subprocess.run(["md5sum", "--quiet", "-c", f"{path.name}.md5"], cwd=folder, check=True)
    return found, None


def read_tfrecord(folder):
    from tfrecord.reader import tfrecord_loader

    found = []
    for path in sorted(folder.glob("*.tfrecord")):
        for record in tfrecord_loader(str(path), None):
            sample = {name: bytes(record[name]) for name in ["key", "image"]}
            sample["key"] = sample["key"].decode()
            sample["label"] = int(record["label"][0])
            if "count" in record:
                sample["count"] = int(record["count"][0])
            for name in ["caption", "split"]:
                if name in record:
                    sample[name] = bytes(record[name]).decode()
            found.append(sample)
    return found, None


READERS = {
    "folder": (read_folder, "pillow"),
    "webdataset": (read_webdataset, "webdataset"),
    "parquet": (read_parquet, "datasets"),
    "mds": (read_mds, "mosaicml-streaming"),
    "datadings": (read_datadings, "datadings"),
    "tfrecord": (read_tfrecord, "tfrecord"),
}


def picture_size(file):
    """Width and height of a picture."""
    from PIL import Image

    return Image.open(io.BytesIO(file)).size


def check(made, columns, found, names, names_wanted):
    """Raises where what was read is not what was written."""
    kept = ["key", "image", "pixels", "label", *columns]
    wanted = {
        sample["key"]: {name: sample[name] for name in kept if name in sample} for sample in made
    }
    got = {sample["key"]: sample for sample in found}
    if len(got) != len(found) or got.keys() != wanted.keys():
        raise Differs(f"other keys: {sorted(got)[:2]} for {sorted(wanted)[:2]}")
    for key, sample in wanted.items():
        if "pixels" in sample:
            bands = len(sample["pixels"]) // (size := picture_size(got[key]["image"]))[0] // size[1]
            if pixels(got[key], "L" if bands == 1 else "RGB", size) != sample.pop("pixels"):
                raise Differs(f"{key}: other pixels")
            sample["image"] = got[key]["image"]
        for name, value in sample.items():
            if got[key].get(name) != value:
                raise Differs(f"{key}: {name} is {str(got[key].get(name))[:40]}")
        if got[key].keys() != sample.keys():
            raise Differs(f"{key}: columns {sorted(got[key])}")
    if names_wanted is not None and names is not None and list(names) != list(names_wanted):
        raise Differs(f"classes {names}")


def version(package):
    """The version of a peer, or None where it is not installed."""
    if package == "python":
        return platform.python_version()
    if package == "meetpoint":
        shown = subprocess.run([os.environ[GUARD], "--version"], capture_output=True, text=True)
        return shown.stdout.split()[-1]
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def command_of(meetpoint, folder, source, sink, is_packed):
    """What brings a source into a sink; packs it first, where that is asked for."""
    named = str(folder / source / NAMED.get(source, ""))
    to = str(folder / f"{source}-{sink}")
    if not is_packed:
        return [meetpoint, "convert", named, to, "--to", sink, "--json"]
    packed = folder / f"{source}.packed"
    if not packed.exists():
        subprocess.run([meetpoint, "pack", named, packed], check=True, capture_output=True)
    return [meetpoint, "unpack", str(packed), to, "--to", sink, "--json"]


def trip(meetpoint, folder, source, sink, made, is_packed):
    """One cell of the table."""
    write, writer, names = WRITERS[source]
    read, reader = READERS[sink]
    missing = [package for package in [writer, reader] if version(package) is None]
    if missing:
        return f"{missing[0]} is not installed"
    try:
        at = folder / source
        if not at.exists():
            at.mkdir()
            written = write(at, made)
            EXPECTED[source] = written if isinstance(written, tuple) else (written, made)
        columns, expected = EXPECTED[source]
        to = folder / f"{source}-{sink}"
        command = command_of(meetpoint, folder, source, sink, is_packed)
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            return f"exit {ran.returncode}: {ran.stdout.strip() or ran.stderr.strip()}"[:300]
        check(expected, columns, *read(to), names)
        return "ok"
    except Differs as error:
        return str(error)
    except Exception as error:  # A peer may fail in any way; the cell says how.
        return f"{type(error).__name__}: {error}"[:300]


def own_python(folder):
    """A virtual environment with the peers; those that do not install are left out."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    for package in PINNED:
        # The shards of MDS are read and written without the torch that the package asks for.
        alone = ["--no-deps"] if package.startswith("mosaicml") else []
        subprocess.run([python, "-m", "pip", "install", "-q", *alone, package], check=False)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--meetpoint", default="target/release/meetpoint")
    parser.add_argument("--python", help="a Python with the peers")
    parser.add_argument("--markdown", help="file to write the table to")
    parser.add_argument("--packed", action="store_true", help="through a packed dataset")
    parser.add_argument("--large", action="store_true", help="pictures of 0.1 to 1 MiB")
    arguments = parser.parse_args()
    meetpoint = str(Path(arguments.meetpoint).resolve())
    if GUARD not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            python = arguments.python or own_python(Path(folder))
            again = [str(python), __file__, "--meetpoint", meetpoint]
            again += ["--markdown", arguments.markdown] if arguments.markdown else []
            again += ["--packed"] if arguments.packed else []
            again += ["--large"] if arguments.large else []
            return subprocess.run(again, env={**os.environ, GUARD: meetpoint}).returncode
    made = samples(arguments.large)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        cells = {
            (source, sink): trip(meetpoint, Path(folder), source, sink, made, arguments.packed)
            for source in WRITERS
            for sink in SINKS
        }
    lines.append("| written by, as | " + " | ".join(SINKS) + " |")
    lines.append("|---" * (len(SINKS) + 1) + "|")
    wrong = []
    for source, (_, package, _) in WRITERS.items():
        row = []
        for sink in SINKS:
            cell = cells[source, sink]
            if cell != "ok":
                wrong.append(f"{source} to {sink}: {cell}")
                cell = f"no ({len(wrong)})"
            row.append(cell)
        label = f"{source} ({package} {version(package)})"
        lines.append(f"| {label} | " + " | ".join(row) + " |")
    lines += ["", *(f"{number}. {text}" for number, text in enumerate(wrong, 1))]
    lines.append(f"{len(cells) - len(wrong)} of {len(cells)} round trips are whole.")
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.markdown:
        Path(arguments.markdown).write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
