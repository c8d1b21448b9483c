"""Targets: columns of a dataset that are transformed with the image of their sample."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Sequence

from ._transform import spell
from ._values import number, whole, wholes, word


class Target:
    """The kind of a column and how it is transformed. Two are equal if their values are.

    Coordinates are continuous: the pixel at column x covers x to x + 1, so a mirror of an image of
    W columns maps x to W - x, for boxes and keypoints.
    """

    _kind: ClassVar[str]

    def __init__(self, **keys: Any) -> None:
        self._keys: Dict[str, Any] = keys

    def _table(self) -> Dict[str, Any]:
        """Kind and keys, without keys that have their defaults."""
        return {"kind": self._kind, **{key: it for key, it in self._keys.items() if it is not None}}

    def __eq__(self, other: object) -> bool:
        return self._table() == other._table() if isinstance(other, Target) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self._table()))

    def __repr__(self) -> str:
        keys = ", ".join(f"{key}={it!r}" for key, it in self._keys.items() if it is not None)
        return f"{type(self).__name__}({keys})"


class Mask(Target):
    """A number for each pixel, resampled by nearest neighbour.

    The column has a tensor [height, width] of the size of the picture, a list of such tensors with
    one for each object, or a PNG: palette indices, or grey of 1, 8 or 16 bits. In a batch it is
    [batch, height, width] of the same element type; a list becomes a :class:`meetpoint.Ragged`.

    :param fill: the value outside the picture, such as 255 to ignore it in a loss.
    :param dtype: ``"uint8"``, or ``"uint16"`` for PNGs of 16 bits; tensors keep their own.
    """

    _kind = "mask"

    def __init__(self, fill: float = 0, *, dtype: str = "uint8") -> None:
        super().__init__(fill=number("fill", fill), dtype=word(dtype))


class Saliency(Target):
    """A uint8 weight for each pixel, interpolated like the picture.

    :param fill: the weight outside the picture, 0 to 255.
    """

    _kind = "saliency"

    def __init__(self, fill: int = 0) -> None:
        super().__init__(fill=whole("fill", fill))


class Boxes(Target):
    """Bounding boxes in pixels, four numbers for each object; float32 in batches.

    The corners of a box go through all transforms; the box around them is clamped to the picture
    once, at the end. (torchvision clamps after each transform unless ``clamping_mode`` is None.)

    :param format: ``"xyxy"``, ``"xywh"`` (as in COCO), ``"cxcywh"`` or torchvision's enum.
    :param to_format: the format in batches; None: the same as ``format``.
    :param min_size: boxes with a smaller side are dropped; None: all are kept.
    :param min_area: boxes with a smaller area are dropped; None: all are kept.
    :param filters: columns with one value for each box, such as labels, from which the values of
        dropped boxes are removed.
    """

    _kind = "boxes"

    def __init__(
        self,
        format: object,
        *,
        to_format: object = None,
        min_size: Optional[float] = None,
        min_area: Optional[float] = None,
        filters: Sequence[str] = (),
    ) -> None:
        super().__init__(
            format=_format(format),
            to_format=_format(to_format),
            min_size=None if min_size is None else number("min_size", min_size),
            min_area=None if min_area is None else number("min_area", min_area),
            filters=[filters] if isinstance(filters, str) else [str(it) for it in filters],
        )


class Keypoints(Target):
    """Points: column, row, and optionally a third number, which is 0 if the point is missing.

    Coordinates are continuous: the centre of the pixel (x, y) is (x + 0.5, y + 0.5). torchvision
    treats keypoints as pixel indices and mirrors x to W - 1 - x; add 0.5 to such keypoints.

    :param swap: points that are swapped if the picture is mirrored, such as left and right hand:
        pairs of indices along the axis before the last.
    :param outside: how a point outside the result is handled: ``"clamp"`` moves it to the border,
        ``"keep"`` leaves it unchanged, ``"zero"`` sets all its numbers to 0.
    """

    _kind = "keypoints"

    def __init__(
        self, swap: Sequence[Sequence[int]] = (), *, outside: str = "clamp"
    ) -> None:
        super().__init__(swap=[wholes("swap", pair) for pair in swap], outside=word(outside))


KINDS = {it._kind: it for it in (Mask, Saliency, Boxes, Keypoints)}


def from_table(keys: Dict[str, Any]) -> Target:
    """The target that a table of a recipe describes."""
    keys = dict(keys)
    return KINDS[keys.pop("kind")](**keys)


def to_toml(targets: Dict[str, Target]) -> str:
    """The tables of a recipe."""
    lines: List[str] = []
    for column, target in targets.items():
        lines.append(f"[targets.{spell(column)}]")
        lines.extend(f"{key} = {spell(value)}" for key, value in target._table().items())
    return "".join(f"{line}\n" for line in lines)


def _format(format: object) -> Optional[str]:
    name = word(format)
    return None if name is None else name.lower()
