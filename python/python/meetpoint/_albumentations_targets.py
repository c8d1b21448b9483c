"""Converts the parameters of an albumentations ``Compose`` to targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Sequence

if TYPE_CHECKING:
    from ._targets import Target

_FORMATS = {"coco": "xywh", "pascal_voc": "xyxy"}
_AREA_MIN = 1e-6
"""Albumentations drops boxes that are completely outside the picture."""
_CROPS = ("RandomCrop", "CenterCrop", "RandomResizedCrop")
_MIRRORS = ("HorizontalFlip", "VerticalFlip", "RandomRotate90")


def targets_of(
    compose: Any, columns: Dict[str, str], classes: Sequence[str], refused: List[str]
) -> Dict[str, "Target"]:
    """The targets of a ``Compose``; adds parameters without a target to ``refused``.

    :param columns: the columns that albumentations calls ``bboxes`` and ``keypoints``.
    :param classes: names of the transforms, in order.
    """
    found: Dict[str, "Target"] = {}
    processors: Dict[str, Any] = getattr(compose, "processors", {})
    if getattr(compose, "additional_targets", None):
        refused.append("additional_targets (name the columns in targets)")
    boxes = processors.get("bboxes")
    if boxes is not None:
        found.update(_boxes(boxes.params, columns["bboxes"], classes, refused))
    points = processors.get("keypoints")
    if points is not None:
        found.update(_keypoints(points.params, columns["keypoints"], classes, refused))
    return found


def _boxes(
    params: Any, column: str, classes: Sequence[str], refused: List[str]
) -> Dict[str, "Target"]:
    from ._targets import Boxes

    why: List[str] = []
    if params.format not in _FORMATS:
        why.append(f"format={params.format!r}, whose numbers are shares; pack boxes in pixels")
    if params.min_visibility:
        why.append("min_visibility; T.Boxes has min_size and min_area")
    if getattr(params, "max_accept_ratio", None) is not None:
        why.append("max_accept_ratio; T.Boxes has min_size and min_area")
    if params.min_width != params.min_height:
        why.append("min_width and min_height that differ; T.Boxes has one min_size")
    if params.clip or params.filter_invalid_bboxes:
        why.append("clip or filter_invalid_bboxes; boxes outside of their picture are damage")
    first = next((at for at, name in enumerate(classes) if name in _CROPS), len(classes))
    if params.check_each_transform and "Pad" in classes[first:]:
        why.append("Pad after a crop; boxes are clamped once, so set check_each_transform=False")
    refused.extend(f"bbox_params ({it})" for it in why)
    if why:
        return {}
    return {
        column: Boxes(
            _FORMATS[params.format],
            min_size=params.min_width or None,
            min_area=params.min_area or _AREA_MIN,
            filters=list(params.label_fields or ()),
        )
    }


def _keypoints(
    params: Any, column: str, classes: Sequence[str], refused: List[str]
) -> Dict[str, "Target"]:
    from ._targets import Keypoints

    why: List[str] = []
    if params.format != "xy":
        why.append(f"format={params.format!r}; T.Keypoints has columns and rows")
    if params.remove_invisible:
        why.append("remove_invisible; T.Keypoints keeps every point, set it to False")
    mirrors = [name for name in classes if name in _MIRRORS]
    if mirrors:
        why.append(
            f"{mirrors[0]}, which mirrors points as indices of pixels; T.Keypoints are positions, "
            "half a pixel aside: give them in targets"
        )
    refused.extend(f"keypoint_params ({it})" for it in why)
    return {} if why else {column: Keypoints(outside="keep")}
