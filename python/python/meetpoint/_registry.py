"""The class of every operation: those that are written out, and those made from declarations."""

from __future__ import annotations

import json
from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any, Dict, FrozenSet, List, Sequence, Type, cast

from . import _native
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
from ._tensors import Layout, Normalize, ToDtype
from ._text import DecodeText, Embed, HtmlToText, PackSequences, PadSequence, Tokenize
from ._transform import Transform

CLASSES: Dict[str, Type[Transform]] = {
    it._name: it
    for it in (
        Decode,
        Resize,
        RandomResize,
        RandomShortestSize,
        ScaleJitter,
        CenterCrop,
        RandomCrop,
        RandomResizedCrop,
        RandomIoUCrop,
        FiveCrop,
        TenCrop,
        Pad,
        RandomZoomOut,
        RandomHorizontalFlip,
        RandomVerticalFlip,
        RandomRotation,
        RandomAffine,
        CrumpetsAffine,
        RandomPerspective,
        ElasticTransform,
        Grayscale,
        RandomGrayscale,
        ColorJitter,
        RandomPhotometricDistort,
        RandomChannelPermutation,
        RandomAdjustSharpness,
        RandomAutocontrast,
        RandomEqualize,
        RandomInvert,
        RandomPosterize,
        RandomSolarize,
        AdjustGamma,
        SigmoidContrast,
        RandomGamma,
        RandomSigmoidContrast,
        ConvertColor,
        GaussianBlur,
        PillowGaussianBlur,
        GaussianNoise,
        RandomSensorNoise,
        AutoAugment,
        RandAugment,
        TimmRandAugment,
        TrivialAugmentWide,
        ThreeAugment,
        AugMix,
        RandomApply,
        RandomChoice,
        RandomOrder,
        DecodeAudio,
        DecodeSignal,
        FixLength,
        Log,
        MelSpectrogram,
        PowerFeatures,
        RandomTimeCrop,
        SelectChannels,
        Spectrogram,
        DecodeText,
        HtmlToText,
        Tokenize,
        PadSequence,
        Embed,
        ToDtype,
        Normalize,
        Layout,
        RandomErasing,
        MixUp,
        CutMix,
        TimmMixup,
        OneHot,
        PackSequences,
    )
}


def of_declaration(declaration: Dict[str, Any]) -> Type[Transform]:
    """A class whose arguments are the keys that an operation declares."""
    parameters: List[Parameter] = []
    for key in declaration["keys"]:
        default = Parameter.empty if "example" in key else None
        parameters.append(Parameter(key["name"], Parameter.POSITIONAL_OR_KEYWORD, default=default))
    parameters.sort(key=lambda parameter: parameter.default is None)
    signature = Signature(parameters)

    def __init__(self: Transform, *values: Any, **keys: Any) -> None:
        Transform.__init__(self, **_plain(signature.bind(*values, **keys).arguments))

    lines = [f"{key['name']}: {key['about']}." for key in declaration["keys"]]
    content: Dict[str, Any] = {
        "__init__": __init__,
        "__signature__": signature,
        "__doc__": "\n".join(
            [f"Operation ``{declaration['name']}``: {declaration['about']}.", *lines]
        ),
        "__module__": "meetpoint.transforms",
        "_name": declaration["name"],
    }
    return type(class_name(declaration["name"]), (Transform,), content)


def class_name(name: str) -> str:
    """The name of an operation in torchvision's spelling."""
    return "".join(word.capitalize() for word in name.split("_")).replace("Iou", "IoU")


def _plain(keys: Dict[str, Any]) -> Dict[str, Any]:
    """Values as TOML can hold them: enums by their value, sequences as lists."""

    def plain(value: Any) -> Any:
        value = getattr(value, "value", value)
        if not isinstance(value, (list, tuple)):
            return value
        return [plain(item) for item in cast(Sequence[Any], value)]

    return {key: plain(value) for key, value in keys.items()}


@lru_cache(maxsize=None)
def decoders() -> FrozenSet[str]:
    """The names of the operations with which a recipe can begin."""
    operations = json.loads(_native.recipe_schema())["operations"]
    return frozenset(it["name"] for it in operations if it["phase"] == "decode")


@lru_cache(maxsize=None)
def declared() -> Dict[str, Type[Transform]]:
    """The class of every operation by its name in Python."""
    found: Dict[str, Type[Transform]] = {}
    for declaration in json.loads(_native.recipe_schema())["operations"]:
        made = CLASSES.get(declaration["name"]) or of_declaration(declaration)
        found[made.__name__] = made
    return found


def from_operation(keys: Dict[str, Any]) -> Transform:
    """The transform of an operation's name and keys."""
    return declared()[class_name(keys.pop("name"))](**keys)
