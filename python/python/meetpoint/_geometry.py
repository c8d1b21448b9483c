"""Operations that move, pad, crop and resize, with the arithmetic of Pillow."""

from __future__ import annotations

from typing import Optional, Sequence, Union

from ._transform import Transform
from ._values import Numbers, Wholes, both_sides, colour, number, numbers, whole, wholes, word


class RandomRotation(Transform):
    """As ``v2.RandomRotation`` on PIL images: Pillow's ``Image.rotate``.

    :param degrees: bounds of the angle in degrees, counterclockwise; x means (-x, x).
    :param interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or torchvision's enum.
    :param expand: whether the result is enlarged to contain the whole rotated picture. Its size
        then varies, so a later operation must set it.
    :param center: column and row of the point that stays, in pixels; None: the centre.
    :param fill: colour outside the picture, 0 to 255, for all channels or for each.
    """

    _name = "random_rotation"

    def __init__(
        self,
        degrees: Numbers,
        interpolation: object = "nearest",
        expand: bool = False,
        center: Optional[Sequence[float]] = None,
        fill: Optional[Wholes] = 0,
    ) -> None:
        super().__init__(
            degrees=numbers("degrees", degrees),
            interpolation=word(interpolation),
            expand=expand,
            center=None if center is None else numbers("center", center),
            fill=colour(fill),
        )


class RandomAffine(Transform):
    """As ``v2.RandomAffine`` on PIL images: Pillow's ``AFFINE``. With ``size`` it also resizes.

    :param degrees: bounds of the angle in degrees, clockwise; x means (-x, x).
    :param translate: largest shifts as shares of width and height, 0 to 1; None: no shift.
    :param scale: bounds of the scale, above 0; None: 1.
    :param shear: shears in degrees: x; (low, high) along rows; or (low, high) along rows followed
        by (low, high) along columns; None: no shear.
    :param interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or torchvision's enum.
    :param fill: colour outside the picture, 0 to 255, for all channels or for each.
    :param center: column and row of the point that stays, in pixels; None: the centre.
    :param size: side of the result in pixels, or (height, width), which the picture fills at a
        scale of 1; None: the size of the picture.
    :param supersampling: samples along each side of a pixel, 1 to 3; the pixel is the mean of all
        of them. ``"auto"`` depends on the scale.
    """

    _name = "random_affine"

    def __init__(
        self,
        degrees: Numbers,
        translate: Optional[Sequence[float]] = None,
        scale: Optional[Sequence[float]] = None,
        shear: Optional[Numbers] = None,
        interpolation: object = "nearest",
        fill: Optional[Wholes] = 0,
        center: Optional[Sequence[float]] = None,
        size: Optional[Wholes] = None,
        supersampling: Union[int, str] = 1,
    ) -> None:
        super().__init__(
            degrees=numbers("degrees", degrees),
            translate=None if translate is None else numbers("translate", translate),
            scale=None if scale is None else numbers("scale", scale),
            shear=None if shear is None else numbers("shear", shear),
            interpolation=word(interpolation),
            fill=colour(fill),
            center=None if center is None else numbers("center", center),
            size=None if size is None else both_sides("size", size),
            supersampling=supersampling,
        )


class CrumpetsAffine(Transform):
    """The warp of crumpets: rotated, scaled, sheared and shifted at random, to one size.

    :param size: side of the result in pixels, or (height, width).
    :param scale: bounds of the scale, above 0; at 1 the picture fills the result.
    :param shift: bounds of the shifts, as shares of what the picture has beyond the result, from -10
        to 10.
    :param rotation_sigma: standard deviation of the angle in degrees, clockwise in the picture.
    :param aspect_sigma: standard deviation of the aspect, from 0 to 1.
    :param shear: bounds of the shears, as steps along one side for each step along the other, from
        -10 to 10.
    :param scale_mode: the side of the picture that fills the result: ``"shortest"`` or
        ``"longest"``.
    :param interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or torchvision's enum.
    :param fill: colour outside the picture, 0 to 255, for all channels or for each.
    :param supersampling: as of :class:`RandomAffine`.
    """

    _name = "crumpets_affine"

    def __init__(
        self,
        size: Wholes,
        scale: Sequence[float] = (1.0, 1.0),
        shift: Sequence[float] = (0.0, 0.0),
        rotation_sigma: float = 0.0,
        aspect_sigma: float = 0.0,
        shear: Sequence[float] = (0.0, 0.0),
        scale_mode: str = "shortest",
        interpolation: object = "bilinear",
        fill: Optional[Wholes] = 0,
        supersampling: Union[int, str] = "auto",
    ) -> None:
        super().__init__(
            size=both_sides("size", size),
            scale=numbers("scale", scale),
            shift=numbers("shift", shift),
            rotation_sigma=number("rotation_sigma", rotation_sigma),
            aspect_sigma=number("aspect_sigma", aspect_sigma),
            shear=numbers("shear", shear),
            scale_mode=scale_mode,
            interpolation=word(interpolation),
            fill=colour(fill),
            supersampling=supersampling,
        )


class RandomPerspective(Transform):
    """As ``v2.RandomPerspective`` on PIL images: Pillow's ``PERSPECTIVE``.

    :param distortion_scale: how far a corner can move, as a share of half the side.
    :param p: the probability.
    :param interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or torchvision's enum.
    :param fill: colour outside the picture, 0 to 255, for all channels or for each.
    """

    _name = "random_perspective"

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: object = "bilinear",
        fill: Optional[Wholes] = 0,
    ) -> None:
        super().__init__(
            distortion_scale=number("distortion_scale", distortion_scale),
            p=number("p", p),
            interpolation=word(interpolation),
            fill=colour(fill),
        )


class ElasticTransform(Transform):
    """As ``v2.ElasticTransform``: pixels moved by smooth random fields; within 1 of torchvision.

    :param alpha: strength of the moves; one number, or one along rows and one along columns;
        None: 50.
    :param sigma: standard deviations of the smoothing in pixels, likewise, 0 to 100; None: 5.
    :param interpolation: ``"bilinear"``, ``"nearest"`` or torchvision's enum.
    :param fill: colour outside the picture, 0 to 255, for all channels or for each.
    """

    _name = "elastic_transform"

    def __init__(
        self,
        alpha: Optional[Numbers] = None,
        sigma: Optional[Numbers] = None,
        interpolation: object = "bilinear",
        fill: Optional[Wholes] = 0,
    ) -> None:
        super().__init__(
            alpha=None if alpha is None else numbers("alpha", alpha),
            sigma=None if sigma is None else numbers("sigma", sigma),
            interpolation=word(interpolation),
            fill=colour(fill),
        )


class Pad(Transform):
    """As ``v2.Pad`` on PIL images.

    :param padding: pixels on every side; (left and right, top and bottom); or (left, top, right,
        bottom).
    :param fill: colour of the padding, 0 to 255, for all channels or for each.
    :param padding_mode: ``"constant"``, ``"edge"``, ``"reflect"`` or ``"symmetric"``.
    """

    _name = "pad"

    def __init__(
        self, padding: Wholes, fill: Optional[Wholes] = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__(
            padding=wholes("padding", padding), fill=colour(fill), padding_mode=padding_mode
        )


class RandomCrop(Transform):
    """As ``v2.RandomCrop`` on PIL images.

    :param size: side of the result in pixels, or (height, width).
    :param padding: pixels that are added first, as for :class:`Pad`; None: none.
    :param pad_if_needed: whether a side that is too short is padded on both ends.
    :param fill: colour of the padding, 0 to 255, for all channels or for each.
    :param padding_mode: ``"constant"``, ``"edge"``, ``"reflect"`` or ``"symmetric"``.
    """

    _name = "random_crop"

    def __init__(
        self,
        size: Wholes,
        padding: Optional[Wholes] = None,
        pad_if_needed: bool = False,
        fill: Optional[Wholes] = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__(
            size=both_sides("size", size),
            padding=None if padding is None else wholes("padding", padding),
            pad_if_needed=pad_if_needed,
            fill=colour(fill),
            padding_mode=padding_mode,
        )


class RandomZoomOut(Transform):
    """As ``v2.RandomZoomOut``: the picture is padded to a larger canvas.

    :param fill: colour of the padding, 0 to 255, for all channels or for each.
    :param side_range: bounds of a side of the canvas as a multiple of the picture's, from 1.
    :param p: the probability.
    """

    _name = "random_zoom_out"

    def __init__(
        self, fill: Optional[Wholes] = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5
    ) -> None:
        super().__init__(
            fill=colour(fill), side_range=numbers("side_range", side_range), p=number("p", p)
        )


class RandomIoUCrop(Transform):
    """As ``v2.RandomIoUCrop``: a random part that overlaps with a box, or all of the picture.

    It needs one target of :class:`~meetpoint.transforms.Boxes`. Boxes whose centres are cut off are
    removed if the target has ``min_size`` or ``min_area``; otherwise they become 0, 0, 0, 0. After
    50 rounds without such a part the picture is unchanged, while torchvision would try forever.

    :param min_scale: minimum side as a share of the picture's.
    :param max_scale: maximum side as a share of the picture's.
    :param min_aspect_ratio: minimum width over height.
    :param max_aspect_ratio: maximum width over height.
    :param sampler_options: minimum overlaps (intersection over union), one of which is drawn; 1 is
        the whole picture. None: 0, 0.1, 0.3, 0.5, 0.7, 0.9 and 1.
    :param trials: attempts before another overlap is drawn.
    """

    _name = "random_iou_crop"

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: Optional[Sequence[float]] = None,
        trials: int = 40,
    ) -> None:
        options = None if sampler_options is None else numbers("sampler_options", sampler_options)
        super().__init__(
            min_scale=number("min_scale", min_scale),
            max_scale=number("max_scale", max_scale),
            min_aspect_ratio=number("min_aspect_ratio", min_aspect_ratio),
            max_aspect_ratio=number("max_aspect_ratio", max_aspect_ratio),
            sampler_options=options,
            trials=whole("trials", trials),
        )


class RandomResize(Transform):
    """As ``v2.RandomResize``: a random shorter side.

    :param min_size: minimum length of the shorter side in pixels.
    :param max_size: maximum length of the shorter side, exclusive.
    :param interpolation: a filter of :class:`Resize`.
    """

    _name = "random_resize"

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: object = "bilinear",
        *,
        antialias: bool = True,
    ) -> None:
        super().__init__(
            min_size=whole("min_size", min_size),
            max_size=whole("max_size", max_size),
            interpolation=word(interpolation),
            antialias=antialias,
        )


class RandomShortestSize(Transform):
    """As ``v2.RandomShortestSize``: a shorter side chosen from a list.

    :param min_size: lengths of the shorter side in pixels, at most 32.
    :param max_size: maximum length of the longer side; None: no limit.
    :param interpolation: a filter of :class:`Resize`.
    """

    _name = "random_shortest_size"

    def __init__(
        self,
        min_size: Wholes,
        max_size: Optional[int] = None,
        interpolation: object = "bilinear",
        *,
        antialias: bool = True,
    ) -> None:
        super().__init__(
            min_size=wholes("min_size", min_size),
            max_size=None if max_size is None else whole("max_size", max_size),
            interpolation=word(interpolation),
            antialias=antialias,
        )


class ScaleJitter(Transform):
    """As ``v2.ScaleJitter``: a random factor.

    :param target_size: (width, height) in pixels that the picture fits into at a factor of 1. As in
        torchvision, the width comes first.
    :param scale_range: bounds of the factor, above 0.
    :param interpolation: a filter of :class:`Resize`.
    """

    _name = "scale_jitter"

    def __init__(
        self,
        target_size: Sequence[int],
        scale_range: Sequence[float] = (0.1, 2.0),
        interpolation: object = "bilinear",
        *,
        antialias: bool = True,
    ) -> None:
        super().__init__(
            target_size=wholes("target_size", target_size),
            scale_range=numbers("scale_range", scale_range),
            interpolation=word(interpolation),
            antialias=antialias,
        )
