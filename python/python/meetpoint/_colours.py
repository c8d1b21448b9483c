"""Operations on colours, with the arithmetic of Pillow, and erasing."""

from __future__ import annotations

from typing import List, Optional, Sequence, Union

from ._transform import Transform
from ._values import Numbers, ends, floats, number, numbers, whole
from .errors import RecipeError

Factor = Union[float, Sequence[float]]


class Grayscale(Transform):
    """As ``v2.Grayscale``: Pillow's luma, in one channel or three equal ones."""

    _name = "grayscale"

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(
            num_output_channels=whole("num_output_channels", num_output_channels)
        )


class RandomGrayscale(Transform):
    """As ``v2.RandomGrayscale``: the number of channels is unchanged."""

    _name = "random_grayscale"

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=number("p", p))


class ColorJitter(Transform):
    """As ``v2.ColorJitter`` on PIL images: the properties are changed in random order.

    A number x means factors in [1 - x, 1 + x], and for the hue, shifts in [-x, x]; (low, high) are
    the bounds themselves. A property that is not given is unchanged.

    :param brightness: factors of the brightness, not below 0.
    :param contrast: factors of the contrast, not below 0.
    :param saturation: factors of the saturation, not below 0.
    :param hue: shifts of the hue as shares of the circle, from -0.5 to 0.5.
    """

    _name = "color_jitter"

    def __init__(
        self,
        brightness: Optional[Factor] = None,
        contrast: Optional[Factor] = None,
        saturation: Optional[Factor] = None,
        hue: Optional[Factor] = None,
    ) -> None:
        super().__init__(
            brightness=None if brightness is None else numbers("brightness", brightness),
            contrast=None if contrast is None else numbers("contrast", contrast),
            saturation=None if saturation is None else numbers("saturation", saturation),
            hue=None if hue is None else numbers("hue", hue),
        )


class RandomPhotometricDistort(Transform):
    """As ``v2.RandomPhotometricDistort`` on PIL images: each property changes with a probability.

    :param brightness: bounds of the factor of the brightness, not below 0.
    :param contrast: bounds of the factor of the contrast, not below 0.
    :param saturation: bounds of the factor of the saturation, not below 0.
    :param hue: shifts of the hue as shares of the circle, from -0.5 to 0.5.
    :param p: the probability of each change, and of a permutation of the channels.
    """

    _name = "random_photometric_distort"

    def __init__(
        self,
        brightness: Sequence[float] = (0.875, 1.125),
        contrast: Sequence[float] = (0.5, 1.5),
        saturation: Sequence[float] = (0.5, 1.5),
        hue: Sequence[float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__(
            brightness=floats("brightness", brightness),
            contrast=floats("contrast", contrast),
            saturation=floats("saturation", saturation),
            hue=floats("hue", hue),
            p=number("p", p),
        )


class RandomChannelPermutation(Transform):
    """As ``v2.RandomChannelPermutation``: red, green and blue in a random order."""

    _name = "random_channel_permutation"

    def __init__(self) -> None:
        super().__init__()


class RandomAdjustSharpness(Transform):
    """As ``v2.RandomAdjustSharpness`` on PIL images.

    :param sharpness_factor: 0 smooths, 1 changes nothing, 2 sharpens; not below 0.
    :param p: the probability.
    """

    _name = "random_adjust_sharpness"

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(
            sharpness_factor=number("sharpness_factor", sharpness_factor), p=number("p", p)
        )


class RandomAutocontrast(Transform):
    """As ``v2.RandomAutocontrast`` on PIL images: each channel is stretched to the full range."""

    _name = "random_autocontrast"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=number("p", p))


class RandomEqualize(Transform):
    """As ``v2.RandomEqualize``: the histogram of each channel becomes flat."""

    _name = "random_equalize"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=number("p", p))


class RandomInvert(Transform):
    """As ``v2.RandomInvert``: each value x becomes 255 - x."""

    _name = "random_invert"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=number("p", p))


class RandomPosterize(Transform):
    """As ``v2.RandomPosterize``: the lower bits of each value become 0.

    :param bits: the number of upper bits that remain, from 1 to 8.
    :param p: the probability.
    """

    _name = "random_posterize"

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(bits=whole("bits", bits), p=number("p", p))


class RandomSolarize(Transform):
    """As ``v2.RandomSolarize`` on PIL images: bright values are inverted.

    :param threshold: the least value that is inverted, from 0 to 256.
    :param p: the probability.
    """

    _name = "random_solarize"

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(threshold=number("threshold", threshold), p=number("p", p))


class AdjustGamma(Transform):
    """As ``v2.functional.adjust_gamma`` on PIL images, with fixed parameters.

    :param gamma: the exponent, not below 0; above 1 darkens.
    :param gain: the factor of the result, not below 0.
    """

    _name = "adjust_gamma"

    def __init__(self, gamma: float, gain: float = 1.0) -> None:
        super().__init__(gamma=number("gamma", gamma), gain=number("gain", gain))


class SigmoidContrast(Transform):
    """Contrast by a sigmoid curve, as in crumpets.

    :param contrast: the share of the curve, from -1 to 1; negative lowers the contrast.
    """

    _name = "sigmoid_contrast"

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast=number("contrast", contrast))


class RandomGamma(Transform):
    """Random gamma and contrast, as in crumpets: each is drawn with the probability ``p``.

    A brightness of b above 0 is a gamma of 1 - b, one below 0 a gamma of 1 / (1 + b).

    :param brightness: bounds of the brightness of all channels, from -1 to 1; b: (b, b).
    :param color: bounds of the brightness of each channel, from -1 to 1; None: the same for all.
    :param contrast: bounds of the contrast, as of :class:`RandomSigmoidContrast`; None: it stays.
    :param p: the probability of each of them.
    """

    _name = "random_gamma"

    def __init__(
        self,
        brightness: Numbers = (-0.5, 0.5),
        color: Optional[Numbers] = None,
        contrast: Optional[Numbers] = None,
        p: float = 0.5,
    ) -> None:
        super().__init__(
            brightness=ends("brightness", brightness),
            color=None if color is None else ends("color", color),
            contrast=None if contrast is None else ends("contrast", contrast),
            p=number("p", p),
        )


class RandomSigmoidContrast(Transform):
    """Random contrast by a sigmoid curve, as in crumpets: :class:`SigmoidContrast`.

    :param contrast: bounds of the share of the curve, from -1 to 1; negative lowers the contrast.
    :param p: the probability.
    """

    _name = "random_sigmoid_contrast"

    def __init__(self, contrast: Numbers = (-1.0, 1.0), p: float = 0.5) -> None:
        super().__init__(contrast=ends("contrast", contrast), p=number("p", p))


class ConvertColor(Transform):
    """To another colour space, as OpenCV's ``cvtColor`` of uint8 does from RGB.

    :param space: ``"hsv"``, ``"hls"``, ``"lab"`` or ``"ycrcb"``. No operation on colours can follow.
    """

    _name = "convert_color"

    def __init__(self, space: str) -> None:
        super().__init__(space=space)


class RandomErasing(Transform):
    """As ``v2.RandomErasing`` and timm's: rectangles of the tensor are replaced. Comes last.

    :param p: the probability.
    :param scale: bounds of the area as a share of the tensor's, from 0 to 1.
    :param ratio: bounds of height over width, above 0.
    :param mode: ``"const"``: the value; ``"rand"``: a normal number for each channel;
        ``"pixel"``: one for each element. The latter two need a float type.
    :param value: a number, or one for each channel, in the type of the tensor; or torchvision's
        ``"random"``, which is the mode ``"pixel"``.
    :param min_count: the minimum number of rectangles, 1 to 64, among which the area is divided.
    :param max_count: the maximum number, not below ``min_count``; by default 1.
    """

    _name = "random_erasing"

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        mode: Optional[str] = None,
        value: Union[None, str, float, Sequence[float]] = None,
        min_count: Optional[int] = None,
        max_count: Optional[int] = None,
    ) -> None:
        values: Optional[List[float]] = None
        if isinstance(value, str):
            if value != "random" or mode not in (None, "pixel"):
                raise RecipeError(
                    f"RandomErasing: value is {value!r} with mode={mode!r}",
                    remedy='give a number, one per channel, or value="random" alone',
                )
            mode = "pixel"
        elif value is not None:
            given = numbers("value", value)
            values = given if isinstance(given, list) else [given]
        super().__init__(
            p=number("p", p),
            scale=floats("scale", scale),
            ratio=floats("ratio", ratio),
            mode=mode,
            value=values,
            min_count=min_count,
            max_count=max_count,
        )
