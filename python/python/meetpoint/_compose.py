"""A recipe: operations in order, and the targets that are transformed with the image."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._registry import from_operation
from ._targets import Target, from_table, to_toml as targets_to_toml
from ._transform import Transform, spell
from .errors import RecipeError


class Compose:
    """A recipe: a list of operations, checked at once. Inside another recipe it is a sequence.

    :param targets: columns of the dataset that are transformed with the image, by name: ``{"boxes":
        Boxes("xywh", min_size=1, filters=["category"]), "mask": Mask(255)}``.
    :raises RecipeError: an invalid operation, key or order, or a target that an operation cannot
        transform.
    """

    def __init__(
        self,
        transforms: Sequence[Union[Transform, Compose]],
        targets: Optional[Mapping[str, Target]] = None,
    ) -> None:
        flat: List[Any] = []
        for transform in transforms:
            flat.extend(transform._inside() if isinstance(transform, Compose) else [transform])
        for transform in flat:
            if not isinstance(transform, Transform):
                raise RecipeError(
                    f"{transform!r} is not a transform of meetpoint.transforms",
                    remedy="from_torchvision translates those of torchvision",
                )
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
        if not operations or operations[0][0] != "decode":
            operations.insert(0, ("decode", {}))
            made_of.insert(0, (0, "Decode"))
        text = _to_toml(operations) + targets_to_toml(self._targets)
        self._described = _native.describe_recipe(text, made_of)

    def _inside(self) -> List[Transform]:
        """Its operations, as a sequence inside of another recipe."""
        if self._targets:
            raise RecipeError(
                f"{self!r} inside of another Compose has targets of its own",
                remedy="give the targets to the outermost Compose",
            )
        return self._transforms

    @classmethod
    def from_toml(cls, text: str) -> Compose:
        """A recipe file's text. ``Compose.from_toml(it.to_toml()) == it`` for every recipe."""
        described = _native.describe_recipe(text)
        form: Any = json.loads(described["canonical"])
        if described["canonical"].startswith("["):
            # Without targets, the form is the list of the operations alone.
            form = {"operations": form, "targets": {}}
        operations: List[Dict[str, Any]] = form["operations"]
        targets: Dict[str, Dict[str, Any]] = form["targets"]
        return cls(
            [from_operation(it) for it in operations],
            {column: from_table(keys) for column, keys in targets.items()},
        )

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> Compose:
        """Reads a recipe file.

        :raises RecipeError: the file cannot be read, or it is not a recipe.
        """
        try:
            text = _native.read_text(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise RecipeError(
                f"recipe {os.fspath(path)!r} cannot be read ({why})",
                remedy="give the path of a recipe file, or transforms",
                file=os.fsdecode(path),
            ) from error
        return cls.from_toml(text)

    def to_toml(self) -> str:
        """The text of a recipe file, with all defaults written out."""
        return self._described["toml"]

    @property
    def targets(self) -> Dict[str, Target]:
        """The columns that are transformed with the image."""
        return dict(self._targets)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal digits: equal for equal recipes."""
        return self._described["hash"]

    @property
    def is_deterministic(self) -> bool:
        """Whether it has no random parameters."""
        return self._described["is_deterministic"]

    @property
    def output(self) -> Optional[_native.Output]:
        """Shape, dtype and layout of one sample; ``None`` if the shape depends on the image."""
        return self._described["output"]

    def __iter__(self) -> Iterator[Transform]:
        return iter(self._transforms)

    def __len__(self) -> int:
        return len(self._transforms)

    def __eq__(self, other: object) -> bool:
        return self.hash == other.hash if isinstance(other, Compose) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        targets = f", targets={self._targets!r}" if self._targets else ""
        return f"Compose({self._transforms!r}{targets})"

    def __reduce__(self) -> Tuple[Any, Tuple[str]]:
        return (Compose.from_toml, (self.to_toml(),))


def _to_toml(operations: List[Tuple[str, Dict[str, Any]]]) -> str:
    lines: List[str] = []
    for name, keys in operations:
        lines.append(f'[[operation]]\nname = "{name}"')
        lines.extend(f"{key} = {spell(value)}" for key, value in keys.items())
    return "\n".join(lines) + "\n"
