"""Checks for the options of the commands, by name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _native
from ._arguments import U64, flag, items, path_or_none, text, text_or_none, whole, whole_or_none
from .errors import SettingError

__all__ = ["Size", "options", "size", "size_or_none"]

Size = Union[int, str]
"""A number of bytes, or a string such as ``"256MiB"``."""


def size(name: str, value: Any) -> int:
    if isinstance(value, str):
        parsed = _native.parse_bytes(value)
        if not parsed:
            raise SettingError(f"{name} is {value!r}", remedy=f'set {name} to a size such as "256MiB"')
        return parsed
    return whole(name, value, U64, least=1)


def size_or_none(name: str, value: Any) -> Optional[int]:
    return None if value is None else size(name, value)


def _number_or_none(name: str, value: Any) -> Optional[int]:
    return whole_or_none(name, value, U64)


def _count_or_none(name: str, value: Any) -> Optional[int]:
    return whole_or_none(name, value, U64, least=1)


def _names(name: str, value: Any) -> List[str]:
    """One text or several."""
    if value is None:
        return []
    if isinstance(value, str):
        return [text(name, value)]
    return [text(name, item) for item in items(name, value, "texts")]


def _names_or_none(name: str, value: Any) -> Optional[List[str]]:
    return None if value is None else _names(name, value)


def _spacing(name: str, value: Any) -> str:
    """``"row"``, ``"none"``, or a number of MCUs; ``None`` is ``"none"``."""
    if value is None:
        return "none"
    return text(name, value) if isinstance(value, str) else str(whole(name, value, 65535, least=1))


def _restarts(name: str, value: Any) -> Optional[str]:
    return None if value is None else _spacing(name, value)


def _range(name: str, value: Any) -> Optional[str]:
    if isinstance(value, range):
        if value.step != 1 or value.start < 0 or value.stop < 0:
            raise SettingError(f"{name} is {value!r}", remedy=f"set {name} to a range of step 1")
        return f"{value.start}..{value.stop}"
    return text_or_none(name, value)


def share(name: str, value: Any) -> str:
    """A share as typed on the command line: 0.8, 8 or "80%"."""
    if isinstance(value, str):
        return text(name, value)
    try:
        return format(Decimal(repr(float(value))), "f")
    except (TypeError, ValueError, OverflowError):
        raise SettingError(
            f"{name} is {value!r}", remedy=f'set {name} to a number or text like "80%"'
        ) from None


def _share_or_none(name: str, value: Any) -> Optional[str]:
    return None if value is None else share(name, value)


def _cut(name: str, value: Any) -> str:
    """A number of operations, or a name."""
    return text(name, value) if isinstance(value, str) else str(whole(name, value, 255, least=1))


def _quality_or_none(name: str, value: Any) -> Optional[int]:
    return whole_or_none(name, value, 100, least=1)


_CHECKS: Dict[str, Callable[[str, Any], Any]] = {
    "anonymous": flag,
    "by": text_or_none,
    "cache": path_or_none,
    "cache_size": size,
    "check": text,
    "codec": text,
    "columns": _names_or_none,
    "content": text_or_none,
    "cut": _cut,
    "entry_points": _spacing,
    "follow_links": flag,
    "force": flag,
    "form": text,
    "fraction": _share_or_none,
    "from_": text_or_none,
    "in_place": flag,
    "invert": flag,
    "key": text_or_none,
    "kind": text_or_none,
    "label": text_or_none,
    "lossy_jpeg": _quality_or_none,
    "memory": size,
    "n": _number_or_none,
    "on_error": text,
    "optimize_huffman": flag,
    "part_samples": _count_or_none,
    "part_size": size,
    "part_source_bytes": size_or_none,
    "per_class": flag,
    "progressive": text,
    "range": _range,
    "restart_interval": _restarts,
    "resume": flag,
    "root": path_or_none,
    "sample_bytes_max": size,
    "shard_samples": _count_or_none,
    "shard_size": size_or_none,
    "source_memory": size_or_none,
    "split": text_or_none,
    "store": text_or_none,
    "stratify": flag,
    "table": path_or_none,
    "threads": whole,
    "to": text,
    "without": _names,
}


def options(given: Dict[str, Any], **others: Callable[[str, Any], Any]) -> Dict[str, Any]:
    """The checked options among the arguments of a command; ``others`` are additional checks."""
    checks: Dict[str, Callable[[str, Any], Any]] = {**_CHECKS, **others}
    return {name: checks[name](name, it) for name, it in given.items() if name in checks}


def names(name: str, value: Optional[Union[str, Sequence[str]]]) -> List[str]:
    """One text or several."""
    return _names(name, value)
