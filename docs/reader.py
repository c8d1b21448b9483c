"""Lists the samples of a dataset with Python's standard library alone, checksums checked.

usage: reader.py DATASET        prints KEY<tab>LABEL<tab>BYTES<tab>CRC32C, one line a sample

Written from docs/dataset-format.md; flatbuffers are followed by hand: a table begins with the
distance back to its vtable, whose entries say where each field lies.
"""
import hashlib, json, pathlib, struct, sys

TABLE = list(range(256))
for _ in range(8):
    TABLE = [crc >> 1 ^ 0x82F63B78 * (crc & 1) for crc in TABLE]

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF

def check(holds, sentence):
    if not holds:
        sys.exit(sentence)

def number(form, data, at):
    return struct.unpack_from("<" + form, data, at)[0]

def follow(data, at):
    return at + number("I", data, at)

def field(data, table, slot):
    vtable = table - number("i", data, table)
    check(4 + 2 * slot < number("H", data, vtable), "a field is missing")
    return table + number("H", data, vtable + 4 + 2 * slot)

def vector(data, table, slot, width):
    start = follow(data, field(data, table, slot))
    return [start + 4 + width * item for item in range(number("I", data, start))]

def text(data, table, slot):
    start = follow(data, field(data, table, slot))
    return data[start + 4 : start + 4 + number("I", data, start)].decode()

def rows_of(data, part):
    tail = len(data) - 18 - number("i", data, len(data) - 10)
    check(crc32c(data[tail:]) == part["tail_crc32c"], f"{part['file']}: footer changed")
    footer = follow(data, tail + 8)
    pairs = [follow(data, at) for at in vector(data, footer, 4, 4)]
    pairs = {text(data, pair, 0): text(data, pair, 1) for pair in pairs}
    sums = pairs["meetpoint.record_batches"].split(",")
    for block, expected in zip(vector(data, footer, 3, 24), sums):
        start, metadata_bytes, body_bytes = struct.unpack_from("<qi4xq", data, block)
        batch = follow(data, field(data, follow(data, start + 8), 2))
        rows, body = number("q", data, field(data, batch, 0)), start + metadata_bytes
        nulls = number("q", data, vector(data, batch, 1, 16)[2] + 8)
        buffers = [struct.unpack_from("<qq", data, at) for at in vector(data, batch, 2, 16)]
        at = [body + offset for offset, _ in buffers]
        end = at[13] if len(at) > 13 else body + body_bytes
        rest = data[start : at[5]] + data[at[5] + buffers[5][1] : end]
        check(f"{rows}:{crc32c(rest):08x}" == expected, f"{part['file']}: tables changed")
        for row in range(rows):
            key = [at[2] + number("i", data, at[1] + 4 * (row + more)) for more in (0, 1)]
            image = [at[5] + number("q", data, at[4] + 8 * (row + more)) for more in (0, 1)]
            is_null = nulls > 0 and not data[at[6] + row // 8] >> row % 8 & 1
            label = None if is_null else number("i", data, at[7] + 4 * row)
            crc = number("I", data, at[9] + 4 * row)
            yield data[slice(*key)].decode(), label, data[slice(*image)], crc

def main(folder):
    manifest = (folder / "dataset.json").read_bytes()
    body, _, digits = manifest.rpartition(b',\n  "self_sha256": "')
    check(digits[:64] == hashlib.sha256(body).hexdigest().encode(), "dataset.json changed")
    manifest = json.loads(manifest)
    check(manifest["version"] == 3, f"version {manifest['version']} is not known here")
    for part in manifest["parts"]:
        data = (folder / part["file"]).read_bytes()
        for key, label, image, crc in rows_of(data, part):
            check(crc32c(image) == crc, f"{part['file']}, key {key}: it changed")
            name = "-" if label is None else manifest["labels"][label]
            print(key, name, len(image), f"{crc:08x}", sep="\t")

if __name__ == "__main__":
    main(pathlib.Path(*sys.argv[1:]))
