"""Arguments of torch's DataLoader: which mean the same here, and why the others do not."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional

from .errors import SettingError

_REFUSED = {
    "sampler": "the order follows from seed and epoch, so that both ends know it; use shuffle, "
    "seed and set_epoch, and rank and world_size in place of a DistributedSampler",
    "batch_sampler": "batches follow from seed, epoch and batch_size, so that both ends know them",
    "collate_fn": "batches are made in native memory without Python; change them after they come",
    "worker_init_fn": "workers are native threads that run no Python, so there is nothing to set "
    "up in them; the seed of the draws is the argument seed",
    "multiprocessing_context": "there are no worker processes; workers are native threads",
    "generator": "draws follow from (seed, epoch, sample, operation) alone; use the argument seed",
    "transform": "what is done to a picture is the argument recipe; "
    "meetpoint.from_torchvision translates torchvision's transforms",
    "transforms": "what is done to a picture is the argument recipe; "
    "meetpoint.from_torchvision translates torchvision's transforms",
    "target_transform": "labels come as they are packed; change them after they come",
    "pin_memory_device": "batches lie in pageable memory; "
    "move them with tensor.to(device) after they come",
}

# Arguments that ask for what is so in any case, and the values that do.
_AS_IT_IS: Dict[str, Any] = {
    "pin_memory": (False,),
    "timeout": (0,),
    "persistent_workers": (False, True),
    "in_order": (False, True),
    "pin_memory_device": ("",),
    "sampler": (None,),
    "batch_sampler": (None,),
    "collate_fn": (None,),
    "worker_init_fn": (None,),
    "multiprocessing_context": (None,),
    "generator": (None,),
}

_VALUES = {
    "pin_memory": 'batches lie in pageable memory, and only output="torch" can pin them; leave it '
    "out",
    "timeout": "every wait is bounded already, and ends with the host preparing the batch itself; "
    "stall_timeout says when a device is given up",
}


class Named(NamedTuple):
    """What torch's names say of our arguments."""

    workers: Optional[int]
    prefetch: Optional[int]


def take_torch_names(
    names: Dict[str, Any], *, workers: Optional[int], prefetch: Optional[int]
) -> Named:
    """Takes ``num_workers`` and ``prefetch_factor`` out of what was given."""
    return Named(
        _either(names, "num_workers", "workers", workers),
        _either(names, "prefetch_factor", "prefetch", prefetch),
    )


def _either(names: Dict[str, Any], theirs: str, ours: str, given: Optional[int]) -> Optional[int]:
    other = names.pop(theirs, None)
    if other is not None and given is not None:
        raise SettingError(f"{theirs} and {ours} mean the same; give one of them")
    return given if other is None else other


def refuse_unknown(names: Dict[str, Any]) -> None:
    """Refuses arguments that are none, each with a sentence."""
    for name, value in names.items():
        if name in _AS_IT_IS and any(value is it or value == it for it in _AS_IT_IS[name]):
            continue
        why = _VALUES.get(name) or _REFUSED.get(name)
        if why is None:
            raise TypeError(f"Loader has no argument {name!r}")
        raise TypeError(f"Loader does not take {name}={value!r}: {why}")
