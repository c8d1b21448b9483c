"""Makes the archives, tables and binary files of this folder with programs other than Meetpoint.

    pip install webdataset==1.0.2 pillow numpy zstandard
    python make_a.py          # in this folder; needs GNU tar

Beside each it writes down what a reader of that world finds in it (`expected_a.json`): the
webdataset library for tar shards, csv and json for tables, zipfile for ZIP, NumPy for CIFAR and IDX.
"""

import csv
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import struct
import subprocess
import tarfile
import zipfile

import numpy as np
import webdataset
import zstandard
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = {}


def sha(data):
    return hashlib.sha256(data).hexdigest()


def picture(seed, kind="JPEG", size=(9, 7)):
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def sample(index):
    fields = {
        "__key__": f"set/{index:03}",
        "jpg": picture(index),
        "seg.png": picture(100 + index, "PNG"),
        "cls": index % 3,
        "txt": f"caption {index} – ü",
        "json": {
            "id": index * 10**12,
            "score": index / 7,
            "ok": index % 2 == 0,
            "tags": ["a", "b"][: index % 3],
            "box": {"x": index, "y": None if index == 1 else 0.5},
            "key": f"k{index}",
        },
    }
    if index == 4:
        fields["npy"] = np.arange(3)
        fields["json"]["late"] = "only here"
    return fields


def read_shards(urls):
    found = []
    for item in webdataset.WebDataset([str(HERE / url) for url in urls], shardshuffle=False):
        meta = json.loads(item["json"])
        row = {
            "key": item["__key__"],
            "label": int(item["cls"]),
            "sha256": sha(item["jpg"]),
            "columns": {
                "seg.png": sha(item["seg.png"]),
                "txt": item["txt"].decode(),
                "npy": sha(item["npy"]) if "npy" in item else None,
                **{("json.key" if name == "key" else name): meta.get(name) for name in
                   ["id", "score", "ok", "tags", "box", "key", "late"]},
            },
        }
        found.append(row)
    return found


def shards():
    for shard, indices in enumerate([range(0, 3), range(3, 6)]):
        with webdataset.TarWriter(str(HERE / f"wds-{shard:03}.tar"), mtime=0) as to:
            for index in indices:
                to.write(sample(index))
    EXPECTED["wds-{000..001}.tar"] = read_shards(["wds-000.tar", "wds-001.tar"])
    plain = (HERE / "wds-000.tar").read_bytes()
    with open(HERE / "wds.tar.gz", "wb") as to:
        # Two members one behind the other, as pigz and bgzip write them.
        to.write(gzip.compress(plain[:5000], mtime=0) + gzip.compress(plain[5000:], mtime=0))
    # The library sees only the first of them; GNU tar sees both.
    EXPECTED["wds.tar.gz"] = read_shards(["wds-000.tar"])
    packer = zstandard.ZstdCompressor(write_checksum=True)
    skippable = struct.pack("<II", 0x184D2A50, 3) + b"abc"
    (HERE / "wds.tar.zst").write_bytes(
        packer.compress(plain[:5000]) + skippable + packer.compress(plain[5000:])
    )
    EXPECTED["wds.tar.zst"] = EXPECTED["wds.tar.gz"]


def named_shards():
    """Long and odd names, as GNU tar and Python's pax write them; class names as labels."""
    work = HERE / "work"
    folder = work / ("long" * 30) / "ü"
    folder.mkdir(parents=True)
    expected = []
    for index, name in enumerate(["dog", "cat", "dog"]):
        (folder / f"{index}.jpg").write_bytes(picture(200 + index))
        (folder / f"{index}.cls").write_text(name + "\n")
        key = str((folder / str(index)).relative_to(work))
        expected.append(
            {"key": key, "label": ["cat", "dog"].index(name),
             "sha256": sha(picture(200 + index)), "columns": {}}
        )
    for form in ["gnu", "pax"]:
        subprocess.run(
            ["tar", f"--format={form}", "--sort=name", "--mtime=@1.5", "--owner=0", "--group=0",
             "--numeric-owner", "-cf", str(HERE / f"long-{form}.tar"), "."],
            cwd=work, check=True,
        )
        EXPECTED[f"long-{form}.tar"] = expected
    with tarfile.open(HERE / "long-python.tar", "w") as to:
        for path in sorted(folder.iterdir()):
            to.add(path, arcname=str(path.relative_to(work)))
    EXPECTED["long-python.tar"] = expected
    shutil.rmtree(work)


def tables():
    rows = [
        ("b/1.png", "dog", "1", "0.25", "True", "", "007"),
        ("a.png", "cat", "2", "1e3", "False", 'says "hi", twice\nand more', "010"),
        ("c.png", "dog", "", "", "", "ü", ""),
    ]
    names = ["file_name", "label", "count", "score", "flag", "text", "code"]
    for form in ["csv", "tsv", "jsonl"]:
        folder = HERE / f"table-{form}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "b").mkdir(parents=True)
        expected = []
        for index, row in enumerate(rows):
            data = picture(300 + index, "PNG")
            (folder / row[0]).write_bytes(data)
            values = {
                "count": int(row[2]) if row[2] else None,
                "score": float(row[3]) if row[3] else None,
                "flag": row[4] == "True" if row[4] else None,
                "text": row[5] or None,
                "code": row[6] or None,
            }
            expected.append({"key": row[0], "label": ["cat", "dog"].index(row[1]),
                             "sha256": sha(data), "columns": values})
        path = folder / f"metadata.{form}"
        if form == "jsonl":
            lines = [
                json.dumps({"file_name": row[0], "label": row[1], **found["columns"]})
                for row, found in zip(rows, expected)
            ]
            path.write_text("\n".join(lines) + "\n")
        else:
            with open(path, "w", newline="", encoding="utf-8-sig" if form == "csv" else None) as to:
                writer = csv.writer(to, delimiter="," if form == "csv" else "\t")
                writer.writerows([names, *rows])
        EXPECTED[f"table-{form}"] = expected


def zips():
    expected = []
    with zipfile.ZipFile(HERE / "classes.zip", "w") as to:
        for index, name in enumerate(["cat/10.jpg", "cat/9.jpg", "dög/1.png"]):
            data = picture(400 + index, "PNG" if name.endswith("png") else "JPEG")
            info = zipfile.ZipInfo(f"photos/{name}")
            info.compress_type = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED][index % 2]
            with to.open(info, "w", force_zip64=index == 2) as member:
                member.write(data)
            expected.append({"key": f"photos/{name}", "label": int(index == 2),
                             "sha256": sha(data), "columns": {}})
        to.writestr(zipfile.ZipInfo("photos/readme.txt"), "no picture")
        to.writestr(zipfile.ZipInfo("__MACOSX/._x.jpg"), "side file")
    EXPECTED["classes.zip"] = [expected[1], expected[0], expected[2]]


def pixels_sha(height, width, array):
    return sha(struct.pack("<II", height, width) + array.tobytes())


def cifar():
    random = np.random.default_rng(5)
    folder = HERE / "cifar-10-batches-bin"
    folder.mkdir(exist_ok=True)
    names = "airplane automobile bird cat deer dog frog horse ship truck".split()
    (folder / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    expected = []
    for name, count in [("data_batch_1", 2), ("data_batch_2", 1), ("test_batch", 1)]:
        records = random.integers(0, 256, (count, 3073), dtype=np.uint8)
        records[:, 1:] //= 64  # so that the files stay small when they are packed
        records[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(records.tobytes())
        for index, record in enumerate(records):
            planes = record[1:].reshape(3, 32, 32).transpose(1, 2, 0)
            split = "test" if name.startswith("test") else "train"
            expected.append({"key": f"{name}/{index:05}", "label": int(record[0]),
                             "pixels": pixels_sha(32, 32, np.ascontiguousarray(planes)),
                             "columns": {"split": split}})
    EXPECTED["cifar-10-batches-bin"] = expected
    with tarfile.open(HERE / "cifar-10-binary.tar.gz", "w:gz") as to:
        to.add(folder, arcname=folder.name)
    with tarfile.open(HERE / "cifar-10-binary.tar.gz") as archive:
        order = [pathlib.Path(name).stem for name in archive.getnames() if name.endswith(".bin")]
    EXPECTED["cifar-10-binary.tar.gz"] = sorted(
        expected, key=lambda row: order.index(row["key"].split("/")[0])
    )
    folder = HERE / "cifar-100-binary"
    folder.mkdir(exist_ok=True)
    (folder / "fine_label_names.txt").write_text("".join(f"fine{i}\n" for i in range(100)))
    (folder / "coarse_label_names.txt").write_text("".join(f"coarse{i}\n" for i in range(20)))
    expected = []
    for name in ["test", "train"]:
        record = random.integers(0, 20, 3074, dtype=np.uint8)
        (folder / f"{name}.bin").write_bytes(record.tobytes())
        planes = record[2:].reshape(3, 32, 32).transpose(1, 2, 0)
        expected.append({"key": f"{name}/00000", "label": int(record[1]),
                         "pixels": pixels_sha(32, 32, np.ascontiguousarray(planes)),
                         "columns": {"split": name, "coarse_label": int(record[0])}})
    EXPECTED["cifar-100-binary"] = expected


def idx():
    folder = HERE / "mnist"
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(6)
    expected = []
    for name, count in [("t10k", 2), ("train", 3)]:
        images = random.integers(0, 256, (count, 5, 4), dtype=np.uint8)
        labels = random.integers(0, 10, count, dtype=np.uint8)
        head = struct.pack(">IIII", 0x803, count, 5, 4)
        files = {
            f"{name}-images-idx3-ubyte": head + images.tobytes(),
            f"{name}-labels-idx1-ubyte": struct.pack(">II", 0x801, count) + labels.tobytes(),
        }
        for file, data in files.items():
            if name == "train":
                (folder / f"{file}.gz").write_bytes(gzip.compress(data, mtime=0))
            else:
                (folder / file).write_bytes(data)
        for index in range(count):
            expected.append({"key": f"{name}/{index:05}", "label": int(labels[index]),
                             "pixels": pixels_sha(5, 4, images[index]),
                             "columns": {"split": name}})
    EXPECTED["mnist"] = expected


shards()
named_shards()
tables()
zips()
cifar()
idx()
(HERE / "expected_a.json").write_text(json.dumps(EXPECTED, indent=1, ensure_ascii=False) + "\n")
