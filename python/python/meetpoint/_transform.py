"""One operation of a recipe in Python, and its text in TOML."""

from __future__ import annotations

import difflib
import functools
import inspect
from inspect import Signature
from typing import Any, Callable, ClassVar, Dict, List, Tuple, cast

from .errors import RecipeError


class Transform:
    """One operation of a recipe. Two are equal if they have the same values."""

    _name: ClassVar[str]

    def __init_subclass__(cls, **keys: Any) -> None:
        super().__init_subclass__(**keys)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", _naming_arguments(vars(cls)["__init__"], cls))

    def __init__(self, **keys: Any) -> None:
        if "operations" in keys:
            keys["operations"] = [_contained(it) for it in keys["operations"]]
        self._keys: Dict[str, Any] = keys

    def _operations(self) -> List[Tuple[str, Dict[str, Any]]]:
        """The operations of a recipe file that correspond to it: names and keys."""
        return [(self._name, {key: it for key, it in self._keys.items() if it is not None})]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transform):
            return NotImplemented
        return self._operations() == other._operations()

    def __hash__(self) -> int:
        return hash(repr(self._operations()))

    def __repr__(self) -> str:
        keys = ", ".join(f"{key}={it!r}" for key, it in self._keys.items() if it is not None)
        return f"{type(self).__name__}({keys})"


_TORCHVISION = {
    "transforms": ("operations", "give operations"),
    "inplace": (None, "leave it out, since a recipe never changes what it was given"),
}
"""Arguments of torchvision that have another name here, or none."""


def _naming_arguments(init: Callable[..., None], cls: type) -> Callable[..., None]:
    """The same, with an error for an unknown argument that suggests the nearest one."""
    signature: Signature = vars(cls).get("__signature__") or inspect.signature(init)
    known = [name for name in signature.parameters if name != "self"]

    @functools.wraps(init)
    def checked(self: Any, *values: Any, **keys: Any) -> None:
        unknown = next((name for name in keys if name not in known), None)
        if unknown is not None and type(self) is cls:
            ours, hint = _TORCHVISION.get(unknown, (None, None))
            if hint is None or (ours is not None and ours not in known):
                near = difflib.get_close_matches(unknown, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
            raise TypeError(f"{cls.__name__} has no argument {unknown!r}; {hint}")
        init(self, *values, **keys)

    return checked


def _contained(operation: Any) -> Transform:
    """An operation inside of another: a transform, its name and keys, or a sequence of them."""
    from ._choices import RandomApply
    from ._compose import Compose
    from ._registry import from_operation

    if isinstance(operation, Transform):
        return operation
    if isinstance(operation, Compose):
        return RandomApply(operation._inside(), 1.0)
    if isinstance(operation, dict):
        return from_operation(dict(cast(Dict[str, Any], operation)))
    if isinstance(operation, (list, tuple)):
        return RandomApply(cast(List[Any], operation), 1.0)
    raise RecipeError(
        f"{operation!r} is not a transform of meetpoint.transforms, nor a list of them",
        remedy="translate those of torchvision with from_torchvision",
    )


def _inline(transform: Transform) -> str:
    """An inline table of TOML."""
    operations = transform._operations()
    if len(operations) != 1:
        raise RecipeError(
            f"{transform!r} is several operations",
            remedy="give them one by one inside of another",
        )
    name, keys = operations[0]
    members = [f"{key} = {spell(value)}" for key, value in {"name": name, **keys}.items()]
    return "{ " + ", ".join(members) + " }"


def spell(value: Any) -> str:
    """A value of a recipe as TOML."""
    if isinstance(value, Transform):
        return _inline(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        items: List[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return "[" + ", ".join(spell(item) for item in items) + "]"
    if isinstance(value, float):
        # Python and TOML write floats the same way, including inf and nan.
        return repr(value)
    return str(value)


def _quoted(text: str) -> str:
    """A text of TOML."""
    escaped = "".join(
        f"\\u{ord(c):04X}" if ord(c) < 0x20 or c in ('"', "\\", "\x7f") else c for c in text
    )
    return f'"{escaped}"'
