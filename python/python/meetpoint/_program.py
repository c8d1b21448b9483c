"""Starts this package's program as a separate process."""

from __future__ import annotations

import os
import sys
from typing import List

from .errors import DeviceError

# The child has a separate process group, so that a Ctrl-C for Python does not end a device in the
# middle of an epoch; it ends with its parent in any case.
_START = (
    "import os, sys; os.setpgid(0, 0); sys.path.insert(0, {folder!r}); "
    "from meetpoint.__main__ import main; main()"
)


def own_command() -> List[str]:
    """The command line that starts the program ``meetpoint`` with this interpreter and package."""
    if not sys.executable:
        raise DeviceError(
            "this Python does not say which program it is (sys.executable is empty), so no device "
            "can be started",
            remedy='start one with `meetpoint device serve` and give device="unix:PATH"',
        )
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # Without `site` it starts in a fraction of the time, and the package needs nothing of it.
    return [sys.executable, "-S", "-c", _START.format(folder=folder)]
