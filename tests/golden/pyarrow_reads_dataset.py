"""Reads a dataset with plain pyarrow and holds every row against its checksum.

usage: pyarrow_reads_dataset.py DATASET

Knows nothing of the program that wrote it but docs/dataset-format.md. Prints one line a row,
`KEY<tab>LABEL<tab>BYTES<tab>CRC32C` (label as its name, or `-`), and exits with 1 and a sentence
at the first thing that is not as documented.
"""

import hashlib
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.ipc

COLUMNS = [
    pa.field("key", pa.string(), nullable=False),
    pa.field("image", pa.large_binary(), nullable=False),
    pa.field("label", pa.int32(), nullable=True),
    pa.field("crc32c", pa.uint32(), nullable=False),
    pa.field("entry_points", pa.binary(), nullable=True),
]
SCHEMAS = {1: pa.schema(COLUMNS[:4]), 2: pa.schema(COLUMNS)}


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def check(holds, sentence):
    if not holds:
        sys.exit(sentence)


def read_manifest(folder):
    text = (folder / "dataset.json").read_bytes()
    body, mark, end = text.rpartition(b',\n  "self_sha256": "')
    check(mark, "dataset.json does not end with self_sha256")
    check(end == hashlib.sha256(body).hexdigest().encode() + b'"\n}\n', "dataset.json was changed")
    manifest = json.loads(text)
    check(manifest["format"] == "meetpoint-dataset", "another format")
    check(manifest["version"] in SCHEMAS, "another version")
    check(("stored" in manifest) == (manifest["version"] > 1), "stored")
    return manifest


def check_record_batches(name, data, footer_metadata, batches):
    """The checksums of what is no image, by the byte ranges that the documentation gives."""
    footer_bytes = int.from_bytes(data[-10:-6], "little")
    tail = len(data) - 10 - footer_bytes - 8
    described = footer_metadata["meetpoint.record_batches"].split(",")
    check(len(described) == len(batches), f"{name}: record batches")
    offset = data.index(b"\xff\xff\xff\xff")  # the schema message
    offset += 8 + int.from_bytes(data[offset + 4 : offset + 8], "little")
    check(
        f"{crc32c(data[:offset]):08x}" == footer_metadata["meetpoint.head_crc32c"],
        f"{name}: head",
    )
    for text, batch in zip(described, batches):
        rows, expected = text.split(":")
        check(int(rows) == batch.num_rows, f"{name}: rows of a record batch")
        message = offset
        body = message + 8 + int.from_bytes(data[message + 4 : message + 8], "little")
        buffers = [buffer for column in batch.columns for buffer in column.buffers()]
        key_offsets, keys, image_offsets, images = buffers[1], buffers[2], buffers[4], buffers[5]
        after_images = buffers[6:]
        aligned = lambda size: (size + 63) // 64 * 64
        size = lambda buffer: aligned(buffer.size) if buffer is not None else 0
        start = body + size(key_offsets) + size(keys) + size(image_offsets)
        length = sum(len(image) for image in batch.column("image").to_pylist())
        end = start + aligned(length) + sum(size(buffer) for buffer in after_images)
        rest = data[message:start] + data[start + length : end]
        check(crc32c(rest) == int(expected, 16), f"{name}: rest of a record batch")
        check(images.size >= length, f"{name}: images")
        offset = end
    check(offset == tail, f"{name}: bytes between the record batches and the end")
    return crc32c(data[tail:])


def main(folder):
    manifest = read_manifest(folder)
    samples = image_bytes = 0
    entry_points = []
    for part in manifest["parts"]:
        name = part["file"]
        data = (folder / name).read_bytes()
        check(len(data) == part["bytes"], f"{name}: length")
        check(hashlib.sha256(data).hexdigest() == part["sha256"], f"{name}: SHA-256")
        reader = pa.ipc.open_file(pa.BufferReader(data))
        check(reader.schema.equals(SCHEMAS[manifest["version"]]), f"{name}: schema {reader.schema}")
        metadata = {k.decode(): v.decode() for k, v in reader.schema.metadata.items()}
        check(metadata["meetpoint.format"] == "meetpoint-dataset", f"{name}: format")
        check(metadata["meetpoint.version"] == str(manifest["version"]), f"{name}: version")
        batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        if getattr(reader, "metadata", None):
            pairs = {k.decode(): v.decode() for k, v in reader.metadata.items()}
            tail_crc32c = check_record_batches(name, data, pairs, batches)
            check(tail_crc32c == part["tail_crc32c"], f"{name}: tail")
        else:
            print(f"{name}: this pyarrow shows no footer metadata", file=sys.stderr)
        rows = 0
        for batch in batches:
            batch.validate(full=True)
            for row in batch.to_pylist():
                crc = crc32c(row["image"])
                check(crc == row["crc32c"], f"{name}, key {row['key']}: CRC-32C")
                label = "-" if row["label"] is None else manifest["labels"][row["label"]]
                print(row["key"], label, len(row["image"]), f"{crc:08x}", sep="\t")
                image_bytes += len(row["image"])
                if row.get("entry_points") is not None:
                    entry_points.append(len(row["entry_points"]))
            rows += batch.num_rows
        check(rows == part["samples"], f"{name}: samples")
        samples += rows
    check(samples == manifest["samples"], "samples")
    check(image_bytes == manifest["image_bytes"], "image_bytes")
    if "stored" in manifest:
        said = manifest["stored"]["entry_points"]
        check(len(entry_points) == said["samples"], "entry_points.samples")
        check(sum(entry_points) == said["bytes"], "entry_points.bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
