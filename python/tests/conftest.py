"""Packed pictures with known pixels, and checks for leftovers of a process."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Iterator, List, Set

import numpy
import pytest

import meetpoint

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from quickstart import png  # noqa: E402

HEIGHT, WIDTH = 20, 24
CLASSES = ("ant", "bee", "cat")
COUNT = 66


def pixels(number: int) -> numpy.ndarray:
    """The picture with this number: noise that starts with the number itself."""
    picture = numpy.random.default_rng(number).integers(0, 256, (HEIGHT, WIDTH, 3), numpy.uint8)
    picture[0, 0] = (number % 256, number // 256, 7)
    return picture


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of classes. Picture ``n`` is the n-th in the dataset, too."""
    folder = tmp_path_factory.mktemp("pictures")
    each = COUNT // len(CLASSES)
    for at, name in enumerate(CLASSES):
        (folder / name).mkdir()
        for number in range(at * each, (at + 1) * each):
            (folder / name / f"{number:03}.png").write_bytes(png(pixels(number)))
    return folder


@pytest.fixture(scope="session")
def dataset(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The pictures, packed."""
    to = tmp_path_factory.mktemp("sets") / "pictures.set"
    return meetpoint.pack(pictures, to).destination


def children(process: int) -> Set[int]:
    """Running processes that it started."""
    found: Set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == process and state not in "ZX":
            found.add(int(entry.name))
    return found


def is_running(process: int) -> bool:
    """Whether the process exists and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until_gone(process: int) -> None:
    """Waits for a process that must end by itself; fails after a minute."""
    for _ in range(6000):
        if not is_running(process):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} is still there")


@pytest.fixture
def leaves_nothing() -> Iterator[None]:
    """Fails if there are new processes or names afterwards."""
    before = children(os.getpid())
    files = len(_open_files())
    yield
    for process in children(os.getpid()) - before:
        wait_until_gone(process)
    # A thread that received from a device closes its end a moment after the device has ended.
    for _ in range(6000):
        if len(_open_files()) <= files:
            return
        time.sleep(0.01)
    raise AssertionError(f"of these, some are left open: {_open_files()}")


def _open_files() -> List[str]:
    """What open files are, but for the one that lists them."""
    found: List[str] = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            pass
    return found
