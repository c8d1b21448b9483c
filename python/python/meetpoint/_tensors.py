"""Operations that set the dtype of elements, their scale and the order of axes."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Sequence, Tuple, Union

from . import _values
from ._transform import Transform


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


def _dtype(dtype: object) -> str:
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    return str(name).rsplit(".", 1)[-1]
