"""Writes the files that the tests hold sinks against, with the Python programs whose formats they are.

Needs datadings 3.4.7, msgpack 1.2, simplebloom 1.1 and mosaicml-streaming 0.13; run it in this
folder.
"""

import importlib.util
import os
import shutil
import sys
import types
from unittest.mock import MagicMock

from datadings.writer import FileWriter


def mds_writer():
    """The writer of shards, without the rest of its package, which needs torch and more."""
    for name in ["streaming", "streaming.base"]:
        package = types.ModuleType(name)
        package.__path__ = importlib.util.find_spec(name).submodule_search_locations
        sys.modules[name] = package
    for name in ["torch", "torch.distributed", "torch.utils", "torch.utils.data", "zstd", "snappy"]:
        sys.modules.setdefault(name, MagicMock())
    from streaming.base.format.mds.writer import MDSWriter

    return MDSWriter


SAMPLES = [
    {
        "key": f"{'café' if index % 3 == 0 else 'tea'}/{index}.jpg",
        "image": bytes((index * 7 + place) % 251 for place in range(index * 41 % 300)),
        "label": [0, 1, 127, 128, 255, 256, 65536, 2147483647][index % 8],
    }
    for index in range(40)
]
# One value of each kind that a further column has.
MORE = [
    {
        "count": (-1) ** index * 10 ** index,
        "score": index / 8,
        "name": "x" * (index * 17),
        "mask": bytes(range(index * 30)),
        "boxes": list(range(index)),
        "of": {"a": index, "b": None},
        "maybe": None if index % 2 else True,
    }
    for index in range(8)
]


def datadings(folder, samples):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with FileWriter(f"{folder}/data.msgpack", disable=True) as writer:
        for sample in samples:
            writer.write(sample)


def mds(folder, samples, columns, size_limit):
    shutil.rmtree(folder, ignore_errors=True)
    with MDSWriter(columns=columns, out=folder, size_limit=size_limit) as writer:
        for sample in samples:
            writer.write(sample)


def main():
    global MDSWriter
    MDSWriter = mds_writer()
    datadings("datadings", SAMPLES)
    datadings("datadings-one", SAMPLES[:1])
    with_more = [{**sample, **more} for sample, more in zip(SAMPLES, MORE)]
    datadings("datadings-columns", with_more)
    columns = {"key": "str", "image": "bytes", "label": "int"}
    mds("mds", SAMPLES, columns, 2000)
    kept = ["key", "image", "label", "count", "score", "name", "mask"]
    columns |= {"count": "int64", "score": "float32", "name": "str", "mask": "bytes"}
    mds("mds-columns", [{name: s[name] for name in kept} for s in with_more], columns, 1 << 26)


if __name__ == "__main__":
    main()
