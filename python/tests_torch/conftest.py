"""The pictures of the other tests, packed; and programs under torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

for name in ("tests", "examples"):
    sys.path.insert(0, str(Path(__file__).parent.parent / name))

# A limit that no test reaches.
LIMIT = 300


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """66 pictures in three classes."""
    import meetpoint

    folder = tmp_path_factory.mktemp("torch")
    from quickstart import make_pictures

    make_pictures(folder / "pictures", 66)
    return meetpoint.pack(folder / "pictures", folder / "pictures.set").destination


@pytest.fixture
def folder() -> Iterator[Path]:
    """The folder of sockets; short, since names of sockets are limited."""
    with tempfile.TemporaryDirectory(prefix="mp", dir="/tmp") as name:
        yield Path(name)


def torchrun(
    program: str, ranks: int, folder: Path, *arguments: str, fails: bool = False, restarts: int = 0
) -> List[Dict[str, Any]]:
    """What each rank wrote as JSON to the file ``OUT/rank``."""
    path = folder / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={ranks}", f"--max-restarts={restarts}", str(path), *arguments]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "OUT": str(folder)}
    environment["OMP_NUM_THREADS"] = "1"
    # Otherwise gloo finds addresses of the attempt before in the store, with torch 2.15.
    environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode != 0) == fails, done.stderr
    files = [folder / str(rank) for rank in range(ranks)]
    return [json.loads(it.read_text()) if it.exists() else {} for it in files]
