"""Translates the torchvision objects that move, pad, crop and resize a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union, cast

if TYPE_CHECKING:
    from .transforms import Transform

GEOMETRY = (
    "Resize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomAffine",
    "RandomPerspective",
    "Pad",
    "RandomCrop",
    "RandomIoUCrop",
    "RandomZoomOut",
    "RandomResize",
    "RandomShortestSize",
    "ScaleJitter",
    "FiveCrop",
    "TenCrop",
)


def refusal(it: Any, name: str) -> Optional[str]:
    """Why an object has no translation."""
    if isinstance(getattr(it, "fill", None), dict):
        return "with a fill for each type; give a number or a tuple"
    if name == "Resize" and it.size is None:
        return "without a size"
    if name in ("Pad", "RandomCrop") and any(number < 0 for number in _flat(it.padding)):
        return "with a negative padding; use a crop"
    is_v2 = type(it).__module__.startswith("torchvision.transforms.v2")
    if name == "RandomCrop" and not is_v2 and it.padding and it.pad_if_needed:
        if it.padding_mode != "constant":
            return "of the first version, which pads twice; use that of torchvision.transforms.v2"
    return None


def translated(it: Any, name: str) -> "Transform":
    """The transform to which an object is translated. antialias is ignored: PIL images always
    are."""
    from . import transforms as ours

    interpolation = getattr(it, "interpolation", None)
    if name == "Resize":
        max_size = getattr(it, "max_size", None)
        return ours.Resize(it.size, interpolation or "bilinear", max_size)
    if name == "RandomResizedCrop":
        return ours.RandomResizedCrop(it.size, it.scale, it.ratio, interpolation or "bilinear")
    if name == "RandomRotation":
        filling, center = fill_of(it), it.center
        return ours.RandomRotation(it.degrees, interpolation or "nearest", it.expand, center, filling)
    if name == "RandomAffine":
        return ours.RandomAffine(
            it.degrees,
            it.translate,
            it.scale,
            it.shear,
            interpolation or "nearest",
            fill_of(it),
            it.center,
        )
    if name == "RandomPerspective":
        scale = it.distortion_scale
        return ours.RandomPerspective(scale, it.p, interpolation or "bilinear", fill_of(it))
    if name == "Pad":
        return ours.Pad(_four(it.padding, False), fill_of(it), it.padding_mode)
    if name == "RandomCrop":
        # The second version keeps left, right, top, bottom; the first keeps its argument.
        is_v2 = type(it).__module__.startswith("torchvision.transforms.v2")
        padding = None if it.padding is None else _four(it.padding, is_v2)
        return ours.RandomCrop(it.size, padding, it.pad_if_needed, fill_of(it), it.padding_mode)
    if name == "RandomZoomOut":
        return ours.RandomZoomOut(fill_of(it), it.side_range, it.p)
    if name == "RandomIoUCrop":
        return ours.RandomIoUCrop(
            it.min_scale,
            it.max_scale,
            it.min_aspect_ratio,
            it.max_aspect_ratio,
            it.options,
            it.trials,
        )
    if name == "RandomResize":
        return ours.RandomResize(it.min_size, it.max_size, interpolation or "bilinear")
    if name == "RandomShortestSize":
        return ours.RandomShortestSize(it.min_size, it.max_size, interpolation or "bilinear")
    if name == "FiveCrop":
        return ours.FiveCrop(it.size)
    if name == "TenCrop":
        return ours.TenCrop(it.size, it.vertical_flip)
    assert name == "ScaleJitter", name
    return ours.ScaleJitter(it.target_size, it.scale_range, interpolation or "bilinear")


def _flat(numbers: Any) -> List[int]:
    if numbers is None:
        return []
    if isinstance(numbers, (list, tuple)):
        return [int(it) for it in cast("Sequence[Any]", numbers)]
    return [int(numbers)]


def _four(padding: Any, is_by_axis: bool) -> Union[int, List[int]]:
    """Left, top, right, bottom, or fewer numbers; by axis they are left, right, top, bottom."""
    numbers = _flat(padding)
    if is_by_axis and len(numbers) == 4:
        left, right, top, bottom = numbers
        return [left, top, right, bottom]
    return numbers[0] if len(numbers) == 1 else numbers


def fill_of(it: Any) -> Union[int, List[int]]:
    """The colour outside a picture, rounded towards 0 as torchvision does for PIL images."""
    fill = it.fill
    if fill is None:
        return 0
    return _flat(fill) if isinstance(fill, (list, tuple)) else int(fill)
