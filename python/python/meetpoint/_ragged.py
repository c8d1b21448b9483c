"""Tensors whose first axis has a length of its own for every sample."""

from __future__ import annotations

from typing import Any, Iterator, List

__all__ = ["Ragged"]


class Ragged:
    """The values of a column whose samples have different lengths, such as boxes.

    ``values`` has the values of all samples of the batch, one after another: [rows, ...].
    ``offsets`` has int64 (for JAX int32 unless it uses 64 bits), [batch + 1]: those of sample i
    are ``values[offsets[i]:offsets[i + 1]]``. Both are arrays of the loader's ``output``, without a
    copy. Indexing gives the array of one sample.
    """

    __slots__ = ("offsets", "values")

    def __init__(self, values: Any, offsets: Any) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        """Samples."""
        return int(self.offsets.shape[0]) - 1

    def __getitem__(self, sample: int) -> Any:
        """The values of one sample: [length, ...].

        :raises IndexError: there is no such sample.
        """
        count = len(self)
        at = sample + count if sample < 0 else sample
        if not 0 <= at < count:
            raise IndexError(f"sample {sample} of a batch of {count}")
        values, offsets = _sliceable(self.values), _sliceable(self.offsets)
        return values[int(offsets[at]) : int(offsets[at + 1])]

    def __iter__(self) -> Iterator[Any]:
        return (self[sample] for sample in range(len(self)))

    def to_list(self) -> List[List[Any]]:
        """A list of rows for each sample, in numbers of Python."""
        values, offsets = _sliceable(self.values).tolist(), _sliceable(self.offsets).tolist()
        return [values[begin:end] for begin, end in zip(offsets, offsets[1:])]

    def __repr__(self) -> str:
        shape = tuple(self.values.shape)
        return f"Ragged(samples={len(self)}, values={shape}, dtype={self.values.dtype})"


def _sliceable(array: Any) -> Any:
    """The array; a native tensor as one of NumPy, which shows the same memory."""
    if hasattr(array, "tolist"):
        return array
    import numpy

    return numpy.asarray(array)
