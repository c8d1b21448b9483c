"""Decoding, resizing, cropping and mirroring."""

from __future__ import annotations

from typing import Optional, Sequence, Union

from . import _values
from ._transform import Transform

Size = Union[int, Sequence[int]]


class Decode(Transform):
    """How files are decoded. A recipe without it decodes exactly as Pillow.

    :param scaled: a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, if that is at least the
        size needed by the first resize. Not exact.
    :param orient: rotates and mirrors a JPEG according to its Exif orientation.
    :param on_error: ``"fail"``, or ``"lenient"``: missing data of a damaged JPEG are filled in as
        by libjpeg.
    :param mode: the channels of the picture and their type: ``"rgb"``; ``"gray"``, which is the luma
        plane of a JPEG and Pillow's ``convert("L")`` of other formats; ``"rgba"``; ``"gray16"`` and
        ``"rgb16"`` of uint16, and ``"float"``, from files that hold exactly these numbers.
    """

    _name = "decode"

    def __init__(
        self,
        *,
        scaled: bool = False,
        orient: bool = False,
        on_error: str = "fail",
        mode: str = "rgb",
    ) -> None:
        super().__init__(scaled=scaled, orient=orient, on_error=on_error, mode=mode)


class Resize(Transform):
    """As ``v2.Resize``.

    :param size: the shorter side in pixels, or (height, width).
    :param interpolation: ``"bilinear"``, ``"bicubic"``, ``"nearest"``, ``"box"``, ``"hamming"``,
        ``"lanczos"`` or torchvision's enum.
    :param max_size: the maximum of the longer side, if ``size`` is the shorter one; None: no limit.
    """

    _name = "resize"

    def __init__(
        self,
        size: Size,
        interpolation: object = "bilinear",
        max_size: Optional[int] = None,
        *,
        antialias: bool = True,
    ) -> None:
        side = _values.wholes("size", size)
        if isinstance(side, list) and len(side) == 1:
            # Torchvision's [side] is the shorter side.
            side = side[0]
        super().__init__(
            size=side,
            interpolation=_values.word(interpolation),
            antialias=antialias,
            max_size=max_size,
        )


class CenterCrop(Transform):
    """As ``v2.CenterCrop``: a smaller picture is padded with black."""

    _name = "center_crop"

    def __init__(self, size: Size) -> None:
        super().__init__(size=_values.both_sides("size", size))


class RandomResizedCrop(Transform):
    """As ``v2.RandomResizedCrop``.

    :param size: side of the result in pixels, or (height, width).
    :param scale: bounds of the crop's area as a share of the picture's.
    :param ratio: bounds of the crop's width over its height.
    """

    _name = "random_resized_crop"

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: object = "bilinear",
        *,
        antialias: bool = True,
    ) -> None:
        super().__init__(
            size=_values.both_sides("size", size),
            scale=_values.floats("scale", scale),
            ratio=_values.floats("ratio", ratio),
            interpolation=_values.word(interpolation),
            antialias=antialias,
        )


class FiveCrop(Transform):
    """As ``v2.FiveCrop``: the four corners and the middle, stacked as [5, ...] for each sample.

    The transforms after it are applied to each crop, with the same random parameters.

    :param size: side of a crop in pixels, or (height, width); no larger than the picture.
    """

    _name = "five_crop"

    def __init__(self, size: Size) -> None:
        super().__init__(size=_values.both_sides("size", size))


class TenCrop(Transform):
    """As ``v2.TenCrop``: the crops of :class:`FiveCrop`, then those of the mirrored picture.

    :param size: side of a crop in pixels, or (height, width); no larger than the picture.
    :param vertical_flip: mirrors top to bottom, not left to right.
    """

    _name = "ten_crop"

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__(size=_values.both_sides("size", size), vertical_flip=bool(vertical_flip))


class RandomHorizontalFlip(Transform):
    """As ``v2.RandomHorizontalFlip``."""

    _name = "random_horizontal_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=_values.number("p", p))


class RandomVerticalFlip(Transform):
    """As ``v2.RandomVerticalFlip``."""

    _name = "random_vertical_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=_values.number("p", p))
