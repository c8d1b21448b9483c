"""A dataset written sample by sample."""

from __future__ import annotations

import os
from types import TracebackType
from typing import List, Optional, Sequence, Type, Union

from . import _native
from ._arguments import path as given_path
from .errors import PackError

__all__ = ["Writer"]


class Writer:
    """Writes a dataset of images, which appears when the ``with`` block ends without an error.

    ::

        with meetpoint.Writer("photos.set", labels=["cat", "dog"]) as writer:
            writer.add("a.jpg", open("a.jpg", "rb").read(), "cat")

    Images are stored unchanged, and are not checked before they are loaded. :func:`meetpoint.pack`
    checks them first, and adds entry points, with which crops decode faster.

    :param path: folder of the dataset.
    :param labels: names of the labels in order; ``None`` for the order of first appearance.
    :param force: replaces a dataset.
    :param part_bytes: bytes after which the next part file begins.
    :raises PackError: the destination cannot be created, or a key occurs twice.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        labels: Optional[Sequence[str]] = None,
        force: bool = False,
        part_bytes: int = 256 << 20,
    ) -> None:
        self._native = _native.Writer(given_path("path", path), force=force, part_bytes=part_bytes)
        self._labels: List[str] = list(labels or [])
        self._are_fixed = labels is not None
        self._places = {name: place for place, name in enumerate(self._labels)}

    def add(self, key: str, image: bytes, label: Union[str, int, None] = None) -> None:
        """Adds a sample: the bytes of an image file, and a label's name or number."""
        self._native.push(key, image, self._number(label))

    def _number(self, label: Union[str, int, None]) -> Optional[int]:
        if label is None or isinstance(label, int):
            return label
        if label not in self._places:
            if self._are_fixed:
                known = ", ".join(self._labels)
                raise PackError(
                    f"label {label!r} is none of those given", remedy=f"they are {known}"
                )
            self._places[label] = len(self._labels)
            self._labels.append(label)
        return self._places[label]

    def close(self) -> int:
        """Completes the dataset and returns the number of its samples."""
        return self._native.finish(self._labels, "meetpoint.Writer")

    def discard(self) -> None:
        """Removes everything that was written."""
        self._native.discard()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()
