"""Policies that choose operations at random, blurs and noise."""

from __future__ import annotations

import re
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from ._transform import Transform
from ._values import Wholes, colour, ends, number, whole, wholes, word
from .errors import RecipeError


class GaussianBlur(Transform):
    """As ``v2.GaussianBlur``: within 1 of its uint8 kernel. As in crumpets with ``sigma_relative``.

    :param kernel_size: odd, both sides in pixels, or (height, width), up to 999; None: 6 standard
        deviations and 1, rounded up to an odd number, as in OpenCV.
    :param sigma: the standard deviation in pixels, or its bounds, above 0.
    :param sigma_relative: the standard deviation as a share of the width, or its bounds, above 0 and
        up to 1, in place of ``sigma``.
    """

    _name = "gaussian_blur"

    def __init__(
        self,
        kernel_size: Optional[Union[int, Sequence[int]]] = None,
        sigma: Union[float, Sequence[float]] = (0.1, 2.0),
        sigma_relative: Optional[Union[float, Sequence[float]]] = None,
    ) -> None:
        super().__init__(
            kernel_size=None if kernel_size is None else wholes("kernel_size", kernel_size),
            sigma=ends("sigma", sigma),
            sigma_relative=(
                None if sigma_relative is None else ends("sigma_relative", sigma_relative)
            ),
        )


class PillowGaussianBlur(Transform):
    """Pillow's ``ImageFilter.GaussianBlur``, bit for bit, as DeiT III, DINO and timm use it.

    :param radius: the standard deviation in pixels, or its bounds, from 0 to 1000.
    :param p: the probability.
    """

    _name = "pillow_gaussian_blur"

    def __init__(self, radius: Union[float, Sequence[float]] = (0.1, 2.0), p: float = 1.0) -> None:
        super().__init__(radius=ends("radius", radius), p=number("p", p))


class GaussianNoise(Transform):
    """As ``v2.GaussianNoise`` on uint8.

    :param mean: the mean, as a share of 255, from -1 to 1.
    :param sigma: the standard deviation, as a share of 255, from 0 to 16.
    :param clip: whether values are clipped; otherwise they are taken modulo 256.
    """

    _name = "gaussian_noise"

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, *, clip: bool = True) -> None:
        super().__init__(mean=number("mean", mean), sigma=number("sigma", sigma), clip=bool(clip))


class RandomSensorNoise(Transform):
    """The noise of a sensor, as in crumpets: half as strong in green, coarse in red and blue.

    :param strength: bounds of the largest noise, as a share of 256, from 0 to 1.
    :param p: the probability.
    """

    _name = "random_sensor_noise"

    def __init__(
        self, strength: Union[float, Sequence[float]] = (0.0, 0.05), p: float = 0.5
    ) -> None:
        super().__init__(strength=ends("strength", strength), p=number("p", p))


class AutoAugment(Transform):
    """As ``v2.AutoAugment`` on PIL images.

    :param policy: ``"imagenet"``, ``"cifar10"``, ``"svhn"`` or torchvision's enum.
    :param interpolation: of warps: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
    :param fill: the colour outside the picture, 0 to 255, or one for each channel.
    """

    _name = "auto_augment"

    def __init__(
        self,
        policy: object = "imagenet",
        interpolation: object = None,
        fill: Optional[Wholes] = None,
    ) -> None:
        super().__init__(policy=word(policy), interpolation=word(interpolation), fill=colour(fill))


class TrivialAugmentWide(Transform):
    """As ``v2.TrivialAugmentWide`` on PIL images.

    :param num_magnitude_bins: the magnitudes that there are, 2 to 1000.
    :param interpolation: of warps: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
    :param fill: the colour outside the picture, 0 to 255, or one for each channel.
    """

    _name = "trivial_augment_wide"

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: object = None,
        fill: Optional[Wholes] = None,
    ) -> None:
        super().__init__(
            num_magnitude_bins=whole("num_magnitude_bins", num_magnitude_bins),
            interpolation=word(interpolation),
            fill=colour(fill),
        )


class AugMix(Transform):
    """As ``v2.AugMix``, with the operations of Pillow instead of those on tensors.

    :param severity: the number of magnitudes to draw from, 1 to 10.
    :param mixture_width: the number of chains, 1 to 16.
    :param chain_depth: the number of operations of a chain, up to 16; 0 or -1: 1 to 3, at random.
    :param alpha: the parameter of the beta and Dirichlet distributions of the weights, 0.01 to
        1000.
    :param all_ops: whether brightness, colour, contrast and sharpness change too.
    :param interpolation: of warps: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
    :param fill: the colour outside the picture, 0 to 255, or one for each channel.
    """

    _name = "aug_mix"

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = 0,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: object = None,
        fill: Optional[Wholes] = None,
    ) -> None:
        super().__init__(
            severity=whole("severity", severity),
            mixture_width=whole("mixture_width", mixture_width),
            chain_depth=0 if chain_depth == -1 else whole("chain_depth", chain_depth),
            alpha=number("alpha", alpha),
            all_ops=bool(all_ops),
            interpolation=word(interpolation),
            fill=colour(fill),
        )


class ThreeAugment(Transform):
    """The choice of DeiT III's 3-Augment: grey, solarized from 128 on, or blurred as by Pillow."""

    _name = "three_augment"

    def __init__(self) -> None:
        super().__init__()


class TimmRandAugment(Transform):
    """The RandAugment of timm 1.0 on PIL images; :meth:`RandAugment.from_timm` reads its strings.

    :param num_ops: the number of operations to draw, 0 to 100.
    :param magnitude: the magnitude, not below 0; 10 is the full range.
    :param magnitude_std: standard deviation of the magnitude; above 100, the magnitude is uniform
        from 0 to ``magnitude``.
    :param magnitude_max: the largest magnitude, up to 30.
    :param p: the probability of each operation.
    :param increasing: whether every operation changes more at a larger magnitude.
    :param interpolation: of warps: ``"random"`` (one of the others), ``"bilinear"`` or
        ``"bicubic"``.
    :param fill: the colour outside the picture, 0 to 255, or one for each channel; by default 128.
    """

    _name = "timm_rand_augment"

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: float = 10.0,
        magnitude_std: float = 0.0,
        magnitude_max: float = 10.0,
        p: float = 0.5,
        *,
        increasing: bool = False,
        interpolation: object = None,
        fill: Optional[Wholes] = None,
    ) -> None:
        super().__init__(
            num_ops=whole("num_ops", num_ops),
            magnitude=number("magnitude", magnitude),
            magnitude_std=number("magnitude_std", magnitude_std),
            magnitude_max=number("magnitude_max", magnitude_max),
            p=number("p", p),
            increasing=bool(increasing),
            interpolation=word(interpolation),
            fill=colour(fill),
        )


class RandAugment(Transform):
    """As ``v2.RandAugment`` on PIL images.

    :param num_ops: the number of operations to apply, 0 to 100.
    :param magnitude: the index of the magnitude, below ``num_magnitude_bins``.
    :param num_magnitude_bins: the magnitudes that there are, 2 to 1000.
    :param interpolation: of warps: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
    :param fill: the colour outside the picture, 0 to 255, or one for each channel.
    """

    _name = "rand_augment"

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: object = None,
        fill: Optional[Wholes] = None,
    ) -> None:
        super().__init__(
            num_ops=whole("num_ops", num_ops),
            magnitude=whole("magnitude", magnitude),
            num_magnitude_bins=whole("num_magnitude_bins", num_magnitude_bins),
            interpolation=word(interpolation),
            fill=colour(fill),
        )

    @staticmethod
    def from_timm(
        config: str, *, interpolation: str = "random", fill: Optional[Wholes] = None
    ) -> TimmRandAugment:
        """Reads a configuration of timm, such as ``"rand-m9-mstd0.5-inc1"``.

        :param config: ``rand`` and, separated by dashes: ``m`` (magnitude), ``n`` (operations),
            ``p`` (probability of each), ``mstd`` (deviation), ``mmax`` (largest magnitude), ``inc``.
        :param interpolation: that of timm's ``hparams``; by default, it is drawn for each warp, as
            in timm.
        :param fill: the mean colour of timm's ``hparams`` in 0..255; by default 128.
        :raises RecipeError: a section that is unknown, or that a recipe cannot express.
        """
        keys: Dict[str, Any] = {}
        policy, *sections = config.split("-")
        if policy != "rand":
            raise _refused(config, f"its policy is {policy!r}", "only rand is supported")
        for section in sections:
            name, value = _section(config, section)
            keys[name] = value
        return TimmRandAugment(interpolation=interpolation, fill=fill, **keys)


_SECTIONS = {
    "m": "magnitude",
    "n": "num_ops",
    "p": "p",
    "mstd": "magnitude_std",
    "mmax": "magnitude_max",
    "inc": "increasing",
}
_WHOLE = ("m", "n", "mmax", "inc")


def _section(config: str, section: str) -> Tuple[str, Union[int, float, bool]]:
    """Key and value of a section."""
    if section.startswith("t"):
        remedy = "leave it out: all 15 operations are drawn with equal probability"
        raise _refused(config, f"{section!r} chooses other operations", remedy)
    found = re.fullmatch(r"([a-z]+)(\d+(?:\.\d+)?)", section)
    name, number = (found.group(1), found.group(2)) if found else ("", "")
    if name not in _SECTIONS or (name in _WHOLE and "." in number):
        remedy = "sections are m, n, mmax and inc with a whole number, p and mstd with a number"
        raise _refused(config, f"the section {section!r} is unknown", remedy)
    if name == "inc" and int(number) == 0:
        problem = f"{section!r} is increasing in timm, where only the text is tested"
        raise _refused(config, problem, "use inc1 for that, or leave it out if that is not meant")
    if name == "inc":
        return "increasing", True
    return _SECTIONS[name], int(number) if name == "n" else float(number)


def _refused(config: str, problem: str, remedy: str) -> RecipeError:
    return RecipeError(f"timm's configuration {config!r}: {problem}", remedy=remedy)
