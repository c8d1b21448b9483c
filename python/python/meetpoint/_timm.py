"""Translates timm's data configuration into Meetpoint transforms.

A translation gives the pixels of ``timm.data.create_transform``, bit for bit and for the same
random parameters; every argument without a translation is refused by name.
"""

from __future__ import annotations

import difflib
import math
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast

from .errors import RecipeError

if TYPE_CHECKING:
    from ._transform import Transform

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CROP_PCT = 0.875

_DEFAULTS: Dict[str, Any] = {
    "input_size": 224,
    "is_training": False,
    "no_aug": False,
    "train_crop_mode": None,
    "scale": None,
    "ratio": None,
    "hflip": 0.5,
    "vflip": 0.0,
    "color_jitter": 0.4,
    "color_jitter_prob": None,
    "force_color_jitter": False,
    "grayscale_prob": 0.0,
    "gaussian_blur_prob": 0.0,
    "auto_augment": None,
    "interpolation": "bilinear",
    "mean": _MEAN,
    "std": _STD,
    "re_prob": 0.0,
    "re_mode": "const",
    "re_count": 1,
    "re_num_splits": 0,
    "crop_pct": None,
    "crop_mode": None,
    "crop_border_pixels": None,
    "tf_preprocessing": False,
    "use_prefetcher": False,
    "normalize": True,
    "separate": False,
    "naflex": False,
    "patch_size": 16,
    "max_seq_len": 576,
    "patchify": False,
    "patchify_channels_last": True,
    "patchify_flatten": True,
}
"""The arguments of ``create_transform`` in timm 1.0.31, and their defaults."""

_NEVER = {
    "tf_preprocessing": "the preprocessing of TensorFlow 1 has no operations here",
    "separate": "a recipe is one sequence",
    "naflex": "sequences of patches are not pictures of one size",
    "patchify": "make patches of the batch, with batch_transform",
}
"""Arguments that are refused if they are true."""


def from_timm(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> List["Transform"]:
    """The transforms of a configuration and further arguments, which go first."""
    it = _Config({**config, **arguments})
    made = it.training() if it["is_training"] else it.evaluation()
    if it.refused:
        raise RecipeError(
            "a configuration of timm that a recipe cannot hold: " + "; ".join(it.refused),
            remedy="leave these arguments out, or use operations of meetpoint.transforms",
        )
    return made


class _Config:
    """Arguments of ``create_transform``, and those of them that have no translation."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.refused: List[str] = []
        for name in given:
            if name not in _DEFAULTS:
                near = difflib.get_close_matches(name, list(_DEFAULTS), n=1)
                hint = f"did you mean {near[0]}?" if near else "create_transform has no such argument"
                self.refuse(name, given[name], hint)
        self._values = {**_DEFAULTS, **given}
        for name, why in _NEVER.items():
            if self[name]:
                self.refuse(name, self[name], why)
        self.size = self._size()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def refuse(self, name: str, value: object, why: str) -> None:
        """Notes an argument that has no translation."""
        self.refused.append(f"{name}={value!r} ({why})")

    def _size(self) -> Tuple[int, int]:
        """Height and width."""
        given = self["input_size"]
        if not isinstance(given, (tuple, list)):
            return int(given), int(given)
        numbers = [int(number) for number in cast(Sequence[Any], given)]
        if len(numbers) == 3 and numbers[0] != 3:
            self.refuse("input_size", tuple(numbers), "pictures have 3 channels")
        return numbers[-2], numbers[-1]

    def evaluation(self) -> List["Transform"]:
        """``transforms_imagenet_eval``."""
        from . import transforms as ours

        sides = [math.floor(side / self._crop_pct()) for side in self.size]
        resize: Union[int, List[int]] = sides
        mode = self["crop_mode"] or "center"
        if self["crop_border_pixels"]:
            self.refuse("crop_border_pixels", self["crop_border_pixels"], "no operation trims borders")
        if mode == "center" and sides[0] == sides[1]:
            resize = sides[0]
        elif mode == "center":
            why = "only a square is resized as torchvision does; use crop_mode='squash'"
            self.refuse("input_size", self["input_size"], why)
        elif mode != "squash":
            self.refuse("crop_mode", mode, "use center or squash")
        resized = ours.Resize(resize, self["interpolation"])
        return [resized, ours.CenterCrop(self.size), *self._finished()]

    def _crop_pct(self) -> float:
        return float(self["crop_pct"] or _CROP_PCT)

    def training(self) -> List["Transform"]:
        """``transforms_imagenet_train``, or ``transforms_noaug_train``."""
        from . import transforms as ours

        if self["no_aug"]:
            # A pair is the exact size; an integer the shorter side.
            size: Union[int, List[int]] = list(self.size)
            if not isinstance(self["input_size"], (tuple, list)):
                size = self.size[0]
            name = self["interpolation"]
            resized = ours.Resize(size, "bilinear" if name == "random" else name)
            return [resized, ours.CenterCrop(self.size), *self._finished()]
        made: List[Transform] = [self._crop()]
        if self["hflip"] > 0:
            made.append(ours.RandomHorizontalFlip(self["hflip"]))
        if self["vflip"] > 0:
            made.append(ours.RandomVerticalFlip(self["vflip"]))
        made.extend(self._colours())
        made.extend(self._finished())
        if self["re_prob"] > 0:
            made.extend(self._erasing())
        return made

    def _crop(self) -> "Transform":
        from . import transforms as ours

        if (self["train_crop_mode"] or "rrc") != "rrc":
            self.refuse("train_crop_mode", self["train_crop_mode"], "use rrc")
        scale, ratio = self["scale"] or (0.08, 1.0), self["ratio"] or (3 / 4, 4 / 3)

        def crop(name: str) -> "Transform":
            return ours.RandomResizedCrop(self.size, scale, ratio, name)

        if self["interpolation"] == "random":
            return ours.RandomChoice([crop("bilinear"), crop("bicubic")])
        return crop(self["interpolation"])

    def _colours(self) -> List["Transform"]:
        from . import transforms as ours

        made: List[Transform] = []
        policy = self["auto_augment"]
        if policy:
            made.extend(self._policy(str(policy)))
        jitter = self["color_jitter"]
        is_disabled = policy and not self["force_color_jitter"] and "3a" not in str(policy)
        if jitter is not None and not is_disabled:
            is_listed = isinstance(jitter, (tuple, list))
            given = cast("Sequence[float]", jitter if is_listed else [float(jitter)] * 3)
            factors = [float(factor) for factor in given]
            made.append(ours.ColorJitter(*factors))
            if self["color_jitter_prob"] is not None:
                made[-1] = ours.RandomApply([made[-1]], self["color_jitter_prob"])
        if self["grayscale_prob"]:
            made.append(ours.RandomGrayscale(self["grayscale_prob"]))
        if self["gaussian_blur_prob"]:
            why = "computed on tensors by torchvision; T.GaussianBlur(23) is within 1 of it"
            self.refuse("gaussian_blur_prob", self["gaussian_blur_prob"], why)
        return made

    def _policy(self, policy: str) -> List["Transform"]:
        from . import transforms as ours

        if policy == "3a":
            return [ours.ThreeAugment()]
        if policy.split("-")[0] != "rand":
            self.refuse("auto_augment", policy, "use rand-… or 3a")
            return []
        fill = [min(255, round(255 * channel)) for channel in self["mean"]]
        name = self["interpolation"] or "random"
        try:
            return [ours.RandAugment.from_timm(policy, interpolation=name, fill=fill)]
        except RecipeError as error:
            self.refuse("auto_augment", policy, str(error))
            return []

    def _finished(self) -> List["Transform"]:
        """From a picture to a tensor; the work of a prefetcher on an accelerator is not
        translated."""
        from . import transforms as ours

        if self["use_prefetcher"] or not self["normalize"]:
            return [ours.ToImage()]
        mean, std = ([float(number) for number in self[name]] for name in ("mean", "std"))
        return [ours.ToTensor(), ours.Normalize(mean, std)]

    def _erasing(self) -> List["Transform"]:
        from . import transforms as ours

        if self["use_prefetcher"] or not self["normalize"]:
            # Without a prefetcher timm erases only normalised pictures.
            if self["use_prefetcher"]:
                self.refuse("use_prefetcher", True, "the prefetcher erases; leave it out")
            return []
        if self["re_num_splits"] > 1:
            self.refuse("re_num_splits", self["re_num_splits"], "every sample is erased alike")
        mode: Optional[str] = self["re_mode"] or "const"
        p, count = self["re_prob"], self["re_count"]
        ratio = (0.3, 1 / 0.3)
        return [ours.RandomErasing(p, (0.02, 1 / 3), ratio, mode, None, 1, count)]
