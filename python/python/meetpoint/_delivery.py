"""How a batch is handed out: its columns as arrays of the loader's output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional

from . import _native, _output
from ._ragged import Ragged

if TYPE_CHECKING:
    from ._nvtx import Ranges


class Delivery:
    """Waits for batches of the native loader and converts them, each in a range for profilers.

    :param convert: makes an array of a native tensor.
    :param columns: names of the columns of a batch; None: the pair of images and labels.
    :param ranges: makes ranges for NVIDIA's profilers.
    """

    def __init__(
        self,
        convert: _output.Converter,
        columns: Optional[List[str]],
        ranges: Optional["Ranges"],
    ) -> None:
        self.convert = convert
        self._columns = columns
        self._ranges = ranges

    def load(self) -> None:
        """Imports what the output needs: in the first step that would be counted as training."""
        _output.load(self.convert)

    def wait(self, native: _native.Loader, serial: int, epoch: int) -> Optional[_native.Batch]:
        """The next batch; None: the epoch is over."""
        if self._ranges is None:
            return native.next(serial)
        with self._ranges(f"meetpoint: wait, epoch {epoch}"):
            return native.next(serial)

    def hand_over(self, batch: _native.Batch) -> Any:
        """The batch as the user gets it."""
        if self._ranges is None:
            return self._converted(batch)
        source = "host" if batch.device is None else f"device {batch.device}"
        name = f"meetpoint: hand over, epoch {batch.epoch}, batch {batch.index}, {source}"
        with self._ranges(name):
            return self._converted(batch)

    def _converted(self, batch: _native.Batch) -> Any:
        if self._columns is None:
            return self._column(batch, "image"), self._column(batch, "label")
        return {name: self._column(batch, name) for name in self._columns}

    def _column(self, batch: _native.Batch, name: str) -> Any:
        if name == "label":
            # Without leave to use 64 bits, which is its default, JAX has integers of 32.
            labels = batch.labels(narrow=_output.has_narrow_integers(self.convert))
            return None if labels is None else self.convert(labels)
        if name == "sample":
            narrow = _output.has_narrow_integers(self.convert)
            return self.convert(batch.sample_numbers(narrow=narrow))
        values = batch.column(name)
        if isinstance(values, tuple):
            return Ragged(*(self.convert(part) for part in values))
        return values if isinstance(values, list) else self.convert(values)
