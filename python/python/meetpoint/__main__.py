"""The command line: ``python -m meetpoint``, and the command ``meetpoint``."""

from __future__ import annotations

import os
import signal
import sys

from . import _native
from ._gpu import package_folders
from ._program import own_command


def main() -> None:
    """Runs the command line of this process and ends it with the command's exit code."""
    # Python's handler would raise KeyboardInterrupt after the command has ended. Without it, SIGINT
    # does what it does to the native program: commands that clean up handle it, and it ends others.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Where NVIDIA's run-time compiler may be installed.
    os.environ.setdefault("MEETPOINT_PYTHON_PACKAGES", os.pathsep.join(package_folders()))
    sys.exit(_native.main(["meetpoint", *sys.argv[1:]], own_command()))


if __name__ == "__main__":
    main()
