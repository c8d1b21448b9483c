"""A running epoch."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Iterator, Optional, Set, TypeVar

from ._damage import DamagedSample
from ._state import Position
from .errors import DamageWarning

if TYPE_CHECKING:
    from ._loader import Loader
    from ._native import Batch

BatchT = TypeVar("BatchT")


class EpochIterator(Iterator[BatchT]):
    """A running epoch."""

    def __init__(
        self, loader: "Loader[BatchT]", serial: Optional[int], position: Position
    ) -> None:
        self._loader: Optional["Loader[Any]"] = loader
        self._native = loader._native
        self._serial = serial
        self._position = position
        self._warned: Set[str] = set()
        self._left = len(loader) - len(position)
        self._begun_with = self._left
        self._is_empty = True

    def __iter__(self) -> "EpochIterator[BatchT]":
        return self

    def __len__(self) -> int:
        """Batches that are left."""
        return self._left

    def __next__(self) -> BatchT:
        loader = self._loader
        if loader is None or self._serial is None:
            raise StopIteration
        while True:
            batch = loader._delivery.wait(self._native, self._serial, self._position.epoch)
            loader._warn_of_losses(self._warned)
            if loader._exporter is not None:
                loader._exporter._warn()
            if batch is None:
                self._loader = None
                if self._is_empty and self._begun_with > self._left:
                    warnings.warn(self._why_empty(), DamageWarning, stacklevel=2)
                raise StopIteration
            record = self._native.rest_record
            handed: Optional[BatchT] = None
            if len(batch) > 0:
                try:
                    handed = loader._delivery.hand_over(self._native, self._serial, batch)
                except BaseException:
                    # The batch is not counted, so a state that is taken now resumes with it.
                    self._close()
                    raise
            self._count(loader, batch, record)
            # Of an empty batch every sample was left out.
            if handed is not None:
                self._is_empty = False
                return handed

    def _count(self, loader: "Loader[Any]", batch: "Batch", record: Optional[str]) -> None:
        """Counts a batch that was handed out."""
        self._left -= 1
        loader._is_used, loader._loaded = True, None
        self._position.add(batch.index, record)
        damaged = [DamagedSample(**it) for it in batch.damaged]
        self._position.errors += len(damaged)
        loader._damaged.extend(damaged)

    def _why_empty(self) -> str:
        return (
            f"epoch {self._position.epoch} gave nothing: every sample of its batches is damaged "
            "and was left out; loader.errors() names them, and `meetpoint verify` finds what is "
            "wrong with the dataset"
        )

    def _close(self) -> None:
        if self._loader is not None and self._serial is not None:
            self._native.abandon(self._serial)
        self._loader = None

    def __del__(self) -> None:
        if getattr(self, "_loader", None) is not None:
            self._close()
