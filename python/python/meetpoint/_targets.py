"""Targets: columns of a dataset that move with the picture of their sample."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Sequence

from ._transform import spell
from ._values import number, whole, wholes, word


class Target:
    """What a column holds, and how it moves. Two are equal where they have the same values.

    Coordinates are those of a plane in which the pixel at column x covers x to x + 1, so a mirror
    of a picture of W columns moves x to W - x, of boxes and of keypoints.
    """

    _kind: ClassVar[str]

    def __init__(self, **keys: Any) -> None:
        self._keys: Dict[str, Any] = keys

    def _table(self) -> Dict[str, Any]:
        """Kind and keys, without those that have their defaults."""
        return {"kind": self._kind, **{key: it for key, it in self._keys.items() if it is not None}}

    def __eq__(self, other: object) -> bool:
        return self._table() == other._table() if isinstance(other, Target) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self._table()))

    def __repr__(self) -> str:
        keys = ", ".join(f"{key}={it!r}" for key, it in self._keys.items() if it is not None)
        return f"{type(self).__name__}({keys})"


class Mask(Target):
    """A number for each pixel: every element of the result is the nearest one of the mask.

    The column has a tensor [height, width] of the size of the picture, a list of such tensors with
    one for each object, or a PNG: palette indices, or grey of 1, 8 or 16 bits. In a batch it is
    [batch, height, width] of the same element type; of a list, a :class:`meetpoint.Ragged`.

    :param fill: the element outside of the picture, such as 255 to ignore it in a loss.
    :param dtype: ``"uint8"``, or ``"uint16"`` for PNGs of 16 bits; tensors keep their own.
    """

    _kind = "mask"

    def __init__(self, fill: float = 0, *, dtype: str = "uint8") -> None:
        super().__init__(fill=number("fill", fill), dtype=word(dtype))


class Saliency(Target):
    """A uint8 weight for each pixel, which is interpolated as the picture.

    :param fill: the weight outside of the picture, 0 to 255.
    """

    _kind = "saliency"

    def __init__(self, fill: int = 0) -> None:
        super().__init__(fill=whole("fill", fill))


class Boxes(Target):
    """Bounding boxes in pixels, four numbers for each object; float32 in batches.

    Their corners move through all transforms; the box around them is clamped to the picture once,
    at the end. (torchvision clamps after each transform unless ``clamping_mode`` is None.)

    :param format: ``"xyxy"``, ``"xywh"`` (as in COCO), ``"cxcywh"`` or torchvision's enum.
    :param to_format: what they are in batches; None: as in ``format``.
    :param min_size: smaller boxes, by either side, are left out; None: all are kept.
    :param min_area: boxes of a smaller area are left out; None: all are kept.
    :param filters: columns with one value for each box, such as labels, which lose those of boxes
        that are left out.
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
    """Points: column and row in pixels, or a third number as well, 0 for a point that is missing.

    They are positions in the plane of the picture, not indices of pixels: the centre of the pixel
    (x, y) is (x + 0.5, y + 0.5). torchvision mirrors keypoints by W - 1 - x, as indices; add 0.5
    to points that were meant so.

    :param swap: points that change places where the picture is mirrored, such as left and right
        hand: pairs of indices along the axis before the last.
    :param outside: what happens with a point outside of the result: ``"clamp"`` moves it to the
        border, ``"keep"`` leaves it, ``"zero"`` sets all its numbers to 0.
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
