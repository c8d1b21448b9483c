"""Batches in pinned memory, for torch where it finds CUDA."""

from __future__ import annotations

import importlib
import inspect
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from . import _native


def converter() -> Callable[["_native.Tensor"], Any]:
    """Makes tensors of torch in pinned memory; a copy each, as torch's own loader makes.

    Without CUDA nothing can be pinned: a warning says so, and batches are not copied.
    """
    # It is imported when a loader for it is made, not with the package.
    torch: Any = importlib.import_module("torch")
    has_cuda = bool(torch.cuda.is_available())
    if not has_cuda:
        said = "pin_memory does nothing here: torch finds no CUDA device"
        warnings.warn(said, RuntimeWarning, stacklevel=_level_of_caller())

    def convert(tensor: "_native.Tensor") -> Any:
        made = torch.from_dlpack(tensor)
        return made.pin_memory() if has_cuda else made

    return convert


def _level_of_caller() -> int:
    """The ``stacklevel`` with which a warning of this function's caller names the code that uses
    the package."""
    package = Path(__file__).parent
    level, frame = 0, inspect.currentframe()
    while frame is not None and Path(frame.f_code.co_filename).parent == package:
        level, frame = level + 1, frame.f_back
    # The frame of this function is one of those counted.
    return level
