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

# `meetpoint agent` is a service and does not end with the process that started it. With this code,
# the kernel kills it (PR_SET_PDEATHSIG, SIGKILL) when the thread that started it ends.
_BOUND = (
    "import ctypes, os; ctypes.CDLL(None).prctl(1, 9, 0, 0, 0); "
    "os.getppid() == {parent} or os._exit(1); "
)


def own_command(*, is_bound: bool = False) -> List[str]:
    """The command line that starts the program ``meetpoint`` with this interpreter and package.

    :param is_bound: whether the process is killed when the thread that starts it ends.
    """
    if not sys.executable:
        raise DeviceError(
            "this Python does not say which program it is (sys.executable is empty), so no device "
            "can be started",
            remedy='start one with `meetpoint device serve` and give device="unix:PATH"',
        )
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    start = _START.format(folder=folder)
    if is_bound:
        start = _BOUND.format(parent=os.getpid()) + start
    # Without `site` it starts in a fraction of the time, and the package needs nothing of it.
    return [sys.executable, "-S", "-c", start]
