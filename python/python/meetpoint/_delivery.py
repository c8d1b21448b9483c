"""The delivery of a batch: arrays of the loader's output, changed by the user's function."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, List, Optional

from . import _native, _output
from ._ragged import Ragged
from ._tensor_list import TensorList
from .errors import TransformError

if TYPE_CHECKING:
    from ._nvtx import Ranges


class Delivery:
    """Waits for batches of the native loader and converts them, each in a range for profilers.

    :param convert: converts a native tensor to an array.
    :param columns: names of the columns of a batch; None: the pair of images and labels.
    :param ranges: makes ranges for NVIDIA's profilers.
    :param transform: the user's function on batches.
    """

    def __init__(
        self,
        convert: _output.Converter,
        columns: Optional[List[str]],
        ranges: Optional["Ranges"],
        transform: Optional[Callable[[Any], Any]],
    ) -> None:
        self.convert = convert
        self._columns = columns
        self._ranges = ranges
        self._transform = transform

    def load(self) -> None:
        """Imports the output's library early: in the first step it would be counted as training."""
        _output.load(self.convert)

    def wait(self, native: _native.Loader, serial: int, epoch: int) -> Optional[_native.Batch]:
        """The next batch; None: the epoch is over."""
        if self._ranges is None:
            return native.next(serial)
        with self._ranges(f"meetpoint: wait, epoch {epoch}"):
            return native.next(serial)

    def hand_over(self, native: _native.Loader, serial: int, batch: _native.Batch) -> Any:
        """The batch as it is delivered to the user.

        :raises TransformError: the user's function raised an exception, or returned ``None``.
        """
        converted = self._hand_over(batch)
        if self._transform is None:
            return converted
        begun = time.perf_counter()
        try:
            return self._transformed(self._transform, converted, batch)
        finally:
            native.note_transform(serial, time.perf_counter() - begun)

    def _hand_over(self, batch: _native.Batch) -> Any:
        if self._ranges is None:
            return self._converted(batch)
        source = "host" if batch.device is None else f"device {batch.device}"
        name = f"meetpoint: hand over, epoch {batch.epoch}, batch {batch.index}, {source}"
        with self._ranges(name):
            return self._converted(batch)

    def _transformed(
        self, transform: Callable[[Any], Any], converted: Any, batch: _native.Batch
    ) -> Any:
        at = {"epoch": batch.epoch, "batch": batch.index}
        name = _name(transform)
        place = f"batch_transform {name} on batch {batch.index} of epoch {batch.epoch}"
        remedy = "correct the function; loader.state_dict() resumes with this batch"
        try:
            if self._ranges is None:
                result = transform(converted)
            else:
                range_name = f"epoch {batch.epoch}, batch {batch.index}"
                with self._ranges(f"meetpoint: batch transform, {range_name}"):
                    result = transform(converted)
        except Exception as error:
            message = f"{place}: {type(error).__name__}: {error}"
            raise TransformError(message, function=name, remedy=remedy, **at) from error
        if result is None:
            message = f"{place}: it returned None instead of a batch"
            raise TransformError(message, function=name, remedy=remedy, **at)
        return result

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
            parts = [self.convert(part) for part in values]
            return Ragged(*parts) if len(parts) == 2 else TensorList(*parts)
        return values if isinstance(values, list) else self.convert(values)


def _name(function: Callable[[Any], Any]) -> str:
    """The name of a function; of an object that can be called, that of its class."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))
