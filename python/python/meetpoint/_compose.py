"""A recipe: operations in order, views, and the targets that are transformed with the image."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._registry import decoders, from_operation
from ._targets import Target, from_table, to_toml as targets_to_toml
from ._transform import Transform, spell
from ._views import View, Views, from_form
from .errors import RecipeError


class Compose:
    """A recipe: a list of operations, checked at once. Inside another recipe it is a sequence.

    The last element may be :class:`Views`: several pictures of every sample.

    :param targets: columns of the dataset that are transformed with the image, by name: ``{"boxes":
        Boxes("xywh", min_size=1, filters=["category"]), "mask": Mask(255)}``.
    :raises RecipeError: an invalid operation, key or order, or a target that an operation cannot
        transform.
    """

    def __init__(
        self,
        transforms: Sequence[Union[Transform, Compose, Views]],
        targets: Optional[Mapping[str, Target]] = None,
    ) -> None:
        if isinstance(transforms, (Transform, Compose, Views)):
            raise RecipeError(
                f"Compose() takes a list of transforms, and {transforms!r} is a single one",
                remedy="put it in brackets, as in Compose([Resize(256), CenterCrop(224)])",
            )
        given = list(transforms)
        self._views: Optional[Views] = None
        last = given[-1] if given else None
        if isinstance(last, Views):
            self._views = last
            given.pop()
        flat = flattened(given)
        for column, target in (targets or {}).items():
            if not isinstance(target, Target):
                raise RecipeError(
                    f"the target {column!r} is {target!r}",
                    remedy="give Mask(), Saliency(), Boxes(\"xyxy\") or Keypoints()",
                )
        self._targets = dict(targets or {})
        self._transforms: List[Transform] = flat
        operations: List[Tuple[str, Dict[str, Any]]] = []
        made_of: List[Tuple[int, str]] = []
        for position, transform in enumerate(flat, 1):
            for operation in transform._operations():
                operations.append(operation)
                made_of.append((position, type(transform).__name__))
        if not operations or operations[0][0] not in decoders():
            operations.insert(0, ("decode", {}))
            made_of.insert(0, (0, "Decode"))
        views = "" if self._views is None else self._views._to_toml()
        text = _to_toml(operations) + views + targets_to_toml(self._targets)
        self._described = _native.describe_recipe(text, made_of)

    def _inside(self) -> List[Transform]:
        """Its operations, as a sequence inside another recipe."""
        if self._targets:
            raise RecipeError(
                f"{self!r} inside another Compose has separate targets",
                remedy="give the targets to the outermost Compose",
            )
        if self._views is not None:
            raise RecipeError(
                f"{self!r} inside of another Compose has views",
                remedy="give the views to the outermost Compose, as its last element",
            )
        return self._transforms

    @classmethod
    def from_toml(cls, text: str) -> Compose:
        """A recipe file's text. ``Compose.from_toml(it.to_toml()) == it`` for every recipe."""
        described = _native.describe_recipe(text)
        form: Any = json.loads(described["form"])
        if described["form"].startswith("["):
            # Without views and targets, the form is the list of the operations alone.
            form = {"operations": form}
        operations: List[Dict[str, Any]] = form["operations"]
        targets: Dict[str, Dict[str, Any]] = form.get("targets", {})
        return cls(
            [*(from_operation(it) for it in operations), *from_form(form.get("views", []))],
            {column: from_table(keys) for column, keys in targets.items()},
        )

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> Compose:
        """Reads a recipe file, or the recipe of this name that comes with Meetpoint.

        A path with a separator, or one that ends in ``.toml``, is always a file;
        :func:`meetpoint.recipes.list` has the names.

        :raises RecipeError: the file cannot be read, it is not a recipe, or both a file and a
            shipped recipe have this name.
        """
        return cls.from_toml(_native.load_recipe(path))

    def to_toml(self) -> str:
        """The text of a recipe file, with all defaults written out."""
        return self._described["toml"]

    @property
    def targets(self) -> Dict[str, Target]:
        """The columns that are transformed with the image."""
        return dict(self._targets)

    @property
    def views(self) -> Dict[str, View]:
        """The views by the names of their columns; empty if the recipe has no views."""
        return {} if self._views is None else self._views.views

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal digits: equal for equal recipes.

        Files that it needs count by their contents instead of their paths; a file that cannot be
        read, by its path.
        """
        return self._described["hash"]

    @property
    def is_deterministic(self) -> bool:
        """Whether it has no random parameters."""
        return self._described["is_deterministic"]

    @property
    def output(self) -> Optional[_native.Output]:
        """Shape, dtype and layout of one sample; ``None`` if the shape depends on the image, and
        for a recipe with views, whose shapes are in :attr:`outputs`."""
        return self.outputs["image"] if self._views is None else None

    @property
    def outputs(self) -> Dict[str, Optional[_native.Output]]:
        """As :attr:`output`, by column: of ``"image"``, or of each view."""
        return self._described["outputs"]

    def __iter__(self) -> Iterator[Union[Transform, Views]]:
        return iter([*self._transforms, *self._last()])

    def __len__(self) -> int:
        return len(self._transforms) + len(self._last())

    def _last(self) -> List[Views]:
        return [] if self._views is None else [self._views]

    def __eq__(self, other: object) -> bool:
        return self.hash == other.hash if isinstance(other, Compose) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        targets = f", targets={self._targets!r}" if self._targets else ""
        return f"Compose({list(self)!r}{targets})"

    def __reduce__(self) -> Tuple[Any, Tuple[str]]:
        return (Compose.from_toml, (self.to_toml(),))


def flattened(transforms: Sequence[Any]) -> List[Transform]:
    """Transforms in order, including those of contained recipes.

    :raises RecipeError: an object that is not a transform.
    """
    flat: List[Any] = []
    for transform in transforms:
        flat.extend(transform._inside() if isinstance(transform, Compose) else [transform])
    for transform in flat:
        if isinstance(transform, Views):
            raise RecipeError(
                f"{transform!r} is not the last element of the outermost Compose",
                remedy="move the transforms after it into each view",
            )
        if not isinstance(transform, Transform):
            raise RecipeError(
                f"{transform!r} is not a transform of meetpoint.transforms",
                remedy="from_torchvision translates those of torchvision",
            )
    return flat


def _to_toml(operations: List[Tuple[str, Dict[str, Any]]]) -> str:
    lines: List[str] = []
    for name, keys in operations:
        lines.append(f'[[operation]]\nname = "{name}"')
        lines.extend(f"{key} = {spell(value)}" for key, value in keys.items())
    return "\n".join(lines) + "\n"
