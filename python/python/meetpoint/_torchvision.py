"""Translates torchvision objects into Meetpoint transforms, by the names of classes and attributes.

A translation gives the result of torchvision for PIL images, bit for bit; all others are refused,
unless the caller names a class for which the nearest operation is acceptable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Literal, Mapping, Optional, Sequence, Union

from . import _torchvision_targets as _targets
from ._torchvision_geometry import GEOMETRY, fill_of, refusal, translated
from .errors import RecipeError

if TYPE_CHECKING:
    from ._targets import Target
    from .transforms import Transform

_V2 = "torchvision.transforms.v2"
_WITH_P = ("RandomGrayscale", "RandomAutocontrast", "RandomEqualize", "RandomInvert")
_POLICIES = ("AutoAugment", "RandAugment", "TrivialAugmentWide")
_ON_TENSORS = {
    "GaussianBlur": "T.GaussianBlur is within 1 of it",
    "ElasticTransform": "T.ElasticTransform is within 1 of it",
    "GaussianNoise": "T.GaussianNoise draws other numbers from the same distribution",
    "AugMix": "T.AugMix mixes results of Pillow",
}
"""Transforms that torchvision computes on tensors, also for PIL images, and their nearest operations,
which have the same names and parameters."""
_ELSEWHERE = {
    "JPEG": "compressing again has no operation; use batch_transform",
    "Lambda": "a recipe holds no functions; use batch_transform",
    "LinearTransformation": "whitening has no operation; apply it to the batch",
    "UniformTemporalSubsample": "there are no videos",
}
"""Transforms without an operation, and their replacement."""
_NOTHING = ("RGB", "Identity", "ToPureTensor", "ToPILImage")
"""Transforms that need no operation: decoded pictures are RGB, and batches hold plain tensors."""
_CHOICES = ("RandomApply", "RandomChoice", "RandomOrder")
_ON_PICTURES = (
    *GEOMETRY,
    "Grayscale",
    "ColorJitter",
    "RandomPhotometricDistort",
    "RandomChannelPermutation",
    "RandomAdjustSharpness",
    "RandomPosterize",
    "RandomSolarize",
    *_WITH_P,
    *_POLICIES,
    *_CHOICES,
)
_ON_BATCHES = ("MixUp", "CutMix")
_EITHER_WAY = ("CenterCrop", "RandomHorizontalFlip", "RandomVerticalFlip")
_TO_TENSOR = ("ToImage", "PILToTensor", "ToTensor")
_TO_DTYPE = ("ToDtype", "ConvertImageDtype", "ConvertDtype")
_KNOWN = (
    *_ON_PICTURES,
    *_EITHER_WAY,
    *_TO_TENSOR,
    *_TO_DTYPE,
    "Normalize",
    "RandomErasing",
    *_ON_BATCHES,
    *_NOTHING,
)


def is_of_torchvision(it: object) -> bool:
    """Whether an object's class is one of torchvision's."""
    module = type(it).__module__ or ""
    return module == "torchvision" or module.startswith("torchvision.")


class _Translation:
    """The transforms translated so far, and the state of torchvision's pipeline after them."""

    def __init__(self, nearest: Sequence[str], targets: Mapping[str, "Target"]) -> None:
        self._nearest = nearest
        self._targets = targets
        self.made: List["Transform"] = []
        self.refused: List[str] = []
        self.is_tensor = False
        """Whether the picture is a tensor by now; it begins as a PIL image."""
        self.is_float = False
        """Whether its elements are floats by now."""
        self.on_targets: Optional[str] = None
        """The last transform of targets, whose work is done at the end of a recipe."""

    def add(self, it: Any) -> None:
        name = type(it).__name__
        if isinstance(it, (list, tuple)):
            items: List[Any] = list(it)  # pyright: ignore[reportUnknownArgumentType]
        elif name in ("Compose", "Sequential"):
            items = list(getattr(it, "transforms", it))
        else:
            self._add_one(it, name)
            return
        for item in items:
            self.add(item)

    def _add_one(self, it: Any, name: str) -> None:
        from . import transforms as ours

        why = self._refusal(it, name)
        if why is not None:
            self.refused.append(f"{name} ({why})")
        elif name in GEOMETRY:
            self.made.append(translated(it, name))
        elif name in _targets.ON_TARGETS:
            self.on_targets = name
        elif name in _ON_TENSORS:
            self._add_nearest(it, name)
        elif name == "CenterCrop":
            self.made.append(ours.CenterCrop(it.size))
        elif name in ("RandomHorizontalFlip", "RandomVerticalFlip", *_WITH_P):
            self.made.append(getattr(ours, name)(it.p))
        elif name == "Grayscale":
            self.made.append(ours.Grayscale(it.num_output_channels))
        elif name == "ColorJitter":
            jitter = ours.ColorJitter(it.brightness, it.contrast, it.saturation, it.hue)
            self.made.append(jitter)
        elif name == "RandomPhotometricDistort":
            distort = ours.RandomPhotometricDistort(
                it.brightness, it.contrast, it.saturation, it.hue, it.p
            )
            self.made.append(distort)
        elif name == "RandomChannelPermutation":
            self.made.append(ours.RandomChannelPermutation())
        elif name == "RandomAdjustSharpness":
            self.made.append(ours.RandomAdjustSharpness(it.sharpness_factor, it.p))
        elif name == "RandomPosterize":
            self.made.append(ours.RandomPosterize(it.bits, it.p))
        elif name == "RandomSolarize":
            self.made.append(ours.RandomSolarize(it.threshold, it.p))
        elif name in _POLICIES:
            self._add_policy(it, name)
        elif name in _CHOICES:
            self._add_choice(it, name)
        elif name in _TO_TENSOR:
            self.made.append(ours.ToTensor() if name == "ToTensor" else ours.ToImage())
            self.is_tensor = True
            self.is_float = name == "ToTensor"
        elif name in _TO_DTYPE:
            to_dtype = ours.ToDtype(it.dtype, scale=_scale(it, name))
            self.made.append(to_dtype)
            self.is_float = to_dtype._keys["dtype"] != "uint8"
        elif name == "Normalize":
            self.made.append(ours.Normalize(_floats(it.mean), _floats(it.std)))
        elif name == "RandomErasing":
            value = "random" if it.value is None else it.value
            self.made.append(ours.RandomErasing(it.p, it.scale, it.ratio, value=value))
        elif name in _ON_BATCHES:
            self.made.append(getattr(ours, name)(alpha=it.alpha, num_classes=it.num_classes))
        else:
            assert name in _NOTHING, name

    def _add_nearest(self, it: Any, name: str) -> None:
        """Adds the nearest operation of a transform on tensors."""
        from . import transforms as ours

        if name == "GaussianBlur":
            # Torchvision's kernel is width and height.
            self.made.append(ours.GaussianBlur(it.kernel_size[::-1], it.sigma))
        elif name == "ElasticTransform":
            keys = (it.alpha, it.sigma, it.interpolation, fill_of(it))
            self.made.append(ours.ElasticTransform(*keys))
        elif name == "GaussianNoise":
            self.made.append(ours.GaussianNoise(it.mean, it.sigma, clip=it.clip))
        else:
            assert name == "AugMix", name
            self.made.append(
                ours.AugMix(
                    it.severity,
                    it.mixture_width,
                    it.chain_depth,
                    it.alpha,
                    it.all_ops,
                    it.interpolation,
                    fill_of(it),
                )
            )

    def _add_policy(self, it: Any, name: str) -> None:
        from . import transforms as ours

        warps = {"interpolation": it.interpolation, "fill": fill_of(it)}
        if name == "AutoAugment":
            self.made.append(ours.AutoAugment(it.policy, **warps))
        elif name == "TrivialAugmentWide":
            self.made.append(ours.TrivialAugmentWide(it.num_magnitude_bins, **warps))
        else:
            bins = it.num_magnitude_bins
            self.made.append(ours.RandAugment(it.num_ops, it.magnitude, bins, **warps))

    def _add_choice(self, it: Any, name: str) -> None:
        """Adds an object that contains others."""
        from . import transforms as ours

        contained: List["Transform"] = []
        for transform in it.transforms:
            inner = _Translation(self._nearest, self._targets)
            inner.is_tensor, inner.is_float = self.is_tensor, self.is_float
            inner.add(transform)
            if inner.on_targets is not None:
                inner.refused.append(f"{inner.on_targets}, which is not applied at random")
            if inner.is_tensor and not self.is_tensor:
                inner.refused.append("a conversion to a tensor")
            self.refused.extend(f"{refused} inside of {name}" for refused in inner.refused)
            if len(inner.made) == 1:
                contained.append(inner.made[0])
            elif inner.made:
                contained.append(ours.RandomApply(inner.made, 1.0))
            else:
                # Such as Identity: an operation that is never applied.
                contained.append(ours.RandomInvert(0.0))
        if self.refused:
            return
        if name == "RandomApply":
            self.made.append(ours.RandomApply(contained, it.p))
        elif name == "RandomOrder":
            self.made.append(ours.RandomOrder(contained))
        else:
            weights: Optional[List[float]] = getattr(it, "p", None)
            is_equal = weights is None or len(set(weights)) == 1
            self.made.append(ours.RandomChoice(contained, None if is_equal else weights))

    def _refusal(self, it: Any, name: str) -> Optional[str]:
        """Why a transform has no exact translation at its position."""
        if name == "Identity":
            return None
        if is_of_torchvision(it) and name in _targets.ON_TARGETS:
            return _targets.refusal(it, name, self._targets)
        if is_of_torchvision(it) and name in _ON_TENSORS:
            if name not in self._nearest:
                return f"computed on tensors by torchvision; {_ON_TENSORS[name]}"
            if self.is_tensor:
                return "after a conversion to a tensor; move it up"
            return refusal(it, name)
        if is_of_torchvision(it) and name in _ELSEWHERE:
            return _ELSEWHERE[name]
        if not is_of_torchvision(it) or name not in _KNOWN:
            return "not known"
        if name == "ToPILImage" and self.is_tensor:
            return "after a conversion to a tensor; batches are tensors; leave it out"
        if self.on_targets is not None and name in (*GEOMETRY, "CenterCrop"):
            return f"after {self.on_targets}, whose work is done at the end; move it up"
        if name in _ON_BATCHES:
            return self._refusal_on_batches(it, name)
        if name in _CHOICES and _is_on_batches(it):
            if name == "RandomApply":
                return "contains operations on batches; T.RandomApply makes labels rows in any case"
            if not all(_is_on_batches(inner) for inner in it.transforms):
                return "contains operations on batches beside others; take the others out"
            return None
        if name in _ON_PICTURES and self.is_tensor:
            return "after a conversion to a tensor, where torchvision's result differs; move it up"
        if name in _EITHER_WAY and self.is_tensor:
            return "after a conversion to a tensor; move it up, the result is the same"
        if name in (*_TO_DTYPE, "Normalize", "RandomErasing") and not self.is_tensor:
            return "before a conversion to a tensor; move it after ToImage"
        if name in _TO_TENSOR and self.is_tensor:
            return "after a conversion to a tensor; leave it out"
        if name in _POLICIES and not type(it).__module__.startswith(_V2):
            return f"of the first version, whose thresholds of Solarize differ; use {_V2}.{name}"
        if name in _TO_DTYPE and isinstance(it.dtype, dict):
            return "with a dtype for each type"
        return refusal(it, name)

    def _refusal_on_batches(self, it: Any, name: str) -> Optional[str]:
        """Why an operation on batches has no exact translation at its position."""
        getter = getattr(it._labels_getter, "__name__", "")
        if getter != "_find_labels_default_heuristic":
            return "with a labels_getter; labels are the column label"
        if it.num_classes is None:
            return "without num_classes, for labels that are rows already; set it"
        if not self.is_tensor:
            return "before a conversion to a tensor; move it after ToImage"
        if name == "MixUp" and not self.is_float:
            return "on uint8, which torchvision cannot blend; put ToDtype before it"
        return None


def _is_on_batches(it: Any) -> bool:
    """Whether an object is, or contains, an operation of torchvision on batches."""
    if isinstance(it, (list, tuple)):
        contained: List[Any] = list(it)  # pyright: ignore[reportUnknownArgumentType]
    elif is_of_torchvision(it) and type(it).__name__ in _ON_BATCHES:
        return True
    else:
        contained = list(getattr(it, "transforms", ()))
    return any(_is_on_batches(inner) for inner in contained)


def from_torchvision(
    compose: object,
    nearest: Sequence[str] = (),
    targets: Optional[Mapping[str, "Target"]] = None,
) -> List["Transform"]:
    """The transforms to which a torchvision object, or a list of them, is translated.

    :param nearest: names of the classes for which the nearest operation is acceptable.
    :param targets: the targets of the recipe.
    """
    nearest = [nearest] if isinstance(nearest, str) else list(nearest)
    unknown = [name for name in nearest if name not in _ON_TENSORS]
    if unknown:
        raise RecipeError(
            f"nearest names {', '.join(map(repr, unknown))}, which have no nearest operation",
            remedy=f"choose from {', '.join(sorted(_ON_TENSORS))}",
        )
    translation = _Translation(nearest, targets or {})
    translation.add(compose)
    if translation.refused:
        raise RecipeError(
            "torchvision transforms that a recipe cannot hold: " + ", ".join(translation.refused),
            remedy=(
                f"use {', '.join(_KNOWN)} on PIL images, name those whose nearest operation will "
                "do in nearest=[...], and apply the others to the batch after the loader"
            ),
        )
    return translation.made


def _scale(it: Any, name: str) -> Union[bool, Literal["divide"]]:
    if name == "ConvertImageDtype" and not type(it).__module__.startswith(_V2):
        # The first version divides by 255; the second multiplies by 1/255.
        return "divide"
    return bool(getattr(it, "scale", name != "ToDtype"))


def _floats(numbers: Any) -> List[float]:
    return [float(number) for number in numbers]
