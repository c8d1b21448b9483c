"""The command line: ``python -m meetpoint``, and the command ``meetpoint``."""

from __future__ import annotations

import os
import sys

from . import _native
from ._gpu import package_folders
from ._program import own_command


def main() -> None:
    """Runs the command line of this process and ends it with the command's exit code."""
    # Where NVIDIA's run-time compiler may be installed.
    os.environ.setdefault("MEETPOINT_PYTHON_PACKAGES", os.pathsep.join(package_folders()))
    sys.exit(_native.main(["meetpoint", *sys.argv[1:]], own_command()))


if __name__ == "__main__":
    main()
