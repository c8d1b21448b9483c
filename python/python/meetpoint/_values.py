"""Arguments of transforms as the values of a recipe: numbers, lists of them, sizes and words."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Iterable, List, Mapping, Optional, Sequence, SupportsFloat, Union, cast

from .errors import RecipeError

Numbers = Union[float, Sequence[float]]
Wholes = Union[int, Sequence[int]]

_PILLOW = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def number(key: str, value: object) -> float:
    """A number of Python or NumPy, or a tensor of one number."""
    if isinstance(value, SupportsFloat):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass  # An array of several numbers, or a whole number beyond the largest float.
    raise _refused(key, value, "a number")


def whole(key: str, value: object) -> int:
    """A whole number, of Python or NumPy; a float only if it is whole."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and float(value).is_integer():
        return int(float(value))
    raise _refused(key, value, "a whole number")


def floats(key: str, value: object) -> List[float]:
    """A sequence of numbers."""
    return [number(key, item) for item in _items(key, value, "a sequence of numbers")]


def numbers(key: str, value: object) -> Union[float, List[float]]:
    """A number or a sequence of them."""
    if isinstance(value, Real):
        return float(value)
    return [number(key, item) for item in _items(key, value, "a number or a sequence of numbers")]


def wholes(key: str, value: object) -> Union[int, List[int]]:
    """A whole number or a sequence of them."""
    if isinstance(value, Real):
        return whole(key, value)
    expected = "a whole number or a sequence of whole numbers"
    return [whole(key, item) for item in _items(key, value, expected)]


def both_sides(key: str, value: object) -> Union[int, List[int]]:
    """A size; ``[side]`` is a square, as in torchvision."""
    sides = wholes(key, value)
    return sides * 2 if isinstance(sides, list) and len(sides) == 1 else sides


def ends(key: str, value: object) -> List[float]:
    """The bounds of an interval; a number is both."""
    bounds = numbers(key, value)
    return bounds if isinstance(bounds, list) else [bounds] * 2


def colour(fill: object) -> Union[None, int, List[int]]:
    """A colour, for all channels or for each; None: the default of the operation."""
    return None if fill is None else wholes("fill", fill)


def word(value: object) -> Optional[str]:
    """The name of a filter or a policy, as a text, torchvision's enum or Pillow's number."""
    if value is None:
        return None
    value = getattr(value, "value", value)
    return _PILLOW.get(value, str(value)) if isinstance(value, int) else str(value)


def _items(key: str, value: object, expected: str) -> List[object]:
    # The letters of a text and the keys of a dict are not numbers that somebody gave.
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
        raise _refused(key, cast("Any", value), expected)
    return list(cast("Iterable[object]", value))


def _refused(key: str, value: object, expected: str) -> RecipeError:
    message = f"{key} is {value!r}, not {expected}"
    return RecipeError(message, cause="recipe_value", remedy=f"set {key} to {expected}")
