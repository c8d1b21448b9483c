"""Magnitudes of the policies of torchvision with the bits that docs/formats.md defines."""

from __future__ import annotations

import numpy
import torch


def linspace(first: float, last: float, count: int) -> torch.Tensor:
    """Magnitudes in float32 as docs/formats.md defines them.

    The last bit of torch's own differs between processors, which changes values by 1 of 255.
    """
    assert first in (0, 0.0) or last == 0, (first, last)
    index = numpy.arange(count, dtype=numpy.float32)
    span = numpy.float32(last) - numpy.float32(first)
    step = span / numpy.float32(count - 1)
    lower = numpy.float32(first) + step * index
    upper = numpy.float32(last) - step * (numpy.float32(count - 1) - index)
    return torch.from_numpy(numpy.where(index < count // 2, lower, upper).astype(numpy.float32))
