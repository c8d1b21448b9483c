"""Translates albumentations objects into Meetpoint transforms, by the names of their classes.

A translation gives albumentations' pixels, bit for bit; all others are refused, each with the
nearest operation, unless the caller names the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

from ._albumentations_targets import targets_of
from .errors import RecipeError

if TYPE_CHECKING:
    from ._targets import Target
    from ._transform import Transform

_NEAREST_EXACT = 6
"""OpenCV's only filter that is one of Pillow's: nearest, with the centres of pixels."""
_FILTERS = {
    0: "nearest",
    1: "bilinear",
    2: "bicubic",
    3: "box",
    4: "lanczos",
    5: "bilinear",
    6: "nearest",
}
"""OpenCV's filters, and the most similar ones of Pillow."""
_BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 4: "reflect"}
"""OpenCV's borders in torchvision's words."""

_LIKE = {
    "AdditiveNoise": "GaussianNoise",
    "Affine": "RandomAffine",
    "AutoContrast": "RandomAutocontrast",
    "CoarseDropout": "RandomErasing",
    "ColorJitter": "ColorJitter",
    "D4": "RandomHorizontalFlip, T.RandomVerticalFlip and T.RandomRotation",
    "ElasticTransform": "ElasticTransform",
    "Equalize": "RandomEqualize",
    "Erasing": "RandomErasing",
    "GaussianBlur": "GaussianBlur",
    "GaussNoise": "GaussianNoise",
    "HueSaturationValue": "ColorJitter",
    "ISONoise": "RandomSensorNoise",
    "PadIfNeeded": "Pad",
    "Perspective": "RandomPerspective",
    "PlanckianJitter": "ColorJitter",
    "RandomBrightnessContrast": "ColorJitter",
    "RandomGamma": "AdjustGamma",
    "RandomScale": "ScaleJitter",
    "RandomSizedCrop": "RandomResizedCrop",
    "Rotate": "RandomRotation",
    "SafeRotate": "RandomRotation",
    "Sharpen": "RandomAdjustSharpness",
    "ShiftScaleRotate": "RandomAffine",
}
"""Transforms without a translation, and the most similar operation for each."""


@dataclass(frozen=True)
class _Entry:
    """The translation of a class."""

    make: Callable[[Any], List["Transform"]]
    why_not: Callable[[Any], Optional[str]]
    """Why its pixels differ; None if they do not."""
    is_on_floats: bool = False
    """Whether it converts pixels to floats, after which no operation on pixels may follow."""


def is_of_albumentations(it: object) -> bool:
    """Whether an object's class is one of albumentations'."""
    return (type(it).__module__ or "").split(".")[0] == "albumentations"


def from_albumentations(
    compose: object,
    given: Dict[str, "Target"],
    nearest: Sequence[str],
    columns: Dict[str, str],
) -> Tuple[List["Transform"], Dict[str, "Target"]]:
    """The transforms that an object, or a list of them, is translated to, and the targets.

    :param given: targets of the caller.
    :param nearest: names of the classes for which the nearest operation is acceptable.
    :param columns: the columns that albumentations calls ``bboxes`` and ``keypoints``.
    """
    translation = _Translation(nearest)
    translation.add(compose)
    unknown = [name for name in nearest if name not in _ENTRIES]
    if unknown:
        raise RecipeError(
            f"nearest names {', '.join(map(repr, unknown))}, which have no nearest operation",
            remedy=f"choose from {', '.join(sorted(_ENTRIES))}",
        )
    found = targets_of(compose, columns, translation.classes, translation.refused)
    if translation.refused:
        raise RecipeError(
            "albumentations transforms that a recipe cannot hold: "
            + ", ".join(translation.refused),
            remedy=(
                "replace them by operations of meetpoint.transforms, name those whose nearest "
                "operation will do in nearest=[...], or apply them with batch_transform"
            ),
        )
    return translation.made, {**found, **given}


class _Translation:
    """The transforms translated so far."""

    def __init__(self, nearest: Sequence[str]) -> None:
        self.made: List["Transform"] = []
        self.refused: List[str] = []
        self.classes: List[str] = []
        """Names of the classes that occurred, in order."""
        self._nearest = nearest
        self._is_float = False
        self._is_tensor = False

    def add(self, it: Any) -> None:
        """Adds an object, or all objects of a list."""
        if isinstance(it, (list, tuple)):
            for item in it:  # pyright: ignore[reportUnknownVariableType]
                self.add(item)
        else:
            self.made.extend(self._translated(it))

    def _translated(self, it: Any, is_forced: bool = False) -> List["Transform"]:
        """The operations of an object; ``is_forced`` ignores the object's own probability."""
        from . import transforms as ours

        name = type(it).__name__
        if not is_of_albumentations(it):
            return self._refuse(name, "not known")
        p = 1.0 if is_forced else float(it.p)
        if name in ("Compose", "Sequential"):
            inside = [made for item in it.transforms for made in self._translated(item)]
            return _sometimes(inside, p)
        if name in ("OneOf", "OneOrOther"):
            choices = [self._as_one(self._translated(item, True)) for item in it.transforms]
            if name == "OneOrOther":
                return [ours.RandomChoice(choices, [p, 1.0 - p])]
            weights = [float(weight) for weight in it.transforms_ps]
            is_equal = len(set(weights)) == 1
            return _sometimes([ours.RandomChoice(choices, None if is_equal else weights)], p)
        self.classes.append(name)
        if name == "NoOp":
            return []
        if name == "ToTensorV2":
            if self._is_tensor:
                return self._refuse(name, "after another one; leave it out")
            self._is_tensor = True
            return [ours.ToImage()]
        entry = _ENTRIES.get(name)
        if entry is None:
            like = f"; T.{_LIKE[name]} is most like it" if name in _LIKE else ""
            return self._refuse(name, f"no operation has its pixels{like}")
        why = entry.why_not(it)
        if why is not None and name not in self._nearest:
            return self._refuse(name, why)
        if self._is_tensor or self._is_float:
            return self._refuse(name, "after a conversion to floats or a tensor; move it up")
        self._is_float = entry.is_on_floats
        if entry.is_on_floats and p < 1.0:
            return self._refuse(name, f"with p={p}, which leaves pictures of two dtypes")
        if name in _FLIPS:
            return [_FLIPS[name](p)]
        return _sometimes(entry.make(it), p)

    def _refuse(self, name: str, why: str) -> List["Transform"]:
        self.refused.append(f"{name} ({why})")
        return []

    def _as_one(self, made: List["Transform"]) -> "Transform":
        """One operation for a list of them; for an empty list, one that is never applied."""
        from . import transforms as ours

        if not made:
            return ours.RandomInvert(0.0)
        return made[0] if len(made) == 1 else ours.RandomApply(made, 1.0)


def _sometimes(made: List["Transform"], p: float) -> List["Transform"]:
    """All of them with this probability."""
    from . import transforms as ours

    return made if p >= 1.0 or not made else [ours.RandomApply(made, p)]


def _exact(_: Any) -> None:
    """The translation is exact for all arguments."""
    return None


def _of(name: str) -> Callable[..., "Transform"]:
    """A class of Meetpoint; looked up late, since its module imports this one."""

    def make(*values: Any, **keys: Any) -> "Transform":
        from . import transforms as ours

        made: "Transform" = getattr(ours, name)(*values, **keys)
        return made

    return make


_FLIPS = {"HorizontalFlip": _of("RandomHorizontalFlip"), "VerticalFlip": _of("RandomVerticalFlip")}


def _quarter_turns(_: Any) -> List["Transform"]:
    turns = [_of("RandomRotation")((angle, angle), expand=True) for angle in (90, 180, 270)]
    # No turn at all is as likely as each of the others.
    return [_of("RandomChoice")([_of("RandomInvert")(0.0), *turns])]


def _numbers(value: Any) -> List[float]:
    """A number or several, as a list."""
    several = isinstance(value, (list, tuple))
    items: List[Any] = list(value) if several else [value]  # pyright: ignore
    return [float(it) for it in items]


def _fill(it: Any) -> List[int]:
    return [int(number) for number in _numbers(it.fill)]


def _is_fixed(bounds: Any) -> bool:
    return len(set(_numbers(bounds))) == 1


def _pad(it: Any) -> List["Transform"]:
    padding: Any = it.padding
    sides = list(padding) if isinstance(padding, (list, tuple)) else padding  # pyright: ignore
    return [_of("Pad")(sides, _fill(it), _BORDERS.get(int(it.border_mode), "constant"))]


def _why_not_pad(it: Any) -> Optional[str]:
    if int(it.border_mode) not in _BORDERS:
        return "with a border_mode that no padding of ours has; use constant, edge or a mirror"
    if any(number != int(number) for number in _numbers(it.fill)):
        return "with a fill that is not whole"
    return None


def _why_not_filter(it: Any) -> Optional[str]:
    if getattr(it, "area_for_downscale", None) is not None:
        return "with area_for_downscale"
    if int(it.interpolation) != _NEAREST_EXACT:
        return (
            "OpenCV's filter, which has other bits than Pillow's and does not antialias; "
            "T.Resize has Pillow's; interpolation=cv2.INTER_NEAREST_EXACT is the same in both"
        )
    return None


def _why_not_random_resized_crop(it: Any) -> Optional[str]:
    return (
        "other sizes are drawn, and OpenCV's filter has other bits than Pillow's; "
        "T.RandomResizedCrop draws as torchvision does"
    )


def _why_not_crop(it: Any) -> Optional[str]:
    return "with pad_if_needed, which pads by a rule of its own" if it.pad_if_needed else None


def _why_not_center_crop(it: Any) -> Optional[str]:
    return (
        "it rounds an odd margin down, T.CenterCrop to the even side, so that rows or columns are "
        "one aside"
    )


def _normalize(it: Any) -> List["Transform"]:
    to_dtype = _of("ToDtype")
    mean, std = _numbers(it.mean), _numbers(it.std)
    if it.max_pixel_value in (1, 1.0):
        made = [to_dtype("float32")]
    else:
        made = [to_dtype("float32", scale=True)]
    is_identity = set(mean) == {0.0} and set(std) == {1.0}
    return made if is_identity else [*made, _of("Normalize")(mean, std)]


def _why_not_normalize(it: Any) -> Optional[str]:
    if it.normalization != "standard":
        return f"with normalization={it.normalization!r}, by numbers of the picture itself"
    if it.max_pixel_value not in (1, 1.0, 255, 255.0):
        return f"with max_pixel_value={it.max_pixel_value}; T.ToDtype scales by 255"
    if set(_numbers(it.mean)) != {0.0} or set(_numbers(it.std)) != {1.0}:
        return (
            "it multiplies by a reciprocal, so that the last bits of floats differ; T.ToDtype and "
            "T.Normalize are within 1e-6 of it"
        )
    return None


def _why_not_to_float(it: Any) -> Optional[str]:
    if it.max_value not in (None, 255, 255.0):
        return f"with max_value={it.max_value}; T.ToDtype divides by 255"
    return None


def _why_not_to_gray(it: Any) -> Optional[str]:
    if it.method != "weighted_average":
        return f"with method={it.method!r}; T.Grayscale has Pillow's weighted average"
    return "OpenCV's luma; T.Grayscale is Pillow's, within 1 of it"


def _why_not_solarize(it: Any) -> Optional[str]:
    if not _is_fixed(it.threshold_range):
        return "with a range of thresholds; T.RandomSolarize has one"
    return None


def _why_not_posterize(it: Any) -> Optional[str]:
    bits: Any = it.num_bits
    is_by_channel = any(isinstance(one, (list, tuple)) for one in bits)
    if is_by_channel or not _is_fixed(bits):
        return "with a range of bits; T.RandomPosterize has one number"
    return None


_ENTRIES: Dict[str, _Entry] = {
    "HorizontalFlip": _Entry(lambda it: [_FLIPS["HorizontalFlip"](1.0)], _exact),
    "VerticalFlip": _Entry(lambda it: [_FLIPS["VerticalFlip"](1.0)], _exact),
    "RandomRotate90": _Entry(_quarter_turns, _exact),
    "Pad": _Entry(_pad, _why_not_pad),
    "RandomCrop": _Entry(lambda it: [_of("RandomCrop")((it.height, it.width))], _why_not_crop),
    "CenterCrop": _Entry(
        lambda it: [_of("CenterCrop")((it.height, it.width))],
        lambda it: _why_not_crop(it) or _why_not_center_crop(it),
    ),
    "Resize": _Entry(
        lambda it: [_of("Resize")((it.height, it.width), _FILTERS[int(it.interpolation)])],
        _why_not_filter,
    ),
    "RandomResizedCrop": _Entry(
        lambda it: [
            _of("RandomResizedCrop")(
                it.size, it.scale, it.ratio, _FILTERS[int(it.interpolation)]
            )
        ],
        _why_not_random_resized_crop,
    ),
    "InvertImg": _Entry(lambda it: [_of("RandomInvert")(1.0)], _exact),
    "ChannelShuffle": _Entry(lambda it: [_of("RandomChannelPermutation")()], _exact),
    "Solarize": _Entry(
        lambda it: [_of("RandomSolarize")(255.0 * _numbers(it.threshold_range)[0], 1.0)],
        _why_not_solarize,
    ),
    "Posterize": _Entry(
        lambda it: [_of("RandomPosterize")(int(_numbers(it.num_bits)[0]), 1.0)],
        _why_not_posterize,
    ),
    "ToGray": _Entry(lambda it: [_of("Grayscale")(it.num_output_channels)], _why_not_to_gray),
    "Normalize": _Entry(_normalize, _why_not_normalize, is_on_floats=True),
    "ToFloat": _Entry(
        lambda it: [_of("ToDtype")("float32", scale="divide")],
        _why_not_to_float,
        is_on_floats=True,
    ),
}
"""The classes that have a translation, exact or nearest."""
