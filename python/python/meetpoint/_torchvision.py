"""Objects of torchvision into transforms of ours, by the names of classes and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional

from .errors import RecipeError

if TYPE_CHECKING:
    from .transforms import Transform

_KNOWN = (
    "Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip, ToImage, PILToTensor, ToTensor, "
    "ToDtype, ConvertImageDtype, ConvertDtype, Normalize, RGB and Identity"
)


def is_of_torchvision(it: object) -> bool:
    """Whether an object's class is one of torchvision's."""
    module = type(it).__module__ or ""
    return module == "torchvision" or module.startswith("torchvision.")


def from_torchvision(compose: object) -> List["Transform"]:
    """The transforms that a torchvision object, or a list of them, stands for."""
    refused: List[str] = []
    made = _of(compose, refused)
    if refused:
        raise RecipeError(
            "torchvision transforms that a recipe cannot hold: "
            + ", ".join(refused)
            + f"; it can hold {_KNOWN}. Do the others on the batch after the loader"
        )
    return made


def _of(it: Any, refused: List[str]) -> List["Transform"]:
    name = type(it).__name__
    if isinstance(it, (list, tuple)):
        items: List[Any] = list(it)  # pyright: ignore[reportUnknownArgumentType]
        return [made for part in items for made in _of(part, refused)]
    if name in ("Compose", "Sequential"):
        return [made for part in getattr(it, "transforms", it) for made in _of(part, refused)]
    made = _one(it, name, refused)
    return made


def _one(it: Any, name: str, refused: List[str]) -> List["Transform"]:
    from . import transforms as ours

    def refuse(why: str) -> List["Transform"]:
        refused.append(f"{name} ({why})")
        return []

    interpolation = getattr(it, "interpolation", "bilinear")
    antialias = _antialias(it)
    if name == "Resize":
        if getattr(it, "max_size", None) is not None:
            return refuse("with max_size")
        if it.size is None:
            return refuse("without a size")
        return [ours.Resize(it.size, interpolation, antialias=antialias)]
    if name == "CenterCrop":
        return [ours.CenterCrop(it.size)]
    if name == "RandomResizedCrop":
        crop = ours.RandomResizedCrop(
            it.size, it.scale, it.ratio, interpolation, antialias=antialias
        )
        return [crop]
    if name == "RandomHorizontalFlip":
        return [ours.RandomHorizontalFlip(it.p)]
    if name in ("ToImage", "PILToTensor"):
        return [ours.ToImage()]
    if name == "ToTensor":
        return [ours.ToTensor()]
    if name in ("ToDtype", "ConvertImageDtype", "ConvertDtype"):
        if isinstance(it.dtype, dict):
            return refuse("with a dtype for each type")
        scale = bool(getattr(it, "scale", name != "ToDtype"))
        return [ours.ToDtype(it.dtype, scale=scale)]
    if name == "Normalize":
        return [ours.Normalize(_floats(it.mean), _floats(it.std))]
    if name in ("RGB", "Identity"):
        # Pictures are RGB from the beginning.
        return []
    return refuse("not known")


def _antialias(it: Any) -> bool:
    antialias: Optional[Any] = getattr(it, "antialias", True)
    # Torchvision's "warn" and None stand for what Pillow does with its images: always.
    return antialias if isinstance(antialias, bool) else True


def _floats(numbers: Any) -> List[float]:
    return [float(number) for number in numbers]
