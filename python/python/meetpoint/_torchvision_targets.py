"""Torchvision's classes for boxes and keypoints, which targets of a recipe replace."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ._targets import Boxes, Keypoints, Target

ON_TARGETS = {
    "ClampBoundingBoxes": "boxes of T.Boxes are always clamped, once and at the end",
    "ClampKeyPoints": 'T.Keypoints with outside="clamp" does it',
    "ConvertBoundingBoxFormat": "to_format of T.Boxes does it",
    "SanitizeBoundingBoxes": "min_size, min_area and filters of T.Boxes do it",
    "SanitizeKeyPoints": 'T.Keypoints with outside="zero" marks the points that it removes',
    "SetClampingMode": "boxes of T.Boxes are clamped once, at the end",
}
"""Classes that a target replaces, and the option that does."""


def refusal(it: Any, name: str, targets: Mapping[str, Target]) -> Optional[str]:
    """Why a transform of targets cannot be translated together with the given targets."""
    boxes = [target for target in targets.values() if isinstance(target, Boxes)]
    points = [target for target in targets.values() if isinstance(target, Keypoints)]
    if name == "SanitizeKeyPoints":
        return f"removes points; {ON_TARGETS[name]}"
    if name == "ClampKeyPoints":
        outside = [target._keys["outside"] for target in points]
        return None if outside and set(outside) == {"clamp"} else ON_TARGETS[name]
    if not boxes:
        return f"{ON_TARGETS[name]}; give targets={{...}}"
    if name == "ConvertBoundingBoxFormat":
        wanted = Boxes(it.format)._keys["format"]
        formats = {target._keys["to_format"] or target._keys["format"] for target in boxes}
        return None if formats == {wanted} else f'set to_format="{wanted}" of T.Boxes'
    if name == "SanitizeBoundingBoxes":
        return _of_sanitizing(it, boxes)
    mode = it.clamping_mode
    if mode is None:
        return "without clamping, but boxes of T.Boxes are always clamped"
    return None


def _of_sanitizing(it: Any, boxes: "list[Boxes]") -> Optional[str]:
    for target in boxes:
        size = target._keys["min_size"] or 0.0
        area = target._keys["min_area"] or 0.0
        # Sides of at least min_size have an area of at least its square.
        drops_by_area = max(area, size * size) >= it.min_area and area <= it.min_area
        if size != it.min_size or not drops_by_area:
            return f"set min_size={it.min_size:g}, min_area={it.min_area:g} of T.Boxes"
    return None
