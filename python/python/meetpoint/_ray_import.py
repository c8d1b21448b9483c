"""Imports Ray when it is first used, and reads results of its calls."""

from __future__ import annotations

import importlib
from typing import Any, Optional

from .errors import MeetpointError


def imported(name: str) -> Any:
    """An optional module.

    :raises ImportError: the module is not installed; the message has the remedy.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f'{name} cannot be imported ({error}); install it with `pip install "meetpoint[ray]"`'
        ) from error


def plain(ray: Any, call: Any, timeout: Optional[float] = None) -> Any:
    """The result of a call. An error of Meetpoint is raised as in the task."""
    try:
        return ray.get(call, timeout=timeout)
    except ray.exceptions.RayTaskError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, MeetpointError):
            raise cause from None
        raise
