"""The page about torchvision's classes equals the output of its script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_torchvisions_classes_is_not_stale() -> None:
    script = ROOT / "scripts" / "torchvision_table.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
