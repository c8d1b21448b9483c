"""The type of delivered batches: arrays of NumPy, torch or JAX, none of them copied."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Callable, Dict

from . import _native
from .errors import SettingError

Converter = Callable[[_native.Tensor], Any]


def converter(output: str, *, pin: bool = False, gpu: bool = False) -> Converter:
    """Converts a batch for delivery; ``pin`` requests torch's pinned memory, ``gpu`` says that
    batches are on a GPU.

    :raises SettingError: an unknown output.
    """
    converters: Dict[str, Converter] = {
        "numpy": _as_numpy,
        "dlpack": _as_it_is,
        "torch": _as_torch,
        "jax": _as_jax,
    }
    if not isinstance(output, str) or output not in converters:
        raise SettingError(
            f"output is {output!r}", remedy=f"set output to one of {', '.join(converters)}"
        )
    if pin:
        from ._pinned import converter as pinned

        return pinned()
    if output in ("torch", "jax") and importlib.util.find_spec(output) is None:
        raise SettingError(
            f'output is "{output}", which is not installed', remedy=f"pip install {output}"
        )
    if gpu and output == "torch":
        _check_torch_has_cuda()
    return converters[output]


def _check_torch_has_cuda() -> None:
    torch: Any = importlib.import_module("torch")
    if torch.version.cuda is None:
        raise SettingError(
            f"device_out is a GPU, but torch {torch.__version__} is built without CUDA",
            remedy="install a torch with CUDA, see https://pytorch.org/get-started/locally",
        )


def load(convert: Converter) -> None:
    """Imports the library that a converter needs."""
    module = _MODULES.get(convert)
    if module is not None:
        importlib.import_module(module)


def has_narrow_integers(convert: Converter) -> bool:
    """Whether integers of 64 bits are not taken: JAX's default, without leave to use them."""
    return convert is _as_jax


def _as_it_is(tensor: _native.Tensor) -> Any:
    return tensor


def _as_numpy(tensor: _native.Tensor) -> Any:
    import numpy

    return numpy.asarray(tensor)


def _as_torch(tensor: _native.Tensor) -> Any:
    torch: Any = importlib.import_module("torch")
    return torch.from_dlpack(tensor)


def _as_jax(tensor: _native.Tensor) -> Any:
    jax_numpy: Any = importlib.import_module("jax.numpy")
    if tensor.dtype in _WIDE and tensor.__dlpack_device__()[0] == _CPU:
        # Copied, and narrowed to 32 bits unless JAX uses 64.
        return jax_numpy.asarray(_as_numpy(tensor))
    return jax_numpy.from_dlpack(tensor)


_WIDE = ("int64", "uint64", "float64")

_CPU = 1
"""As in DLPack."""


_MODULES: Dict[Converter, str] = {_as_numpy: "numpy", _as_torch: "torch", _as_jax: "jax.numpy"}
