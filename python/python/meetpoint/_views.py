"""Views: several pictures of one sample, each with separate transforms."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Union, cast

from ._transform import Transform, spell
from .errors import RecipeError


class View:
    """One view: a column of every batch.

    :param transforms: the transforms that follow those before :class:`Views`.
    :param count: number of pictures of each sample, each with different random parameters. With
        more than
        one, the column has the shape [batch, count, ...].
    """

    def __init__(self, transforms: Sequence[Any], count: int = 1) -> None:
        from ._compose import flattened

        if isinstance(count, bool) or not isinstance(count, int):
            raise RecipeError(f"count is {count!r}", remedy="give a whole number, such as 2")
        self._transforms = flattened(transforms)
        self._count = count

    @property
    def transforms(self) -> List[Transform]:
        """Its transforms, in order."""
        return list(self._transforms)

    @property
    def count(self) -> int:
        """Pictures of each sample."""
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return (self._count, self._transforms) == (other._count, other._transforms)

    def __hash__(self) -> int:
        return hash((self._count, repr(self._transforms)))

    def __repr__(self) -> str:
        count = "" if self._count == 1 else f", count={self._count}"
        return f"View({self._transforms!r}{count})"


class Views:
    """The last element of a :class:`Compose`: several pictures of every sample, from one decode.

    Batches hold a column for each view, under its name. The random parameters of a view's
    transforms differ from picture to picture; the transforms before are applied once, for all.

    :param views: views by the names of their columns, in the order in which their pictures are
        numbered: ``{"global": View([RandomResizedCrop(224)], count=2), "local": ...}``. A list of
        transforms is a view of one picture.
    :raises RecipeError: a view that is neither.
    """

    def __init__(self, views: Mapping[str, Union[View, Sequence[Any]]]) -> None:
        self._views: Dict[str, View] = {}
        for column, view in views.items():
            if not isinstance(view, View):
                view = View(view)
            self._views[column] = view
        if not self._views:
            raise RecipeError("there are no views", remedy="give a view, or leave Views out")

    @property
    def views(self) -> Dict[str, View]:
        """The views by the names of their columns."""
        return dict(self._views)

    def _to_toml(self) -> str:
        lines: List[str] = []
        for column, view in self._views.items():
            lines.append(f"[[views]]\ncolumn = {spell(column)}\ncount = {view.count}")
            for transform in view._transforms:
                for name, keys in transform._operations():
                    lines.append(f'[[views.operations]]\nname = "{name}"')
                    lines.extend(f"{key} = {spell(value)}" for key, value in keys.items())
        return "\n".join(lines) + "\n"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Views):
            return NotImplemented
        return list(self._views.items()) == list(other._views.items())

    def __hash__(self) -> int:
        return hash(tuple(self._views.items()))

    def __repr__(self) -> str:
        return f"Views({self._views!r})"


def from_form(views: Sequence[Dict[str, Any]]) -> List[Views]:
    """The views of a recipe's canonical form; empty if it has none."""
    from ._registry import from_operation

    if not views:
        return []
    found: Dict[str, Union[View, Sequence[Any]]] = {}
    for view in views:
        operations = cast(List[Dict[str, Any]], view["operations"])
        found[view["column"]] = View([from_operation(it) for it in operations], view["count"])
    return [Views(found)]
