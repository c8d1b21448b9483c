"""A small cluster of one node for all tests, and pictures to pack."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

ray: Any = pytest.importorskip("ray")

WORKERS = 2


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    os.environ["SOURCE_DATE_EPOCH"] = "1000000000"
    ray.init(
        num_cpus=WORKERS,
        include_dashboard=False,
        object_store_memory=100 << 20,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}},
    )
    yield
    ray.shutdown()


def png(number: int, side: int = 24) -> bytes:
    """A picture of one channel whose pixels depend on its number."""
    rows = b"".join(
        b"\0" + bytes((x * y + 7 * number) % 256 for x in range(side)) for y in range(side)
    )

    def chunk(kind: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    body = zlib.compress(rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """40 pictures of two classes."""
    folder = tmp_path / "photos"
    for number in range(40):
        of_class = folder / ("cat", "dog")[number % 2]
        of_class.mkdir(parents=True, exist_ok=True)
        (of_class / f"{number}.png").write_bytes(png(number))
    return folder


def hashes(folder: Path) -> Dict[str, str]:
    """The SHA-256 of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
