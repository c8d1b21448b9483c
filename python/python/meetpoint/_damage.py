"""Samples that do not read or decode."""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional, Union

__all__ = ["DamagedSample", "OnError"]


class DamagedSample(NamedTuple):
    """A sample that does not read or decode, and what was done about it."""

    epoch: int
    """The epoch in which it was met."""
    sample: int
    """Its number in the dataset."""
    key: str
    """Its key."""
    file: str
    """File that its content lies in."""
    offset: int
    """First byte of its content there."""
    what: str
    """What is wrong with it."""
    remedy: str
    """What would be right."""
    batch: Optional[int] = None
    """Index of the batch that it was to be in; ``None`` while it is decided about."""
    action: Optional[str] = None
    """``"skip"`` or ``"replace"``; ``None`` while it is decided about."""
    replaced_by: Optional[int] = None
    """The sample that took its place."""


OnError = Union[str, Callable[[DamagedSample], str]]
