"""Tensors of a batch, each with a different shape."""

from __future__ import annotations

from typing import Any, Iterator, Tuple

from ._ragged import _sliceable

__all__ = ["TensorList"]


class TensorList:
    """The values of a column whose samples have different shapes, such as pictures of different
    sizes.

    ``values`` has one axis, and contains the elements of all samples, one after another. ``offsets``
    is int64 [batch + 1]: the elements of sample i are ``values[offsets[i]:offsets[i + 1]]``, and
    ``shapes[i]`` of int64 [batch, axes] is their shape (for JAX both are int32, unless 64 bits are
    enabled). All are arrays of the type that the loader's ``output`` selects, without a copy.
    Indexing returns the array of one sample, which views the same memory. With
    ``output="dlpack"``, tensors on a GPU cannot be indexed, so a loader refuses this output together
    with ``device_out`` and ``collate="list"``.
    """

    __slots__ = ("offsets", "shapes", "values")

    def __init__(self, values: Any, offsets: Any, shapes: Any) -> None:
        self.values = values
        self.offsets = offsets
        self.shapes = shapes

    def __len__(self) -> int:
        """Samples."""
        return int(self.shapes.shape[0])

    def shape(self, sample: int) -> Tuple[int, ...]:
        """The shape of one sample.

        :raises IndexError: there is no such sample.
        """
        return tuple(int(length) for length in _sliceable(self.shapes)[self._at(sample)])

    def __getitem__(self, sample: int) -> Any:
        """The array of one sample.

        :raises IndexError: there is no such sample.
        """
        at = self._at(sample)
        values, offsets = _sliceable(self.values), _sliceable(self.offsets)
        return values[int(offsets[at]) : int(offsets[at + 1])].reshape(self.shape(at))

    def __iter__(self) -> Iterator[Any]:
        return (self[sample] for sample in range(len(self)))

    def _at(self, sample: int) -> int:
        count = len(self)
        at = sample + count if sample < 0 else sample
        if not 0 <= at < count:
            raise IndexError(f"sample {sample} of a batch of {count}")
        return at

    def __repr__(self) -> str:
        elements = int(self.values.shape[0])
        return f"TensorList(samples={len(self)}, elements={elements}, dtype={self.values.dtype})"
