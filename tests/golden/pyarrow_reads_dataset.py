"""Reads a dataset with plain pyarrow and holds every row against its checksum.

usage: pyarrow_reads_dataset.py [--columns] DATASET

Knows nothing of the program that wrote it but docs/dataset-format.md. Prints one line a row,
`KEY<tab>LABEL<tab>BYTES<tab>CRC32C` (label as its name, or `-`), and exits with 1 and a sentence
at the first thing that is not as documented. Further columns are read whole and compared with
their checksums; with --columns, their values follow each line as JSON.
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


def check_schema(name, schema, manifest):
    """The columns of the manifest's version; gives the further ones."""
    version = manifest["version"]
    expected = list(COLUMNS if version > 1 else COLUMNS[:4])
    if version > 2:
        content = manifest["content"]
        expected[1] = pa.field(content["column"], pa.large_binary(), nullable=False)
        kind = schema.field(1).metadata[b"meetpoint.kind"].decode()
        check(kind == content["kind"], f"{name}: kind of content")
    found = [schema.field(index) for index in range(len(expected))]
    check(all(a.equals(b) for a, b in zip(found, expected)), f"{name}: schema {schema}")
    further = schema.names[len(expected) :] if version > 2 else []
    listed = manifest.get("columns", [])
    check(further == [column["name"] for column in listed], f"{name}: further columns")
    for column in listed:
        metadata = schema.field(column["name"]).metadata or {}
        kind = metadata.get(b"meetpoint.kind")
        check((kind and kind.decode()) == column.get("kind"), f"{name}: {column}: kind")
        labels = metadata.get(b"meetpoint.labels")
        check((labels and json.loads(labels)) == column.get("labels"), f"{name}: {column}: labels")
    return further


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
    check(manifest["version"] in (1, 2, 3), "another version")
    check(("stored" in manifest) == (manifest["version"] > 1), "stored")
    return manifest


def check_record_batches(name, data, footer_metadata, batches):
    """The checksums of bytes that are not images, by the ranges that the documentation gives."""
    footer_bytes = int.from_bytes(data[-10:-6], "little")
    tail = len(data) - 10 - footer_bytes - 8
    described = footer_metadata["meetpoint.record_batches"].split(",")
    extra = footer_metadata.get("meetpoint.extra_columns", "").split(",")
    extra = iter([batch.split(":") for batch in extra])
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
        core = batch.columns[:5] if "meetpoint.extra_columns" in footer_metadata else batch.columns
        buffers = [buffer for column in core for buffer in column.buffers()]
        key_offsets, keys, image_offsets, images = buffers[1], buffers[2], buffers[4], buffers[5]
        after_images = buffers[6:]
        aligned = lambda size: (size + 63) // 64 * 64
        size = lambda buffer: aligned(buffer.size) if buffer is not None else 0
        start = body + size(key_offsets) + size(keys) + size(image_offsets)
        length = sum(len(image) for image in batch.column(1).to_pylist())
        end = start + aligned(length) + sum(size(buffer) for buffer in after_images)
        rest = data[message:start] + data[start + length : end]
        check(crc32c(rest) == int(expected, 16), f"{name}: rest of a record batch")
        check(images.size >= length, f"{name}: images")
        offset = end
        for column, crc in zip(batch.columns[len(core) :], next(extra, [])):
            end = offset + sum(size(buffer) for buffer in column.buffers())
            check(crc32c(data[offset:end]) == int(crc, 16), f"{name}: a further column")
            offset = end
    check(offset == tail, f"{name}: bytes between the record batches and the end")
    return crc32c(data[tail:])


def plain(value):
    """What JSON has no form for, as text."""
    return value.hex() if isinstance(value, bytes) else str(value)


def main(folder, shows_columns):
    manifest = read_manifest(folder)
    content = manifest.get("content", {}).get("column", "image")
    samples = image_bytes = 0
    entry_points = []
    for part in manifest["parts"]:
        name = part["file"]
        data = (folder / name).read_bytes()
        check(len(data) == part["bytes"], f"{name}: length")
        check(hashlib.sha256(data).hexdigest() == part["sha256"], f"{name}: SHA-256")
        reader = pa.ipc.open_file(pa.BufferReader(data))
        further = check_schema(name, reader.schema, manifest)
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
                image = row[content]
                crc = crc32c(image)
                check(crc == row["crc32c"], f"{name}, key {row['key']}: CRC-32C")
                label = "-" if row["label"] is None else manifest["labels"][row["label"]]
                values = {column: row[column] for column in further}
                shown = [json.dumps(values, default=plain)] if shows_columns else []
                print(row["key"], label, len(image), f"{crc:08x}", *shown, sep="\t")
                image_bytes += len(image)
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
    arguments = [argument for argument in sys.argv[1:] if argument != "--columns"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    main(pathlib.Path(arguments[0]), len(arguments) < len(sys.argv) - 1)
