"""The operations on every picture, with the names of ``torchvision.transforms.v2``.

A :class:`Compose` is data: it is compared, printed, written as TOML, and executed by the host and
by devices with the same result, bit for bit. ``from_torchvision`` makes one of torchvision's own
objects. ``meetpoint recipe schema`` lists all operations with their keys; one without a class here
has a class made from its declaration.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from inspect import Parameter, Signature
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
    cast,
)

from . import _native, _values
from ._batches import CutMix, MixUp, OneHot, TimmMixup
from ._choices import RandomApply, RandomChoice, RandomOrder
from ._colours import (
    AdjustGamma,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomErasing,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
    SigmoidContrast,
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
from ._targets import (
    Boxes,
    Keypoints,
    Mask,
    Saliency,
    Target,
    from_table as _from_table,
    to_toml as _targets_to_toml,
)
from ._torchvision import from_torchvision as _translate
from ._transform import Transform, spell as _spell
from .errors import RecipeError

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
    "from_torchvision",
]


def __dir__() -> "list[str]":
    """The public names; imports for internal use are not completed."""
    return sorted({*__all__, *_declared()})


Size = Union[int, Sequence[int]]
Factor = Union[float, Sequence[float]]


class Decode(Transform):
    """How files are decoded. A recipe without it begins with the exact way, which is Pillow's.

    :param scaled: a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, where that leaves at least
        the pixels of the first resize. Not exact.
    :param orient: turned as the Exif orientation says.
    :param on_error: ``"fail"``, or ``"lenient"``: a damaged JPEG is completed as libjpeg does it.
    """

    _name = "decode"

    def __init__(
        self,
        *,
        scaled: bool = False,
        orient: bool = False,
        on_error: str = "fail",
    ) -> None:
        super().__init__(scaled=scaled, orient=orient, on_error=on_error)


class Resize(Transform):
    """As ``v2.Resize``.

    :param size: the shorter side in pixels, or (height, width).
    :param interpolation: ``"bilinear"``, ``"bicubic"``, ``"nearest"``, ``"box"``, ``"hamming"``,
        ``"lanczos"`` or torchvision's enum.
    :param max_size: the largest longer side, where ``size`` is the shorter one; None: any.
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


class Grayscale(Transform):
    """As ``v2.Grayscale``: Pillow's luma, in one channel or three equal ones."""

    _name = "grayscale"

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(
            num_output_channels=_values.whole("num_output_channels", num_output_channels)
        )


class RandomGrayscale(Transform):
    """As ``v2.RandomGrayscale``: the number of channels stays."""

    _name = "random_grayscale"

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=_values.number("p", p))


class ColorJitter(Transform):
    """As ``v2.ColorJitter`` on PIL images: the properties are changed in random order.

    A number x stands for the factors [1 - x, 1 + x], of the hue for the shifts [-x, x]; (low, high)
    for themselves. A property that is left out stays as it is.

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
            brightness=None if brightness is None else _values.numbers("brightness", brightness),
            contrast=None if contrast is None else _values.numbers("contrast", contrast),
            saturation=None if saturation is None else _values.numbers("saturation", saturation),
            hue=None if hue is None else _values.numbers("hue", hue),
        )


class ToDtype(Transform):
    """As ``v2.ToDtype``.

    :param dtype: ``"uint8"``, ``"float16"``, ``"float32"``, or a dtype of torch or NumPy.
    :param scale: whether uint8 values are scaled to 0..1 when converted to a float type: multiplied
        by 1/255, as in v2, or with ``"divide"`` divided by 255, as in ``ToTensor`` and the first
        version of ``ConvertImageDtype``. The results differ in the last bit.
    """

    _name = "to_dtype"

    def __init__(self, dtype: object, *, scale: Union[bool, Literal["divide"]] = False) -> None:
        super().__init__(dtype=_dtype(dtype), scale=scale)


class Normalize(Transform):
    """As ``v2.Normalize``: (x - mean) / std for each channel, on a float type."""

    _name = "normalize"

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(mean=_values.floats("mean", mean), std=_values.floats("std", std))


class Layout(Transform):
    """The order of the axes of a batch: ``"NHWC"``, the default, or ``"NCHW"``."""

    _name = "layout"

    def __init__(self, layout: str) -> None:
        super().__init__(layout=layout)


class ToImage(Transform):
    """As ``v2.ToImage``: channels first, ``Layout("NCHW")``."""

    _name = "layout"

    def _operations(self) -> List[Tuple[str, Dict[str, Any]]]:
        return [("layout", {"layout": "NCHW"})]


class PILToTensor(ToImage):
    """As ``v2.PILToTensor``: the same as :class:`ToImage`."""


class ToTensor(Transform):
    """As ``ToTensor``: channels first, float32 from 0 to 1, divided by 255."""

    _name = "to_tensor"

    def _operations(self) -> List[Tuple[str, Dict[str, Any]]]:
        to_dtype = ("to_dtype", {"dtype": "float32", "scale": "divide"})
        return [("layout", {"layout": "NCHW"}), to_dtype]


class Compose:
    """Operations in order: a recipe, checked when it is made. One inside of another is a sequence.

    :param targets: columns of the dataset that move with the picture, by their names:
        ``{"boxes": Boxes("xywh", min_size=1, filters=["category"]), "mask": Mask(255)}``.
    :raises RecipeError: an operation, key or order that cannot be followed, or a target that an
        operation cannot move.
    """

    def __init__(
        self,
        transforms: Sequence[Union[Transform, Compose]],
        targets: Optional[Mapping[str, Target]] = None,
    ) -> None:
        flat: List[Any] = []
        for transform in transforms:
            flat.extend(transform._inside() if isinstance(transform, Compose) else [transform])
        for transform in flat:
            if not isinstance(transform, Transform):
                raise RecipeError(
                    f"{transform!r} is not a transform of meetpoint.transforms",
                    remedy="from_torchvision translates those of torchvision",
                )
        for column, target in (targets or {}).items():
            if not isinstance(target, Target):
                raise RecipeError(
                    f"the target {column!r} is {target!r}",
                    remedy="give Mask(), Saliency(), Boxes(\"xyxy\") or Keypoints()",
                )
        self._targets = dict(targets or {})
        self._transforms: List[Transform] = flat
        operations: List[Tuple[str, Dict[str, Any]]] = []
        made_of: List[Tuple[int, str]] = []
        for position, transform in enumerate(flat, 1):
            for operation in transform._operations():
                operations.append(operation)
                made_of.append((position, type(transform).__name__))
        if not operations or operations[0][0] != "decode":
            operations.insert(0, ("decode", {}))
            made_of.insert(0, (0, "Decode"))
        text = _to_toml(operations) + _targets_to_toml(self._targets)
        self._described = _native.describe_recipe(text, made_of)

    def _inside(self) -> List[Transform]:
        """Its operations, as a sequence inside of another recipe."""
        if self._targets:
            raise RecipeError(
                f"{self!r} inside of another Compose has targets of its own",
                remedy="give the targets to the outermost Compose",
            )
        return self._transforms

    @classmethod
    def from_toml(cls, text: str) -> Compose:
        """A recipe file's text. ``Compose.from_toml(it.to_toml()) == it`` for every recipe."""
        described = _native.describe_recipe(text)
        form: Any = json.loads(described["canonical"])
        if described["canonical"].startswith("["):
            # Without targets, the form is the list of the operations alone.
            form = {"operations": form, "targets": {}}
        operations: List[Dict[str, Any]] = form["operations"]
        targets: Dict[str, Dict[str, Any]] = form["targets"]
        return cls(
            [_from_operation(it) for it in operations],
            {column: _from_table(keys) for column, keys in targets.items()},
        )

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> Compose:
        """Reads a recipe file.

        :raises RecipeError: there is none that can be read, or it is no recipe.
        """
        try:
            text = _native.read_text(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise RecipeError(
                f"recipe {os.fspath(path)!r} cannot be read ({why})",
                remedy="give the path of a recipe file, or transforms",
                file=os.fsdecode(path),
            ) from error
        return cls.from_toml(text)

    def to_toml(self) -> str:
        """As a recipe file, every default spelled out."""
        return self._described["toml"]

    @property
    def targets(self) -> Dict[str, Target]:
        """The columns that move with the picture."""
        return dict(self._targets)

    @property
    def hash(self) -> str:
        """SHA-256 of what it does, in hexadecimal digits: equal for equal recipes."""
        return self._described["hash"]

    @property
    def is_deterministic(self) -> bool:
        """Whether nothing in it is drawn at random."""
        return self._described["is_deterministic"]

    @property
    def output(self) -> Optional[_native.Output]:
        """Shape, dtype and layout of one sample; ``None`` where that depends on the picture."""
        return self._described["output"]

    def __iter__(self) -> Iterator[Transform]:
        return iter(self._transforms)

    def __len__(self) -> int:
        return len(self._transforms)

    def __eq__(self, other: object) -> bool:
        return self.hash == other.hash if isinstance(other, Compose) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        targets = f", targets={self._targets!r}" if self._targets else ""
        return f"Compose({self._transforms!r}{targets})"

    def __reduce__(self) -> Tuple[Any, Tuple[str]]:
        return (Compose.from_toml, (self.to_toml(),))


_CLASSES: Dict[str, Type[Transform]] = {
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
        Pad,
        RandomZoomOut,
        RandomHorizontalFlip,
        RandomVerticalFlip,
        RandomRotation,
        RandomAffine,
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
        ToDtype,
        Normalize,
        Layout,
        RandomErasing,
        MixUp,
        CutMix,
        TimmMixup,
        OneHot,
    )
}


def _of_declaration(declaration: Dict[str, Any]) -> Type[Transform]:
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
        "__module__": __name__,
        "_name": declaration["name"],
    }
    return type(_class_name(declaration["name"]), (Transform,), content)


def _class_name(name: str) -> str:
    # torchvision's spelling.
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
def _declared() -> Dict[str, Type[Transform]]:
    """The class of every operation by its name in Python."""
    found: Dict[str, Type[Transform]] = {}
    for declaration in json.loads(_native.recipe_schema())["operations"]:
        made = _CLASSES.get(declaration["name"]) or _of_declaration(declaration)
        found[made.__name__] = made
    return found


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


def from_torchvision(
    compose: object, targets: Optional[Mapping[str, Target]] = None
) -> Compose:
    """Translates ``torchvision.transforms.v2`` (or ``v1``) objects by their classes and attributes.

    Torchvision is not imported. :class:`RecipeError` names what cannot be translated. ``targets``
    are those of :class:`Compose`.
    """
    return Compose(_translate(compose), targets)


def _from_operation(keys: Dict[str, Any]) -> Transform:
    return _declared()[_class_name(keys.pop("name"))](**keys)


def _to_toml(operations: List[Tuple[str, Dict[str, Any]]]) -> str:
    lines: List[str] = []
    for name, keys in operations:
        lines.append(f'[[operation]]\nname = "{name}"')
        lines.extend(f"{key} = {_spell(value)}" for key, value in keys.items())
    return "\n".join(lines) + "\n"


def _dtype(dtype: object) -> str:
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    return str(name).rsplit(".", 1)[-1]
