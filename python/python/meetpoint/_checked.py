"""Checks the arguments of a loader and converts them to settings of the native one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional

from . import _arguments, _devices, _distributed, _gpu, _native, _output, _world
from . import collate as _collate
from ._arguments import (
    U64,
    flag,
    number,
    path_or_none,
    seconds,
    text,
    whole,
    whole_or_none,
)
from ._delivery import Delivery
from ._options import size, size_or_none
from ._world import World
from .errors import SettingError

if TYPE_CHECKING:
    from .samplers import Sampler
    from .transforms import Compose


class Checked(NamedTuple):
    """The checked arguments of a loader."""

    settings: _native.Settings
    recipe: "Compose"
    sampler: "Sampler"
    delivery: Delivery
    given_world: Optional[World]
    """The rank that was given as an argument."""
    world: World
    rendezvous: _distributed.Rendezvous
    pin_memory: bool


def check(given: Dict[str, Any], further: Dict[str, Any]) -> Checked:
    """Checks the arguments of a loader; ``further`` are those of torch alone.

    :raises SettingError: an argument out of its range.
    :raises TypeError: an unknown argument.
    """
    # Only the output for torch supports pinned memory.
    pin = bool(given["pin_memory"]) and given["output"] == "torch"
    refused = {**further, **{name: given[name] for name in _FIXED}}
    if not pin:
        refused["pin_memory"] = given["pin_memory"]
    workers = _arguments.either(num_workers=given["num_workers"], workers=given["workers"])
    prefetch = _arguments.either(
        prefetch_factor=given["prefetch_factor"], prefetch=given["prefetch"]
    )
    _arguments.refuse_unknown(refused)
    batch_size = whole("batch_size", given["batch_size"], least=1)
    seed = whole("seed", given["seed"], U64)
    sampler = _arguments.sampler(given["sampler"], _arguments.flag("shuffle", given["shuffle"]))
    drop_last = _arguments.flag("drop_last", given["drop_last"])
    strategy, order = text("strategy", given["strategy"]), text("order", given["order"])
    window = whole_or_none("window", given["window"])
    rank_timeout = seconds("rank_timeout", given["rank_timeout"])
    rendezvous = _rendezvous(given, rank_timeout)
    workers = whole_or_none("workers", workers)
    prefetch = whole_or_none("prefetch", prefetch)
    gpu, gpu_decode = _gpu.settings(given), _gpu.decoding(given)
    convert = _output.converter(given["output"], pin=pin, gpu=gpu is not None)
    ranges = _ranges(given["nvtx"])
    columns = _arguments.column_names(given["columns"])
    collate = _collate.of(given["collate"])
    transform = _arguments.function_or_none("batch_transform", given["batch_transform"])
    recipe = _arguments.compose(given["recipe"])
    sources = _devices.sources(given["device"])
    given_world = _world.given(given["rank"], given["world_size"])
    world = _world.look(given_world, rendezvous.place)
    if rendezvous.place is not None and world.source == _world.ALONE:
        raise SettingError(
            f"rendezvous is {rendezvous.place!r}, but there is only one rank",
            remedy="give rank and world_size as well, or leave rendezvous out",
        )
    if strategy == "auto" and not any(sources):
        strategy = "host-only"
    on_error = given["on_error"]
    settings: _native.Settings = {
        "dataset": _arguments.paths("dataset", given["dataset"]),
        "recipe": recipe.to_toml(),
        "columns": ["image", "label"] if columns is None else columns,
        "collate": collate._native(),
        "batch_size": batch_size,
        "drop_last": drop_last,
        "sampler": sampler._native(),
        "seed": seed,
        "strategy": strategy,
        "order": order,
        "window": window,
        "workers": _default_workers() if workers is None else workers,
        "prefetch": 2 if prefetch is None else prefetch,
        "tune": text("tune", given["tune"]),
        "memory_budget": size_or_none("memory_budget", given["memory_budget"]),
        "small_samples": _small_samples(given["small_samples"]),
        "cache": _cache(given["cache"]),
        "cache_after": whole_or_none("cache_after", given["cache_after"], least=1),
        "cache_dir": path_or_none("cache_dir", given["cache_dir"]),
        "cache_size": size("cache_size", given["cache_size"]),
        "anonymous": flag("anonymous", given["anonymous"]),
        "sockets": sources.sockets,
        "remotes": sources.remotes,
        "commands": sources.commands,
        "spool_quota": size_or_none("spool_quota", given["spool_quota"]),
        "spool_folder": path_or_none("spool_folder", given["spool_folder"]),
        "rank": world.rank,
        "ranks": world.size,
        "meeting": None,
        "rank_timeout": rank_timeout,
        "stall_timeout": seconds("stall_timeout", given["stall_timeout"]),
        "on_error": text("on_error", on_error) if isinstance(on_error, str) else on_error,
        "max_errors": whole_or_none("max_errors", given["max_errors"], U64),
        "quarantine": path_or_none("quarantine", given["quarantine"]),
        "gpu": gpu,
        "gpu_decode": gpu_decode,
    }
    if columns is None and (recipe.views or not isinstance(collate, _collate.Stack)):
        pictures = [*recipe.views] or ["image"]
        is_padded = isinstance(collate, _collate.Pad)
        sizes = [f"{column}_size" for column in pictures] if is_padded else []
        columns = [*pictures, *sizes, "label"]
        settings["columns"] = columns
    _gpu.check_pictures(given, collate, settings["columns"], [*recipe.views] or ["image"])
    delivery = Delivery(convert, columns, ranges, transform)
    return Checked(
        settings, recipe, sampler, delivery, given_world, world, rendezvous, pin
    )


def _rendezvous(given: Dict[str, Any], timeout: float) -> _distributed.Rendezvous:
    silence: Any = given["rank_link_timeout"]
    return _distributed.Rendezvous(
        place=_arguments.text_or_none("rendezvous", given["rendezvous"]),
        token_file=path_or_none("rendezvous_token_file", given["rendezvous_token_file"]),
        silence=None if silence is None else number("rank_link_timeout", silence, 1, _DAY),
        timeout=timeout,
    )


_DAY = 86_400
"""Longest ``rank_link_timeout``, in seconds."""

_FIXED = ("persistent_workers", "timeout", "in_order")
"""Arguments of torch that have no effect, accepted only with certain values."""


def _cache(value: Any) -> Optional[int]:
    """Bytes of the cache; ``None`` if the argument is ``None`` or 0."""
    if value is None or (not isinstance(value, str) and value == 0):
        return None
    return size("cache", value)


def _small_samples(value: Any) -> Optional[int]:
    """Bytes for small samples; ``None`` if the argument is ``None``."""
    if isinstance(value, str):
        return size("small_samples", value)
    return whole_or_none("small_samples", value, U64)


def _default_workers() -> int:
    return max(1, len(os.sched_getaffinity(0)) - 1)


def _ranges(wanted: Optional[bool]) -> Any:
    if wanted is False:
        return None
    # Imported here to keep the import of this package fast.
    from ._nvtx import ranges

    return ranges(wanted)
