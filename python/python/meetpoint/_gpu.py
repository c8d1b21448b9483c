"""The arguments of a loader for GPUs: one to which batches are delivered, and one that decodes."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Sequence

from . import _native
from . import collate as _collate
from ._arguments import whole
from ._options import size
from .errors import SettingError

PREFETCH = 2
MEMORY = "4GiB"
PINNED = "2GiB"
DECODE_MEMORY_MIN = 64 << 20
"""As ``GpuMemory::BYTES_MIN``."""

_NAMES = ("gpu_prefetch", "gpu_memory", "gpu_pinned_memory", "device_dtype")


def settings(given: Dict[str, Any]) -> Optional[_native.GpuArguments]:
    """The GPU and the limits; ``None``: batches stay on the host.

    :raises SettingError: an argument out of its range, or one that has no effect.
    """
    device = given["device_out"]
    if device is None:
        for name in _NAMES:
            # This one limits the memory of decoding as well.
            is_used = name == "gpu_memory" and _is_on(given["gpu_decode"])
            if given[name] is not None and not is_used:
                needed, remedy = "device_out is not", 'set device_out="cuda:0"'
                if name == "gpu_memory":
                    needed += f", and {_off(given)}"
                    remedy += ' or gpu_decode="cuda:0"'
                raise SettingError(
                    f"{name} is set, but {needed}", remedy=f"{remedy}, or leave {name} out"
                )
        return None
    device = name_of("device_out", device)
    if given["output"] == "numpy":
        raise SettingError(
            f"device_out is {device!r}, but NumPy's arrays are on the host",
            remedy='set output to "torch", "jax" or "dlpack"',
        )
    if given["pin_memory"]:
        raise SettingError(
            "pin_memory is True, but device_out delivers batches to the GPU",
            remedy="leave pin_memory out",
        )
    prefetch, memory, pinned, dtype = (given[name] for name in _NAMES)
    if dtype not in (None, "bfloat16"):
        raise SettingError(
            f"device_dtype is {dtype!r}",
            remedy='set device_dtype to "bfloat16", or name another type in the recipe\'s ToDtype',
        )
    return {
        "device": device,
        "prefetch": PREFETCH if prefetch is None else whole("gpu_prefetch", prefetch, 64),
        "memory": size("gpu_memory", MEMORY if memory is None else memory),
        "pinned": size("gpu_pinned_memory", PINNED if pinned is None else pinned),
        "bfloat16": dtype is not None,
        "packages": package_folders(),
    }


def decoding(given: Dict[str, Any]) -> Optional[_native.DecodeArguments]:
    """The GPU that prepares a share of each batch; ``None``: the CPU prepares everything.

    :raises SettingError: an argument out of its range, or one that has no effect.
    """
    if not _is_on(given["gpu_decode"]):
        if given["gpu_share"] is not None:
            raise SettingError(
                f"gpu_share is set, but {_off(given)}",
                remedy='set gpu_decode="cuda:0", or leave gpu_share out',
            )
        return None
    device = name_of("gpu_decode", given["gpu_decode"])
    share = None if given["gpu_share"] is None else _share(given["gpu_share"])
    memory = given["gpu_memory"]
    memory = None if memory is None else size("gpu_memory", memory)
    if memory is not None and memory < DECODE_MEMORY_MIN:
        raise SettingError(
            f"gpu_memory is {given['gpu_memory']!r}, too little for gpu_decode",
            remedy=f"set gpu_memory to {DECODE_MEMORY_MIN >> 20} MiB or more",
        )
    return {
        "device": device,
        "share": share,
        "memory": memory,
        "packages": package_folders(),
    }


def check_pictures(
    given: Dict[str, Any], collate: _collate.Collate, columns: Sequence[str], pictures: Sequence[str]
) -> None:
    """Checks what ``device_out`` requires of pictures; ``pictures`` names their columns.

    :raises SettingError: pictures that cannot be delivered, or none for ``device_dtype``.
    """
    if given["device_out"] is None:
        return
    if given["device_dtype"] is not None and not set(columns).intersection(pictures):
        raise SettingError(
            f"device_dtype is set, but the columns {', '.join(columns)} contain no pictures",
            remedy=f"add {pictures[0]!r} to columns, or leave device_dtype out",
        )
    if isinstance(collate, _collate.List) and given["output"] == "dlpack":
        raise SettingError(
            'collate is "list", but the tensors that output="dlpack" gives with device_out cannot '
            "be indexed",
            remedy='set output to "torch" or "jax", collate to "pad", or leave device_out out',
        )


def _is_on(gpu_decode: Any) -> bool:
    """Whether an argument names a GPU that decodes. ``False`` turns off that of a plan."""
    return gpu_decode is not None and gpu_decode is not False


def _off(given: Dict[str, Any]) -> str:
    """How ``gpu_decode``, which names no GPU, is given."""
    return "gpu_decode is False" if given["gpu_decode"] is False else "gpu_decode is not"


def _share(value: Any) -> Optional[float]:
    """A part of a batch; ``None`` for ``"auto"``."""
    if isinstance(value, str) and value == "auto":
        return None
    # A truth value is a number too, and NaN is not between any two.
    if not isinstance(value, (bool, str)):
        try:
            share = float(value)
        except (TypeError, ValueError, OverflowError):
            share = -1.0
        if 0.0 <= share <= 1.0:
            return share
    raise SettingError(
        f"gpu_share is {value!r}", remedy='set gpu_share to "auto" or a number from 0 to 1'
    )


def name_or_none(argument: str, device: Any) -> Optional[str]:
    """As :func:`name_of`; ``None`` for ``None`` and ``False``.

    :raises SettingError: it names no GPU.
    """
    return name_of(argument, device) if _is_on(device) else None


def name_of(argument: str, device: Any) -> str:
    """The text that names a GPU, which torch's devices have too.

    :raises SettingError: it names none.
    """
    if type(device).__module__.partition(".")[0] == "torch":
        device = str(device)
    if not isinstance(device, str):
        raise SettingError(
            f"{argument} is {device!r}", remedy=f'set {argument} to "cuda" or "cuda:INDEX"'
        )
    _native.check_gpu(argument, device)
    return device


def package_folders() -> List[str]:
    """Folders that may contain NVIDIA's run-time compiler as a package."""
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
