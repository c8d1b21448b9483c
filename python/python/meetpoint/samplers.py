"""Samplers: which samples an epoch has, and in which order.

Pass one to a loader: ``Loader(..., sampler=Weighted("weight"))``. The sample at a position depends
only on the sampler, the dataset, the seed, the epoch and the position, so every process can begin
anywhere in an epoch. ``docs/formats.md`` has the exact definitions.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .errors import SettingError

__all__ = [
    "AspectRatio",
    "ClassBalanced",
    "Filter",
    "Indices",
    "Mixture",
    "Repeated",
    "Sampler",
    "Sequential",
    "Shuffled",
    "Weighted",
]


def __dir__() -> "list[str]":
    """The public names; imports for internal use are not completed."""
    return sorted(__all__)


Given = Union[bool, int, str, Tuple[str, bytes]]


class Sampler:
    """A sampler: a name and options, which are checked when a loader is created."""

    name: str = ""
    """The name in job files."""

    def __init__(self, **options: Optional[Given]) -> None:
        self._options: Dict[str, Given] = {
            name: value for name, value in options.items() if value is not None
        }

    def _native(self) -> Tuple[str, List[Tuple[str, Given]]]:
        """For the native loader."""
        return self.name, list(self._options.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sampler) and self._native() == other._native()

    def __hash__(self) -> int:
        return hash((self.name, tuple(self._options.items())))

    def __repr__(self) -> str:
        shown = [f"{name}={_shown(value)}" for name, value in self._options.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


class Sequential(Sampler):
    """Every sample once, in the order of the dataset."""

    name = "sequential"

    def __init__(self) -> None:
        super().__init__()


class Shuffled(Sampler):
    """Every sample once, in a different order in each epoch."""

    name = "shuffled"

    def __init__(self) -> None:
        super().__init__()


class Indices(Sampler):
    """The samples in a list, each as often as the list contains it.

    :param indices: sample numbers, counted from 0: a list, or a one-dimensional array of integers.
    :param shuffle: whether each epoch has a different order; otherwise the order of the list.
    :raises SettingError: an element that is not a whole number of at least 0.
    """

    name = "indices"

    def __init__(self, indices: Union[Sequence[int], Any], shuffle: bool = False) -> None:
        super().__init__(indices=_wholes("indices", indices), shuffle=_flag("shuffle", shuffle))


class Filter(Sampler):
    """The samples for which an expression over columns is true, each once.

    Columns are ``key``, ``label``, ``label_name`` and those that the dataset was packed with. The
    operators are ``== != < <= > >=``, ``and``, ``or``, ``not``, ``in (…)``, ``is null``, ``+ - * /
    %`` and parentheses. Put texts in quotes, and a column name with special characters in
    backquotes.

    :param where: the expression, such as ``"label in (1, 2) and width >= 256"``.
    :param shuffle: whether each epoch has a different order; otherwise the order of the dataset.
    """

    name = "filter"

    def __init__(self, where: str, shuffle: bool = True) -> None:
        super().__init__(where=_text("where", where), shuffle=_flag("shuffle", shuffle))


class Weighted(Sampler):
    """Samples in proportion to weights.

    :param weights: a finite number of at least 0 for each sample, or the name of a column.
    :param replacement: whether a sample may occur more than once in an epoch.
    :param length: samples in an epoch; ``None`` for the number of samples in the dataset, or
        without replacement, of those with a positive weight.
    :raises SettingError: an element that is not a number, or a length below 1.
    """

    name = "weighted"

    def __init__(
        self,
        weights: Union[Sequence[float], str, Any],
        replacement: bool = True,
        length: Optional[int] = None,
    ) -> None:
        given = weights if isinstance(weights, str) else _numbers("weights", weights)
        super().__init__(
            weights=given,
            replacement=_flag("replacement", replacement),
            length=_length(length),
        )


class ClassBalanced(Sampler):
    """Every class of a column equally often, with replacement; so is every sample of a class.

    :param column: a column of integers.
    :param length: samples of an epoch; ``None``: as many as the dataset has.
    """

    name = "class_balanced"

    def __init__(self, column: str = "label", length: Optional[int] = None) -> None:
        super().__init__(column=_text("column", column), length=_length(length))


class Repeated(Sampler):
    """Repeated augmentation: a shuffled epoch in which each sample occurs several times in
    succession, as with torchvision's ``RASampler`` and timm's ``RepeatAugSampler``.

    :param repeats: how often a sample occurs in succession.
    :param length: samples in an epoch; ``None`` for the number of samples in the dataset, rounded
        down to a multiple of 256 if it is at least 256.
    """

    name = "repeated"

    def __init__(self, repeats: int = 3, length: Optional[int] = None) -> None:
        super().__init__(repeats=_whole("repeats", repeats), length=_length(length))


class AspectRatio(Sampler):
    """Every sample once, in batches of pictures with similar aspect ratios, so that little is padded.

    As ``GroupedBatchSampler`` with ``create_aspect_ratio_groups`` of torchvision's detection
    reference, but no sample is repeated or left out. Each bucket of pictures gives as many whole
    batches as possible; the remaining pictures of all buckets are batched in the order of the
    buckets.

    :param factor: the edges of the buckets are the ratios of height to width ``2**(i / factor)`` for
        i from -factor to factor, or 1 for a factor of 0; torchvision's
        ``--aspect-ratio-group-factor``.
    :param width: a column with the widths of the pictures; ``None`` reads all sizes from the files
        once, when the loader opens.
    :param height: a column with their heights.
    :param shuffle: whether each epoch has a different order; otherwise the order of the buckets.
    :raises SettingError: a factor that is not in 0..16, or only one of the columns.
    """

    name = "aspect_ratio"

    def __init__(
        self,
        factor: int = 3,
        width: Optional[str] = None,
        height: Optional[str] = None,
        shuffle: bool = True,
    ) -> None:
        try:
            number = operator.index(factor)
        except TypeError:
            number = -1
        if not 0 <= number <= 16:
            raise SettingError(
                f"factor is {factor!r}", remedy="set factor to a whole number from 0 to 16"
            )
        if (width is None) != (height is None):
            missing = "height" if height is None else "width"
            raise SettingError(
                f"{missing} is None", remedy="give both width and height, or neither"
            )
        super().__init__(
            factor=number,
            width=None if width is None else _text("width", width),
            height=None if height is None else _text("height", height),
            shuffle=_flag("shuffle", shuffle),
        )


class Mixture(Sampler):
    """Several datasets in proportion to weights: ``Loader(["a.set", "b.set"], …)``.

    The datasets are evenly interleaved: every stretch of an epoch has them in proportion, as exactly
    as whole numbers can.

    :param weights: a finite number of at least 0 for each dataset, not all of them 0.
    :param stop: when an epoch ends: ``"first_exhausted"``, when every sample of one dataset has
        occurred, so that none occurs twice; ``"all_exhausted"``, when every sample of every dataset
        has, while the others begin again; ``"size"``, after ``length`` samples.
    :param length: samples of an epoch, for ``stop="size"`` alone.
    :param shuffle: whether each epoch has the samples of a dataset in a different order;
        otherwise it is the dataset's.
    """

    name = "mixture"

    def __init__(
        self,
        weights: Union[Sequence[float], Any],
        stop: str = "first_exhausted",
        length: Optional[int] = None,
        shuffle: bool = True,
    ) -> None:
        super().__init__(
            weights=_numbers("weights", weights),
            stop=_text("stop", stop),
            length=_length(length),
            shuffle=_flag("shuffle", shuffle),
        )


def _whole(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 1 <= number < 2**64:
        raise SettingError(
            f"{name} is {value!r}", remedy=f"set {name} to a whole number of at least 1"
        )
    return number


def _length(value: Optional[int]) -> Optional[int]:
    return None if value is None else _whole("length", value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool) and value not in (0, 1):
        raise SettingError(f"{name} is {value!r}", remedy=f"set {name} to True or False")
    return bool(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{name} is {value!r}", remedy=f"set {name} to a text")
    return value


def _wholes(name: str, values: Any) -> Tuple[str, bytes]:
    import numpy as np

    array = _array(name, values, "whole numbers of at least 0")
    is_whole = array.dtype.kind in "iu" or array.size == 0
    if not is_whole or (array.size and int(array.min()) < 0):
        raise SettingError(
            f"{name} holds {_first_wrong(array, is_whole)}",
            remedy=f"set {name} to a list of whole numbers of at least 0",
        )
    return "u8", array.astype(np.dtype("<u8")).tobytes()


def _numbers(name: str, values: Any) -> Tuple[str, bytes]:
    import numpy as np

    array = _array(name, values, "numbers, or the name of a column")
    if array.dtype.kind not in "iuf" and array.size:
        wrong = next(at for at, it in enumerate(array.tolist()) if not isinstance(it, (int, float)))
        raise SettingError(
            f"{name} holds {array.tolist()[wrong]!r} at position {wrong}, which is not a number",
            remedy=f"set {name} to a list of numbers, or to the name of a column",
        )
    return "f8", array.astype(np.dtype("<f8")).tobytes()


def _array(name: str, values: Any, what: str) -> Any:
    import numpy as np

    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros((0, 0))
    if array.ndim != 1 or array.dtype.kind == "O":
        raise SettingError(f"{name} is {_short(values)}", remedy=f"set {name} to a list of {what}")
    return array


def _first_wrong(array: Any, is_whole: bool) -> str:
    if not is_whole:
        return f"values of type {array.dtype}"
    at = int((array < 0).argmax())
    return f"{int(array[at])} at position {at}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _shown(value: Given) -> str:
    if isinstance(value, tuple):
        kind, data = value
        what = "sample numbers" if kind == "u8" else "numbers"
        return f"[{len(data) // 8} {what}]"
    return repr(value)
