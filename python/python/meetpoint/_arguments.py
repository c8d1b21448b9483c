"""The arguments of a loader, checked before anything is opened, and torch's names for them."""

from __future__ import annotations

import difflib
import inspect
import operator
import os
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Union, cast

from ._albumentations import is_of_albumentations
from ._torchvision import is_of_torchvision
from .errors import SettingError
from .samplers import Sampler, Sequential, Shuffled
from .transforms import Compose, Transform, from_albumentations, from_torchvision

Recipe = Union[Compose, Sequence[Transform], str, "os.PathLike[str]", Any]

U32 = 2**32 - 1
U64 = 2**64 - 1

_REFUSED = {
    "batch_sampler": "batches follow from seed, epoch and batch_size, so that both ends know them",
    "collate_fn": "batches are made in native memory without Python; set collate for pictures of different "
    "sizes, and change batches with batch_transform",
    "worker_init_fn": "workers are native threads that run no Python, so there is nothing to set "
    "up in them; the argument seed determines the random parameters",
    "multiprocessing_context": "there are no worker processes; workers are native threads",
    "generator": "random parameters follow from (seed, epoch, sample, operation) alone; use the argument seed",
    "transform": "what is done to a picture is the argument recipe; "
    "meetpoint.from_torchvision translates torchvision's transforms",
    "transforms": "what is done to a picture is the argument recipe; "
    "meetpoint.from_torchvision translates torchvision's transforms",
    "target_transform": "labels come as they are packed; change them with batch_transform",
    "pin_memory_device": "batches are in pageable memory; move them with tensor.to(device)",
}

# Arguments without effect, and the values that are accepted for them.
_AS_IT_IS: Dict[str, Any] = {
    "pin_memory": (False,),
    "timeout": (0,),
    "persistent_workers": (False, True),
    "in_order": (False, True),
    "pin_memory_device": ("",),
    "batch_sampler": (None,),
    "collate_fn": (None,),
    "worker_init_fn": (None,),
    "multiprocessing_context": (None,),
    "generator": (None,),
}

_VALUES = {
    "pin_memory": 'batches are in pageable memory, and only output="torch" can pin them; leave it '
    "out",
    "timeout": "every wait is bounded already, and ends with the host preparing the batch itself; "
    "stall_timeout says when a device is declared lost",
}


def either(**names: Optional[int]) -> Optional[int]:
    """The value of two names for one argument: torch's, then ours.

    :raises SettingError: both were given.
    """
    (theirs, other), (ours, given) = names.items()
    if other is not None and given is not None:
        raise SettingError(f"{theirs} and {ours} mean the same", remedy="give one of them")
    return given if other is None else other


def _suggestion(name: str) -> str:
    """The argument of Loader that was probably meant, as the end of a sentence."""
    from ._loader import Loader

    known = [it for it in inspect.signature(vars(Loader)["__init__"]).parameters if it != "self"]
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def refuse_unknown(names: Dict[str, Any]) -> None:
    """Refuses unknown arguments, each with an explanation."""
    for name, value in names.items():
        if name in _AS_IT_IS and any(value is it or value == it for it in _AS_IT_IS[name]):
            continue
        why = _VALUES.get(name) or _REFUSED.get(name)
        if why is None and name in _AS_IT_IS:
            why = f"set it to {' or '.join(map(repr, _AS_IT_IS[name]))}"
        if why is None:
            raise TypeError(f"Loader has no argument {name!r}{_suggestion(name)}")
        raise TypeError(f"Loader does not take {name}={value!r}: {why}")


def whole(name: str, value: Any, most: int = U32, least: int = 0) -> int:
    """A whole number; also accepts those of NumPy and torch, but no boolean."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise SettingError(
            f"{name} is {value!r}", remedy=f"set {name} to a whole number from {least} to {most}"
        )
    return number


def whole_or_none(name: str, value: Any, most: int = U32, least: int = 0) -> Optional[int]:
    """As :func:`whole`, or ``None``."""
    return None if value is None else whole(name, value, most, least)


def number(name: str, value: Any, least: float, most: float) -> float:
    """A number in a range."""
    if isinstance(value, (str, bytes)) or not _is_number(value) or not least <= value <= most:
        raise SettingError(
            f"{name} is {value!r}", remedy=f"set {name} to a number from {least} to {most}"
        )
    return float(value)


def seconds(name: str, value: Any) -> float:
    """A number; the code that waits checks whether it is a valid time."""
    if isinstance(value, (str, bytes)) or not _is_number(value):
        raise SettingError(f"{name} is {value!r}", remedy=f"set {name} to a number of seconds")
    return float(value)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def flag(name: str, value: Any) -> bool:
    """A boolean; also accepts 0 and 1."""
    try:
        number = operator.index(value) if not hasattr(value, "dtype") else value.item()
    except (AttributeError, TypeError, ValueError):
        number = None
    if number not in (0, 1):
        raise SettingError(f"{name} is {value!r}", remedy=f"set {name} to True or False")
    return bool(number)


def items(name: str, value: Any, what: str) -> List[Any]:
    """A list of something, given as any sequence."""
    try:
        return list(value)
    except TypeError:
        raise SettingError(f"{name} is {value!r}", remedy=f"set {name} to a list of {what}") from None


def text(name: str, value: Any) -> str:
    """A string without surrogates."""
    if not isinstance(value, str) or any(0xD800 <= ord(letter) < 0xE000 for letter in value):
        raise SettingError(f"{name} is {value!r}", remedy=f"set {name} to a text")
    return value


def text_or_none(name: str, value: Any) -> Optional[str]:
    """As :func:`text`, or ``None``."""
    return None if value is None else text(name, value)


def function_or_none(name: str, value: Any) -> Optional[Callable[[Any], Any]]:
    """A callable, or ``None``."""
    if value is not None and not callable(value):
        raise SettingError(
            f"{name} is {value!r}", remedy=f"set {name} to a function of a batch, or leave it out"
        )
    function: Optional[Callable[[Any], Any]] = value
    return function


def path(name: str, value: Any) -> str:
    """A path in the file system."""
    try:
        given = os.fsdecode(value)
        os.fsencode(given)
    except (TypeError, UnicodeError):
        given = "\0"
    if not given or "\0" in given:
        raise SettingError(f"{name} is {value!r}", remedy=f"set {name} to a path")
    return given


def paths(name: str, value: Any) -> List[str]:
    """A path in the file system, or a list of them."""
    if isinstance(value, (str, bytes, os.PathLike)) or not isinstance(value, Iterable):
        return [path(name, value)]
    given = [path(name, each) for each in cast(Iterable[object], value)]
    if not given:
        raise SettingError(f"{name} is an empty list", remedy=f"set {name} to one path or more")
    return given


def path_or_none(name: str, value: Any) -> Optional[str]:
    """As :func:`path`, or ``None``."""
    return None if value is None else path(name, value)


def sampler(given: Any, shuffle: bool) -> Sampler:
    """The sampler; ``shuffle`` selects one.

    :raises SettingError: both were given.
    :raises TypeError: the sampler belongs to another library.
    """
    if given is None:
        return Shuffled() if shuffle else Sequential()
    if not isinstance(given, Sampler):
        raise TypeError(
            f"Loader does not take sampler={given!r}: samples follow from seed, epoch and "
            "position, so that both ends know them; use one of meetpoint.samplers, and rank and "
            "world_size in place of a DistributedSampler"
        )
    if shuffle:
        raise SettingError(
            "shuffle and sampler both set the order",
            remedy="leave shuffle out, and set the shuffle of the sampler where it has one",
        )
    return given


def compose(recipe: Recipe) -> Compose:
    """The recipe, from any of the accepted forms."""
    if isinstance(recipe, Compose):
        return recipe
    if isinstance(recipe, (str, os.PathLike)):
        file: Union[str, os.PathLike[str]] = recipe  # pyright: ignore[reportUnknownVariableType]
        return Compose.load(file)
    if is_of_torchvision(recipe):
        return from_torchvision(recipe)
    if is_of_albumentations(recipe):
        return from_albumentations(recipe)
    if isinstance(recipe, (list, tuple)):
        parts: List[Any] = list(recipe)  # pyright: ignore[reportUnknownArgumentType]
        if any(is_of_torchvision(part) for part in parts):
            return from_torchvision(parts)
        return Compose(parts)
    raise SettingError(
        f"recipe is {recipe!r}",
        remedy=(
            "set recipe to a meetpoint.transforms.Compose, a list of transforms, "
            "torchvision transforms, the path of a recipe file, or the name of a recipe of "
            "meetpoint.recipes"
        ),
    )


def column_names(columns: Optional[Sequence[str]]) -> Optional[List[str]]:
    """The requested columns; whether the dataset has them is checked when it is open."""
    if columns is None:
        return None
    names = [columns] if isinstance(columns, str) else items("columns", columns, "names")
    names = [text("columns", name) for name in names]
    if not names:
        raise SettingError("columns is empty", remedy="give at least one name, such as 'image'")
    return names
