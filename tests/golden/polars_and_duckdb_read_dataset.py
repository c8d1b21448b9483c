"""Reads a dataset with polars and with DuckDB and holds both against plain pyarrow.

usage: polars_and_duckdb_read_dataset.py DATASET

Prints `polars ROWS` and `duckdb ROWS`, and exits with 1 and a sentence where a value is another.
polars reads the parts itself; DuckDB reads them as pyarrow's dataset, by SQL.
"""

import json
import pathlib
import sys

import duckdb
import polars
import pyarrow.dataset
import pyarrow.ipc


def check(holds, sentence):
    if not holds:
        sys.exit(sentence)


def same(one, other):
    """Equal, whatever sort of list, number or mapping a library gives."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if hasattr(one, "__len__") and not isinstance(one, (str, bytes, bytearray)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other))
    return one == other


def main(folder):
    manifest = json.loads((folder / "dataset.json").read_bytes())
    parts = [folder / part["file"] for part in manifest["parts"]]
    expected = pyarrow.dataset.dataset(parts, format="ipc").to_table().to_pylist()
    check(len(expected) == manifest["samples"], "pyarrow: rows")

    frame = polars.concat([polars.read_ipc(part) for part in parts])
    check(frame.columns == list(expected[0]), f"polars: columns {frame.columns}")
    for row, other in zip(expected, frame.iter_rows(named=True), strict=True):
        check(same(row, other), f"polars: {row['key']}: {other}")
    print("polars", len(frame))

    packed = pyarrow.dataset.dataset(parts, format="ipc")
    result = duckdb.sql("select * from packed")
    check(result.columns == list(expected[0]), f"duckdb: columns {result.columns}")
    rows = [dict(zip(result.columns, row)) for row in result.fetchall()]
    for row, other in zip(expected, rows, strict=True):
        check(same(row, other), f"duckdb: {row['key']}: {other}")
    content = manifest.get("content", {}).get("column", "image")
    total = duckdb.sql(f'select sum(octet_length("{content}"::blob)) from packed').fetchall()[0][0]
    check(total == manifest["image_bytes"], "duckdb: image_bytes")
    print("duckdb", len(rows))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
