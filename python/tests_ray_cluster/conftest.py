"""The cluster that scripts/ray_cluster.sh started: its connection, and the processes of a node."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import numpy
import pytest

ray: Any = pytest.importorskip("ray")

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from quickstart import png  # noqa: E402

PATIENCE = 120.0


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    if "MEETPOINT_NETNS" not in os.environ:
        pytest.skip("scripts/ray_cluster.sh starts the cluster of these tests")
    os.environ["SOURCE_DATE_EPOCH"] = "1000000000"
    ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 pictures of two classes."""
    folder = tmp_path_factory.mktemp("photos") / "photos"
    make_photos(folder, 120, 64)
    return folder


def make_photos(folder: Path, count: int, side: int) -> None:
    noise = numpy.random.default_rng(0)
    for number in range(count):
        of_class = folder / ("cat", "dog")[number % 2]
        of_class.mkdir(parents=True, exist_ok=True)
        pixels = noise.integers(0, 256, (side, side, 3), numpy.uint8)
        (of_class / f"{number:04}.png").write_bytes(png(pixels))


def hashes(folder: Path) -> Dict[str, str]:
    """The SHA-256 of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def processes(node: str) -> List[int]:
    """The processes of a node, which is a network namespace."""
    there = os.stat(f"/run/netns/{os.environ['MEETPOINT_NETNS']}-{node}").st_ino
    found: List[int] = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.stat(f"/proc/{entry}/ns/net").st_ino == there:
                found.append(int(entry))
        except OSError:
            continue
    return found


def command(process: int) -> str:
    """The command line of a process; empty if it ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def cut(node: str) -> None:
    """Drops all packets of a node, as ``netns_cut`` of scripts/netns.sh does."""
    hub = f"{os.environ['MEETPOINT_NETNS']}-hub"
    drop = ["bridge", "link", "set", "dev", node, "state", "0"]
    subprocess.run(["ip", "netns", "exec", hub, *drop], check=True)


def kill_node(node: str) -> None:
    """Kills every process of a node, as a power failure would."""
    while True:
        running = [it for it in processes(node) if command(it)]
        if not running:
            return
        for process in running:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
