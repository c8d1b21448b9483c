"""The recipes that come with Meetpoint: published training recipes, named and versioned.

::

    from meetpoint import recipes

    for recipe in recipes.list():
        print(recipe, recipe.about)
    train = recipes.load("deit", num_classes=10)

A loader accepts such a name instead of a recipe: ``Loader("photos.set", recipe="deit@1", ...)``. A
version never changes; without one, a name denotes the latest version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, List, Sequence, cast

from . import _native
from ._compose import Compose
from ._transform import spell

__all__ = ["ShippedRecipe", "list", "load"]


@dataclass(frozen=True)
class ShippedRecipe:
    """A recipe that comes with Meetpoint."""

    name: str
    version: int
    about: str
    """The purpose."""
    source: str
    """The source of the original."""
    toml: str
    """The recipe file."""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def load(self) -> Compose:
        """The recipe."""
        return Compose.from_toml(self.toml)


def list() -> List[ShippedRecipe]:
    """All recipes, by name and version."""
    return [ShippedRecipe(**it) for it in json.loads(_native.shipped_recipes())]


def load(name: str, **changes: Any) -> Compose:
    """A recipe by its name, ``"deit"`` or ``"deit@1"``, with other values of some keys.

    :param changes: values by key, set in every operation that has the key: ``num_classes=10``.
        For one operation alone: ``**{"resize.size": 288}``; for one view, its column comes first:
        ``**{"local.random_resized_crop.size": 64, "local.count": 6}``.
    :raises RecipeError: an unknown name or version, with the known ones; a key that no
        operation has, or several operations or views with different values; a value that is not valid.
    """
    spelled = [f"{key} = {spell(_plain(value))}" for key, value in changes.items()]
    return Compose.from_toml(_native.shipped_recipe(name, spelled))


def _plain(value: Any) -> Any:
    """A value as TOML can hold it: enums by their value, tuples as lists."""
    value = getattr(value, "value", value)
    if not isinstance(value, (tuple, type([]))):
        return value
    return [_plain(item) for item in cast(Sequence[Any], value)]


def __dir__() -> List[str]:
    """The public names."""
    return sorted(__all__)
