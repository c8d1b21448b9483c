"""How pictures of different sizes are combined into a batch.

A loader stacks the pictures of a batch, which needs a recipe that produces one size. For
recipes such as those of detection and segmentation, pass ``collate``::

    Loader(..., collate="pad")                      # padded to the largest picture of the batch
    Loader(..., collate=Pad(multiple_of=32))        # as torchvision's detection models pad
    Loader(..., collate="list")                     # a TensorList, without padding

Masks that move with the pictures are padded in the same way; boxes and keypoints do not change.
"""

from __future__ import annotations

import operator
from typing import Any, Optional, Sequence, Tuple, Union

from .errors import SettingError

__all__ = ["Collate", "List", "Pad", "Stack"]


def __dir__() -> "list[str]":
    """The public names, without those imported for internal use."""
    return sorted(__all__)


_Native = Tuple[str, Optional[int], Optional[float], Optional[Tuple[int, int]]]

_U64 = 2**64


class Collate:
    """How the pictures of a batch, and their masks, are combined into arrays."""

    mode: str = ""
    """The name in job files."""

    def __init__(
        self,
        multiple_of: Optional[int] = None,
        fill: Optional[float] = None,
        max_size: Optional[Tuple[int, int]] = None,
    ) -> None:
        self._options = (multiple_of, fill, max_size)

    def _native(self) -> _Native:
        """For the native loader."""
        return (self.mode, *self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collate) and self._native() == other._native()

    def __hash__(self) -> int:
        return hash(self._native())

    def __repr__(self) -> str:
        names = ("multiple_of", "fill", "max_size")
        shown = [
            f"{name}={value!r}" for name, value in zip(names, self._options) if value is not None
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


class Stack(Collate):
    """One array [batch, ...] of pictures of one size: the default."""

    mode = "stack"

    def __init__(self) -> None:
        super().__init__()


class Pad(Collate):
    """One array [batch, ...], padded below and to the right to the largest height and width.

    Without ``columns``, batches are dictionaries of ``"image"``, ``"image_size"`` (int64 [batch, 2]:
    height and width of each picture without padding) and ``"label"``. A further column can be
    ``"padding_mask"``: bool [batch, height, width], true for padding, as in DETR's ``NestedTensor``.
    With views, each view is padded to its own largest picture, and the columns are named after it:
    ``"local"``, ``"local_size"``, ``"local_padding_mask"``.

    :param multiple_of: height and width of a batch are rounded up to a multiple of this number, as
        with ``size_divisible`` of torchvision's ``GeneralizedRCNNTransform``.
    :param fill: value of the padding, in the values that the recipe gives. Masks are padded with
        the ``fill`` of their target.
    :param max_size: height and width of the pictures for which memory is reserved. By default the
        largest that the recipe can give, for which the sizes of all pictures are read from their
        files if the operations set no limit. A batch with larger pictures is prepared by the host
        in separate memory.
    :raises SettingError: a number that is not whole, or not in range.
    """

    mode = "pad"

    def __init__(
        self,
        multiple_of: int = 1,
        fill: float = 0.0,
        max_size: Optional[Sequence[int]] = None,
    ) -> None:
        try:
            number = float(fill)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if number - number != 0:
            raise SettingError(f"fill is {fill!r}", remedy="set fill to a finite number")
        super().__init__(_side("multiple_of", multiple_of), number, _size(max_size))


class List(Collate):
    """A :class:`~meetpoint.TensorList`: each picture with a different size.

    :param max_size: as of :class:`Pad`.
    :raises SettingError: a number that is not whole, or not in range.
    """

    mode = "list"

    def __init__(self, max_size: Optional[Sequence[int]] = None) -> None:
        super().__init__(max_size=_size(max_size))


def of(given: Union[str, Collate]) -> Collate:
    """The collation of a loader's argument.

    :raises SettingError: neither a mode nor a collation.
    """
    if isinstance(given, Collate):
        return given
    for kind in (Stack, Pad, List):
        if given == kind.mode:
            return kind()
    raise SettingError(
        f"collate is {given!r}",
        remedy='set collate to "stack", "pad", "list" or one of meetpoint.collate',
    )


def _side(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number < _U64:
        raise SettingError(
            f"{name} is {value!r}", remedy=f"set {name} to a whole number of at least 1"
        )
    return number


def _size(value: Optional[Sequence[int]]) -> Optional[Tuple[int, int]]:
    if value is None:
        return None
    try:
        height, width = value
    except (TypeError, ValueError):
        raise SettingError(
            f"max_size is {value!r}", remedy="set max_size to a height and a width"
        ) from None
    return _side("max_size", height), _side("max_size", width)
