"""Ranges for NVIDIA's profilers: the waits of the loop, next to the work of the GPU."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import TracebackType
from typing import Any, Callable, Optional, Protocol, Type

from .errors import SettingError

_DOMAIN = "meetpoint"


class Range:
    """A range on the thread that enters it; left on that thread, whatever happens in it."""

    def __init__(self, push: Callable[[str], Any], pop: Callable[[], Any], name: str) -> None:
        self._push = push
        self._pop = pop
        self._name = name

    def __enter__(self) -> None:
        self._push(self._name)

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._pop()


class Ranges(Protocol):
    """Makes ranges by their names."""

    def __call__(self, name: str) -> Range: ...


def ranges(wanted: Optional[bool]) -> Optional[Ranges]:
    """By torch where it is loaded and built for CUDA, else by the package ``nvtx``.

    No driver is called, so a process can still fork. ``None`` where neither is there.

    :raises SettingError: ranges are requested, but neither is available.
    """
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.version.cuda is not None:
        nvtx: Any = torch.cuda.nvtx
        return _made_by(nvtx.range_push, nvtx.range_pop)
    if "nvtx" in sys.modules or importlib.util.find_spec("nvtx") is not None:
        nvtx = importlib.import_module("nvtx")
        return _made_by(
            lambda name: nvtx.push_range(name, domain=_DOMAIN),
            lambda: nvtx.pop_range(domain=_DOMAIN),
        )
    if wanted:
        if torch is None:
            because = "torch is not loaded"
        else:
            because = f"torch {torch.__version__} was built without CUDA"
        raise SettingError(
            f"nvtx is True, but {because} and the package nvtx is not installed",
            remedy=(
                "install it (pip install nvtx), import a torch with CUDA first, or leave nvtx out"
            ),
        )
    return None


def _made_by(push: Callable[[str], Any], pop: Callable[[], Any]) -> Ranges:
    def make(name: str) -> Range:
        return Range(push, pop, name)

    return make
