"""Tensors whose first axis has a different length for every sample."""

from __future__ import annotations

import importlib
from typing import Any, Iterator, List, Optional, Tuple

__all__ = ["Ragged"]


class Ragged:
    """The values of a column whose samples have different lengths, such as boxes.

    ``values`` contains the values of all samples of the batch, one after another: [rows, ...].
    ``offsets`` is int64 (for JAX int32, unless 64 bits are enabled), [batch + 1]: the values of
    sample i are ``values[offsets[i]:offsets[i + 1]]``. Both are arrays of the type that the
    loader's ``output`` selects, without a copy. Indexing returns the array of one sample.
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
        """A list of rows for each sample, as Python numbers."""
        values, offsets = _sliceable(self.values).tolist(), _sliceable(self.offsets).tolist()
        return [values[begin:end] for begin, end in zip(offsets, offsets[1:])]

    def padded(self, length: Optional[int] = None, fill: float = 0) -> Tuple[Any, Any]:
        """The values as one padded array [batch, length, ...], and their int64 sizes [batch].

        Rows beyond the size of a sample contain ``fill``.

        :param length: rows of each sample in the result; None: the maximum over the samples.
        :raises ValueError: a sample has more rows than ``length``.
        """
        values, offsets = _sliceable(self.values), _sliceable(self.offsets)
        sizes = offsets[1:] - offsets[:-1]
        most = int(sizes.max()) if len(self) else 0
        length = most if length is None else length
        if most > length:
            raise ValueError(f"a sample has {most} rows, more than length={length}")
        shape = (len(self), length, *values.shape[1:])
        library = type(values).__module__.split(".")[0]
        if library == "torch":
            return _padded_by_torch(values, offsets, shape, fill), sizes
        padded = _padded_by_numpy(values, offsets, shape, fill)
        if library.startswith("jax"):
            numpy_of_jax: Any = importlib.import_module("jax.numpy")
            return numpy_of_jax.asarray(padded), sizes
        return padded, sizes

    def __repr__(self) -> str:
        shape = tuple(self.values.shape)
        return f"Ragged(samples={len(self)}, values={shape}, dtype={self.values.dtype})"


def _sliceable(array: Any) -> Any:
    """The array; a native tensor as one of NumPy, which shows the same memory."""
    if hasattr(array, "tolist"):
        return array
    import numpy

    return numpy.asarray(array)


def _padded_by_numpy(values: Any, offsets: Any, shape: Tuple[int, ...], fill: float) -> Any:
    import numpy

    rows, starts = numpy.asarray(values), numpy.asarray(offsets)
    padded = numpy.full(shape, fill, rows.dtype)
    sample = numpy.repeat(numpy.arange(shape[0]), numpy.diff(starts))
    padded[sample, numpy.arange(len(rows)) - starts[sample]] = rows
    return padded


def _padded_by_torch(values: Any, offsets: Any, shape: Tuple[int, ...], fill: float) -> Any:
    torch: Any = importlib.import_module("torch")
    padded = values.new_full(shape, fill)
    sample = torch.repeat_interleave(offsets[1:] - offsets[:-1])
    padded[sample, torch.arange(len(values), device=values.device) - offsets[sample]] = values
    return padded
