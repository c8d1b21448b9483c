"""Operations of recipes, with the names of ``torchvision.transforms.v2``.

A :class:`Compose` is data: it can be compared, printed and written as TOML. The host and devices
execute it with the same result, bit for bit. ``from_torchvision`` creates one from torchvision's
own objects. ``meetpoint recipe schema`` lists all operations with their keys. For an operation
without a class in this module, a class is created from its declaration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Sequence, Type

from ._albumentations import from_albumentations as _from_albumentations
from ._batches import CutMix, MixUp, OneHot, TimmMixup
from ._choices import RandomApply, RandomChoice, RandomOrder
from ._colours import (
    AdjustGamma,
    ColorJitter,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
    SigmoidContrast,
)
from ._compose import Compose
from ._crops import (
    CenterCrop,
    Decode,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from ._geometry import (
    ElasticTransform,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomIoUCrop,
    RandomPerspective,
    RandomResize,
    RandomRotation,
    RandomShortestSize,
    RandomZoomOut,
    ScaleJitter,
)
from ._policies import (
    AugMix,
    AutoAugment,
    GaussianBlur,
    GaussianNoise,
    PillowGaussianBlur,
    RandAugment,
    RandomSensorNoise,
    ThreeAugment,
    TimmRandAugment,
    TrivialAugmentWide,
)
from ._registry import CLASSES as _CLASSES, declared as _declared
from ._targets import Boxes, Keypoints, Mask, Saliency, Target
from ._tensors import Layout, Normalize, PILToTensor, ToDtype, ToImage, ToTensor
from ._torchvision import from_torchvision as _translate
from ._transform import Transform

__all__ = [
    "AdjustGamma",
    "AugMix",
    "AutoAugment",
    "Boxes",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "CutMix",
    "Decode",
    "ElasticTransform",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "Keypoints",
    "Layout",
    "Mask",
    "MixUp",
    "Normalize",
    "OneHot",
    "PILToTensor",
    "Pad",
    "PillowGaussianBlur",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomIoUCrop",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSensorNoise",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "Saliency",
    "ScaleJitter",
    "SigmoidContrast",
    "Target",
    "ThreeAugment",
    "TimmMixup",
    "TimmRandAugment",
    "ToDtype",
    "ToImage",
    "ToTensor",
    "Transform",
    "TrivialAugmentWide",
    "from_albumentations",
    "from_torchvision",
]


def __dir__() -> "list[str]":
    """The public names; imports for internal use are not completed."""
    return sorted({*__all__, *_declared()})


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Type[Transform]:
        """The class of an operation that has none here."""
        found = None if name.startswith("_") else _declared().get(name)
        if found is None:
            known = sorted({it.__name__ for it in _CLASSES.values()} | set(_declared()))
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}; transforms are {', '.join(known)}"
            )
        return found


def from_albumentations(
    compose: object,
    targets: Optional[Mapping[str, Target]] = None,
    *,
    nearest: Sequence[str] = (),
    bboxes: str = "bboxes",
    keypoints: str = "keypoints",
) -> Compose:
    """Translates an ``albumentations.Compose``, without importing albumentations.

    For the same random parameters, the result has the pixels of albumentations, bit for bit. A
    :class:`RecipeError` names every transform for which this is impossible, with the nearest
    operation. ``bbox_params`` and ``keypoint_params`` become targets; boxes equal those of
    albumentations up to the rounding of float32.

    :param targets: those of :class:`Compose`, such as masks.
    :param nearest: names of classes, such as ``"Normalize"``, for which the nearest operation is
        used.
    :param bboxes: the column of the boxes of ``bbox_params``.
    :param keypoints: the column of the points of ``keypoint_params``.
    """
    columns = {"bboxes": bboxes, "keypoints": keypoints}
    return Compose(*_from_albumentations(compose, dict(targets or {}), nearest, columns))


def from_torchvision(
    compose: object, targets: Optional[Mapping[str, Target]] = None
) -> Compose:
    """Translates objects of ``torchvision.transforms``, v2 or v1, without importing torchvision.

    A :class:`RecipeError` lists what cannot be translated. ``targets`` are those of
    :class:`Compose`.
    """
    return Compose(_translate(compose), targets)
