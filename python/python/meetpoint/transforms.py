"""Operations of recipes, with the names of ``torchvision.transforms.v2``.

A :class:`Compose` is data: it can be compared, printed and written as TOML. The host and devices
execute it with the same result, bit for bit. ``from_torchvision`` creates one from torchvision's
own objects. ``meetpoint recipe schema`` lists all operations with their keys. For an operation
without a class in this module, a class is created from its declaration.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from ._albumentations import from_albumentations as _from_albumentations
from ._batches import CutMix, MixUp, OneHot, TimmMixup
from ._choices import RandomApply, RandomChoice, RandomOrder
from ._colours import (
    AdjustGamma,
    ColorJitter,
    ConvertColor,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomErasing,
    RandomGamma,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSigmoidContrast,
    RandomSolarize,
    SigmoidContrast,
)
from ._compose import Compose
from ._crops import (
    CenterCrop,
    Decode,
    FiveCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    TenCrop,
)
from ._geometry import (
    CrumpetsAffine,
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
from ._series import (
    DecodeAudio,
    DecodeSignal,
    FixLength,
    Log,
    MelSpectrogram,
    PowerFeatures,
    RandomTimeCrop,
    SelectChannels,
    Spectrogram,
)
from ._targets import Boxes, Keypoints, Mask, Saliency, Target
from ._tensors import Layout, Normalize, PILToTensor, ToDtype, ToImage, ToTensor
from ._text import DecodeText, Embed, HtmlToText, PackSequences, PadSequence, Tokenize
from ._timm import from_timm as _from_timm
from ._torchvision import from_torchvision as _translate
from ._transform import Transform
from ._views import View, Views

__all__ = [
    "AdjustGamma",
    "AugMix",
    "AutoAugment",
    "Boxes",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertColor",
    "CrumpetsAffine",
    "CutMix",
    "Decode",
    "DecodeAudio",
    "DecodeSignal",
    "DecodeText",
    "ElasticTransform",
    "Embed",
    "FiveCrop",
    "FixLength",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "HtmlToText",
    "Keypoints",
    "Layout",
    "Log",
    "Mask",
    "MelSpectrogram",
    "MixUp",
    "Normalize",
    "OneHot",
    "PILToTensor",
    "PackSequences",
    "Pad",
    "PadSequence",
    "PillowGaussianBlur",
    "PowerFeatures",
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
    "RandomGamma",
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
    "RandomSigmoidContrast",
    "RandomSolarize",
    "RandomTimeCrop",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "Saliency",
    "ScaleJitter",
    "SelectChannels",
    "SigmoidContrast",
    "Spectrogram",
    "Target",
    "TenCrop",
    "ThreeAugment",
    "TimmMixup",
    "TimmRandAugment",
    "ToDtype",
    "ToImage",
    "ToTensor",
    "Transform",
    "Tokenize",
    "TrivialAugmentWide",
    "View",
    "Views",
    "from_albumentations",
    "from_timm",
    "from_torchvision",
    "preview",
]


def __dir__() -> "list[str]":
    """The public names, without those imported for internal use."""
    return sorted({*__all__, *_declared()})


if TYPE_CHECKING:
    from ._preview import preview
else:

    def __getattr__(name: str) -> Any:
        """The class of an operation that is not defined in this module, or a lazily imported
        name."""
        if name == "preview":
            # It takes whatever a loader takes, whose arguments import this module.
            from ._preview import preview

            return preview
        found = None if name.startswith("_") else _declared().get(name)
        if found is None:
            known = sorted({it.__name__ for it in _CLASSES.values()} | set(_declared()))
            near = difflib.get_close_matches(name, {*known, *__all__}, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}; {meant}transforms are "
                f"{', '.join(known)}"
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


def from_timm(
    config: Mapping[str, Any],
    *,
    mixup: Optional[object] = None,
    targets: Optional[Mapping[str, Target]] = None,
    **arguments: Any,
) -> Compose:
    """Translates timm's data configuration: the arguments of ``timm.data.create_transform``.

    ::

        config = timm.data.resolve_data_config(model=model)
        train = T.from_timm(config, is_training=True, auto_augment="rand-m9-mstd0.5-inc1",
                            re_prob=0.25, re_mode="pixel")
        evaluate = T.from_timm(config)

    The result has the pixels of ``create_transform(**config, **arguments)`` of timm 1.0 on PIL
    images, bit for bit and for the same random parameters. With ``use_prefetcher=True`` it is
    uint8, which timm's prefetcher then normalises. Timm is not imported. :class:`RecipeError` names
    every argument that cannot be translated.

    :param config: the result of ``resolve_data_config``, or any of those arguments.
    :param mixup: timm's ``Mixup``, which becomes the last operation.
    :param targets: those of :class:`Compose`.
    :param arguments: further arguments, before those of ``config``.
    """
    made = _from_timm(config, arguments)
    if mixup is not None:
        made.append(TimmMixup.from_timm(mixup))
    return Compose(made, targets)


def from_torchvision(
    compose: object,
    targets: Optional[Mapping[str, Target]] = None,
    *,
    nearest: Sequence[str] = (),
) -> Compose:
    """Translates objects of ``torchvision.transforms``, v2 or v1, without importing torchvision.

    For the same random parameters, the result has the pixels of torchvision on PIL images, bit for
    bit. A :class:`RecipeError` lists everything that cannot be translated.

    :param targets: those of :class:`Compose`. Torchvision's transforms of boxes and keypoints at the
        end of the pipeline are translated where a target does the same.
    :param nearest: names of classes, such as ``"GaussianBlur"``, for which the nearest operation is
        used: ``GaussianBlur`` and ``ElasticTransform`` are within 1 of torchvision, ``GaussianNoise``
        draws other numbers, and ``AugMix`` mixes results of Pillow.
    """
    return Compose(_translate(compose, nearest, targets), targets)
