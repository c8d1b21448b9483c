"""Samples that cannot be read or decoded."""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional, Union

__all__ = ["DamagedSample", "OnError"]


class DamagedSample(NamedTuple):
    """A sample that cannot be read or decoded, and how it was handled."""

    epoch: int
    """The epoch in which it was found."""
    sample: int
    """Its number in the dataset."""
    key: str
    """Its key."""
    file: str
    """File that contains its content."""
    offset: int
    """Offset of its content in the file."""
    what: str
    """The problem."""
    remedy: str
    """The remedy."""
    batch: Optional[int] = None
    """Index of its batch; ``None`` when passed to the function that decides."""
    action: Optional[str] = None
    """``"skip"`` or ``"replace"``; ``None`` when passed to the function that decides."""
    replaced_by: Optional[int] = None
    """The sample that replaced it."""


OnError = Union[str, Callable[[DamagedSample], str]]
