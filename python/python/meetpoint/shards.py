"""A command divided among processes or hosts: the commands of ``meetpoint shards``.

::

    plan = meetpoint.shards.plan("pack", "photos", "photos.set", shards=8, part_samples=1000)
    meetpoint.shards.run(plan.folder, 3)  # on any host that sees the folder, for each shard
    meetpoint.shards.commit(plan.folder)

The result is byte-identical for any number of shards, attempts and crashes, and to that of the
command itself with the same ``part_samples`` or ``part_source_bytes``. All hosts must see the
source, the destination and the folder of the plan under the same paths.
"""

from __future__ import annotations

import inspect
import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Literal, Union

from . import _commands, _native
from ._arguments import U64, compose, path, text, whole
from ._options import options as checked
from ._progress import Progress, shown
from ._results import Converted, Packed, Prepared, Verified, of_json
from .errors import SettingError

__all__ = ["ShardPlan", "ShardRun", "commit", "open", "plan", "run"]


def __dir__() -> "list[str]":
    """The public names, without those imported for internal use."""
    return sorted(__all__)


_Path = Union[str, "os.PathLike[str]"]
_Result = Union[Packed, Converted, Prepared, Verified]
_Command = Literal["pack", "convert", "prepare", "verify"]

_FUNCTIONS: Dict[str, Callable[..., Any]] = {
    "pack": _commands.pack,
    "convert": _commands.convert,
    "prepare": _commands.prepare,
    "verify": _commands.verify,
}
_RESULTS: Dict[str, Any] = {
    "pack": Packed,
    "convert": Converted,
    "prepare": Prepared,
    "verify": Verified,
}
# Options that have no effect on a plan, or that shards do not support.
_UNUSED: Dict[str, List[str]] = {
    "pack": ["resume", "progress"],
    "convert": ["progress"],
    "prepare": ["resume", "progress"],
    "verify": ["progress", "deep", "cache_dir", "cache_size", "anonymous"],
}


@dataclass(frozen=True)
class ShardPlan:
    """A plan that was written to its folder."""

    folder: str
    """The folder, ``DESTINATION.shards``."""
    sha256: str
    """SHA-256 of the plan, which the record of every finished part contains."""
    command: str
    destination: str
    shards: int
    parts: int
    samples: int
    """Samples of the source."""
    source_bytes: int
    idle_shards: int
    """Shards without a part, because there are fewer parts than shards."""


@dataclass(frozen=True)
class ShardRun:
    """Summary of a shard's run."""

    shard: int
    shards: int
    parts: int
    """Parts of the shard."""
    parts_before: int
    """Parts of the shard that were finished before this run."""
    samples: int
    """Samples of the source in the other parts."""
    lines: List[Dict[str, Any]]
    """The record of each part that this run finished."""


def plan(command: _Command, *paths: Any, shards: int, **options: Any) -> ShardPlan:
    """Lists the source of a command, cuts it into parts and writes the plan; reads no content.

    :param command: ``"pack"``, ``"convert"``, ``"prepare"`` or ``"verify"``.
    :param paths: positional arguments of :func:`meetpoint.pack`, :func:`meetpoint.convert`,
        :func:`meetpoint.prepare` or :func:`meetpoint.verify`; ``options`` are the others.
    :param shards: number of shards; with more shards than parts, some have nothing to do.
    :raises PackError: the source or the destination is unusable; the message has the remedy.
    :raises TypeError: an argument that the command does not have.
    """
    function = _FUNCTIONS.get(text("command", command))
    if function is None:
        remedy = f"set command to one of {', '.join(map(repr, _FUNCTIONS))}"
        raise SettingError(f"command is {command!r}", remedy=remedy)
    for name in _UNUSED[command]:
        if options.get(name) not in (None, False):
            raise SettingError(f"{name} has no effect on a plan", remedy="leave it out")
    bound = inspect.signature(function).bind(*paths, **options)
    bound.apply_defaults()
    given = dict(bound.arguments)
    for name in _UNUSED[command]:
        if given.get(name) is None:
            given.pop(name, None)
    positional = [
        compose(given[name]).to_toml() if name == "recipe" else path(name, given[name])
        for name in ("recipe", "source", "dataset", "destination")
        if name in given
    ]
    number = whole("shards", shards, U64, least=1)
    return of_json(ShardPlan, _native.plan_shards(command, positional, checked(given), number))


def open(folder: _Path) -> ShardPlan:
    """Opens the plan in a folder.

    :raises PackError: the folder holds no plan, or one of another version.
    """
    return of_json(ShardPlan, _native.open_shards(path("folder", folder)))


def run(
    folder: _Path, shard: int, *, threads: int = 0, progress: Union[bool, Progress, None] = None
) -> ShardRun:
    """Runs the unfinished parts of a shard.

    A shard may run several times, even at the same time: all attempts write the same bytes.

    :param shard: index of the shard, from 0.
    :param threads: threads; 0 for one per core.
    :raises PackError: the source changed, a sample cannot be read, or the shard does not exist.
    """
    of = path("folder", folder)
    with shown(progress, os.path.basename(of)) as report:
        ran = json.loads(
            _native.run_shard(of, whole("shard", shard, U64), whole("threads", threads), report)
        )
    return ShardRun(**ran["summary"], lines=ran["lines"])


def commit(folder: _Path) -> _Result:
    """Checks the results of all shards, creates the destination, and removes the plan.

    :raises PackError: shards are missing, or a part differs from its record; the message names
        them.
    """
    command, summary = _native.commit_shards(path("folder", folder))
    result: _Result = of_json(_RESULTS[command], summary)
    return result
