"""Meetpoint on a Ray cluster: commands as tasks, Ray datasets, and loaders for Ray Train.

::

    import meetpoint.ray

    meetpoint.ray.pack("/shared/photos", "/shared/photos.set", part_samples=1000)
    rows = meetpoint.ray.read("/shared/photos.set")  # a ray.data.Dataset
    agents = meetpoint.ray.agents("storage=nvme", roots="/data/photos.set")
    loader = meetpoint.Loader("/data/photos.set", recipe=recipe, device=agents.devices)

Install it with ``pip install "meetpoint[ray]"``. Importing this module does not import Ray; its
functions do. Tasks exchange paths and records only: all nodes must see source, destination and
dataset under the same paths, and have the same version of Meetpoint.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union, cast

from . import dataset as _operations
from . import shards as _shards
from ._arguments import path as given_path
from ._dataset import Dataset
from ._dataset import open as open_dataset
from ._loader import Loader
from ._ray_agents import Agents, AgentSummary, agents
from ._ray_import import imported, plain
from ._ray_profile import NodeProfile, profile
from ._ray_supervisor import AgentStatus
from ._results import Converted, Copied, Packed, Prepared, Verified
from ._writer import Writer
from .errors import MeetpointError, PackError, SettingError

__all__ = [
    "AgentStatus",
    "AgentSummary",
    "Agents",
    "NodeProfile",
    "agents",
    "convert",
    "finish",
    "loader",
    "pack",
    "prepare",
    "profile",
    "read",
    "save",
    "verify",
    "write",
]


def __dir__() -> "list[str]":
    """The public names, without those imported for internal use."""
    return sorted(__all__)


_Path = Union[str, "os.PathLike[str]"]

_SHARDS_PER_CPU = 4
"""Shards of a plan for each CPU of the cluster, so that a slow node does not hold up the rest."""
_RETRIES = 3
"""Maximum number of times that a shard runs again after its worker or node dies."""
_STATE = "meetpoint-loader-{rank:05}-of-{size:05}.json"
"""File name of a rank's state in a checkpoint."""


def _run_shard(folder: str, shard: int, threads: int) -> Dict[str, int]:
    """Runs a shard as a task. The records of finished parts are in the folder."""
    ran = _shards.run(folder, shard, threads=threads)
    return {"shard": ran.shard, "parts": ran.parts, "parts_before": ran.parts_before}


def _count(shards: Optional[int]) -> int:
    """The number of shards, by default from the size of the cluster."""
    if shards is not None:
        return shards
    ray = imported("ray")
    if not ray.is_initialized():
        ray.init()
    return max(1, int(ray.cluster_resources().get("CPU", 1)) * _SHARDS_PER_CPU)


def finish(
    folder: _Path,
    *,
    num_cpus: float = 1,
    resources: Optional[Dict[str, float]] = None,
    max_retries: int = _RETRIES,
) -> Union[Packed, Converted, Prepared, Verified]:
    """Runs the unfinished shards of a plan as tasks, and commits on the driver.

    A shard whose worker or node dies runs again, at most ``max_retries`` times, and skips finished
    parts. After an error, the folder of the plan remains: correct the cause and call this function
    again.

    :param folder: folder of a plan (:func:`meetpoint.shards.plan`).
    :param num_cpus: CPUs of a task; a shard uses this number of threads, at least one.
    :param resources: custom resources of a task, for example to select nodes near the data.
    :raises PackError: a shard failed; the message has the remedy.
    """
    ray = imported("ray")
    plan = _shards.open(folder)
    place = os.path.abspath(given_path("folder", folder))
    task = ray.remote(num_cpus=num_cpus, resources=resources, max_retries=max_retries)(_run_shard)
    threads = max(1, int(num_cpus))
    # With more shards than parts, those without a part are skipped.
    shards = [shard for shard in range(plan.shards) if _has_parts(plan, shard)]
    waiting = [task.remote(place, shard, threads) for shard in shards]
    try:
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=1)
            plain(ray, done)
    except (MeetpointError, ray.exceptions.RayTaskError):
        _cancel(ray, waiting)
        raise
    except ray.exceptions.RayError as error:
        _cancel(ray, waiting)
        raise PackError(
            f"a shard of {place} died {max_retries + 1} times: {error}",
            file=place,
            remedy=f"see Ray's logs, then call meetpoint.ray.finish({place!r})",
        ) from error
    return _shards.commit(place)


def _has_parts(plan: _shards.ShardPlan, shard: int) -> bool:
    begin, end = (it * plan.parts // plan.shards for it in (shard, shard + 1))
    return begin < end


def _cancel(ray: Any, waiting: Iterable[Any]) -> None:
    """Cancels tasks that have not started. Running shards finish, and their parts remain."""
    for it in waiting:
        ray.cancel(it)


def _all(
    command: Any,
    paths: Tuple[Any, ...],
    shards: Optional[int],
    num_cpus: float,
    resources: Optional[Dict[str, float]],
    max_retries: int,
    options: Dict[str, Any],
) -> Any:
    absolute = tuple(
        it if command == "prepare" and number == 0 else _absolute(it)
        for number, it in enumerate(paths)
    )
    plan = _shards.plan(command, *absolute, shards=_count(shards), **options)
    return finish(
        plan.folder, num_cpus=num_cpus, resources=resources, max_retries=max_retries
    )


def _absolute(place: Any) -> str:
    """An absolute path, which tasks find; URLs are unchanged."""
    given = given_path("path", place)
    return given if "://" in given else os.path.abspath(given)


def pack(
    source: _Path,
    destination: _Path,
    *,
    shards: Optional[int] = None,
    num_cpus: float = 1,
    resources: Optional[Dict[str, float]] = None,
    max_retries: int = _RETRIES,
    **options: Any,
) -> Packed:
    """Packs a source as tasks of Ray: :func:`meetpoint.pack` with the same bytes.

    :param shards: number of tasks; by default four for each CPU of the cluster.
    :param options: options of :func:`meetpoint.pack`, such as ``part_samples``.
    :raises PackError: as :func:`finish`.
    """
    paths = (source, destination)
    return cast(Packed, _all("pack", paths, shards, num_cpus, resources, max_retries, options))


def convert(
    source: _Path,
    destination: _Path,
    *,
    shards: Optional[int] = None,
    num_cpus: float = 1,
    resources: Optional[Dict[str, float]] = None,
    max_retries: int = _RETRIES,
    **options: Any,
) -> Converted:
    """Converts a source as tasks of Ray: :func:`meetpoint.convert` with the same bytes.

    Parameters are those of :func:`pack`; ``options`` are those of :func:`meetpoint.convert`.
    """
    paths = (source, destination)
    return cast(
        Converted, _all("convert", paths, shards, num_cpus, resources, max_retries, options)
    )


def prepare(
    recipe: Any,
    dataset: _Path,
    destination: _Path,
    *,
    shards: Optional[int] = None,
    num_cpus: float = 1,
    resources: Optional[Dict[str, float]] = None,
    max_retries: int = _RETRIES,
    **options: Any,
) -> Prepared:
    """Prepares a dataset as tasks of Ray: :func:`meetpoint.prepare` with the same bytes.

    Parameters are those of :func:`pack`; ``options`` are those of :func:`meetpoint.prepare`.
    """
    paths = (recipe, dataset, destination)
    return cast(
        Prepared, _all("prepare", paths, shards, num_cpus, resources, max_retries, options)
    )


def verify(
    dataset: _Path,
    *,
    shards: Optional[int] = None,
    num_cpus: float = 1,
    resources: Optional[Dict[str, float]] = None,
    max_retries: int = _RETRIES,
) -> Verified:
    """Verifies a dataset as tasks of Ray: the result of :func:`meetpoint.verify`.

    Parameters are those of :func:`pack`.
    """
    return cast(Verified, _all("verify", (dataset,), shards, num_cpus, resources, max_retries, {}))


def _blocks(place: str, first: int, last: int) -> Iterable[Any]:
    """The samples of a range as an Arrow table: key, image (the original file), label."""
    arrow = imported("pyarrow")
    with open_dataset(place) as opened:
        samples = [opened[index] for index in range(first, last)]
        columns: Dict[str, Any] = {
            "key": arrow.array([it.key for it in samples], arrow.string()),
            "image": arrow.array([it.image for it in samples], arrow.large_binary()),
            "label": arrow.array([it.label for it in samples], arrow.int32()),
        }
        names = opened.columns
        if names:
            table = arrow.table(opened.select(names)).slice(first, last - first)
            columns.update({name: table.column(name) for name in names})
        yield arrow.table(columns)


def _parts(opened: Dataset) -> List[Tuple[int, int, int]]:
    """First sample, end and bytes of each part."""
    ranges: List[Tuple[int, int, int]] = []
    first = 0
    for part in opened.manifest["parts"]:
        ranges.append((first, first + part["samples"], part["bytes"]))
        first += part["samples"]
    return ranges


def read(dataset: _Path, **options: Any) -> Any:
    """A dataset as a ``ray.data.Dataset`` with the columns key, image, label and all others.

    ``image`` contains the original file of each sample, even if it is stored as coefficients. A
    read task reads one part, so the order within a part is that of the dataset.

    :param options: arguments of ``ray.data.read_datasource``, such as ``override_num_blocks``.
    """
    data = imported("ray.data")
    source = imported("ray.data.datasource")
    block = imported("ray.data.block")
    place = os.path.abspath(given_path("dataset", dataset))
    with open_dataset(place) as opened:
        parts = _parts(opened)

    class MeetpointDatasource(source.Datasource):  # type: ignore[misc, name-defined]
        """One read task for each part; holds no open file."""

        def estimate_inmemory_data_size(self) -> int:
            return sum(size for _, _, size in parts)

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> List[Any]:
            tasks: List[Any] = []
            for first, last, size in parts:
                metadata = block.BlockMetadata(
                    num_rows=last - first, size_bytes=size, input_files=[place], exec_stats=None
                )
                tasks.append(source.ReadTask(_reader(place, first, last), metadata))
            return tasks

    return data.read_datasource(MeetpointDatasource(), **options)


def _reader(place: str, first: int, last: int) -> Any:
    return lambda: _blocks(place, first, last)


def write(
    rows: Any,
    destination: _Path,
    *,
    key: str = "key",
    image: str = "image",
    label: Optional[str] = "label",
    labels: Optional[List[str]] = None,
    force: bool = False,
    **options: Any,
) -> Copied:
    """Writes a ``ray.data.Dataset`` of images into a dataset, which appears complete or not at all.

    Each attempt of a write task writes a separate dataset. The driver merges one attempt of each
    task, in the order of the tasks, so the rows of a task that ran twice are not duplicated. Sort
    the ``ray.data.Dataset`` for a specific order. All nodes must see the destination.

    :param key: column of the keys, which must be unique; ``image``: column of the files, as bytes;
        ``label``: column of the labels, or ``None``.
    :param labels: names of the labels in order; required if labels are texts.
    :param force: replaces a dataset at the destination.
    :param options: arguments of ``Dataset.write_datasink``, such as ``concurrency``.
    :raises PackError: the destination exists, or a key occurs twice.
    """
    source = imported("ray.data.datasource")
    to = os.path.abspath(given_path("destination", destination))
    if os.path.lexists(to) and not force:
        raise PackError(f"{to} exists", file=to, remedy="choose another name, or set force=True")
    staging = f"{to}.ray-{uuid.uuid4().hex}"
    named = None if labels is None else list(labels)
    written: List[Copied] = []

    class MeetpointDatasink(source.Datasink):  # type: ignore[misc, name-defined]
        """Holds paths and names only, since it is pickled for each task."""

        def on_write_start(self, *_: Any, **__: Any) -> None:
            os.makedirs(staging, exist_ok=True)

        def write(self, blocks: Iterable[Any], ctx: Any) -> Any:
            index = int(ctx.task_idx)
            return _write_task(staging, index, blocks, (key, image, label), named)

        def on_write_complete(self, result: Any) -> None:
            chosen: Dict[int, str] = {}
            for index, place, samples in result.write_returns:
                if samples:
                    chosen.setdefault(index, place)
            if not chosen:
                raise PackError("the Ray dataset has no rows", remedy="write one that has rows")
            order = [chosen[index] for index in sorted(chosen)]
            written.append(_operations.merge(order, to, force=force))

    try:
        rows.write_datasink(MeetpointDatasink(), **options)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    if not written:
        raise PackError(f"Ray did not complete the write to {to}", file=to, remedy="write again")
    return written[0]


def _write_task(
    staging: str,
    index: int,
    blocks: Iterable[Any],
    names: Tuple[str, str, Optional[str]],
    labels: Optional[List[str]],
) -> Tuple[int, str, int]:
    """Writes the blocks of a task; returns its index, the dataset and the number of samples."""
    block = imported("ray.data.block")
    key, image, label = names
    place = os.path.join(staging, f"task-{index:05}-{uuid.uuid4().hex}.set")
    writer: Optional[Writer] = None
    samples = 0
    try:
        for each in blocks:
            table = block.BlockAccessor.for_block(each).to_arrow()
            wanted = [name for name in names if name is not None]
            missing = [name for name in wanted if name not in table.column_names]
            others = [name for name in table.column_names if name not in wanted]
            if table.num_rows == 0:
                continue
            if missing or others:
                what = f"no column {missing[0]!r}" if missing else f"a further column {others[0]!r}"
                raise SettingError(
                    f"the Ray dataset has {what}; it has {', '.join(table.column_names)}",
                    remedy="name the columns with key, image and label, and select only those",
                )
            if writer is None:
                writer = Writer(place, labels=labels)
            keys, images = table.column(key).to_pylist(), table.column(image).to_pylist()
            found = [None] * len(keys) if label is None else table.column(label).to_pylist()
            for row in zip(keys, images, found):
                if isinstance(row[2], str) and labels is None:
                    raise SettingError(
                        "labels are texts, and a task does not know the labels of the other tasks",
                        remedy="set labels to the list of names",
                    )
                writer.add(*row)
                samples += 1
        if writer is not None:
            writer.close()
    except BaseException:
        if writer is not None:
            writer.discard()
        raise
    return index, place, samples


def loader(
    dataset: Any, *arguments: Any, checkpoint: Optional[Any] = None, **named: Any
) -> Loader[Any]:
    """A :class:`meetpoint.Loader` inside the training loop of Ray Train.

    Rank and number of ranks are those of Ray Train. If the checkpoint contains states that
    :func:`save` wrote, the loader resumes from them, with any number of ranks.

    ``device`` may be the :class:`Agents` of :func:`agents`, from the configuration of the training
    loop. Several ranks with devices need ``torch.distributed``, which ``TorchTrainer`` initialises,
    or a ``rendezvous``.

    :param checkpoint: a ``ray.train.Checkpoint`` to resume from, unless Ray Train has a later one
        of this run, as after a failure.
    """
    train = imported("ray.train")
    context = train.get_context()
    rank, size = int(context.get_world_rank()), int(context.get_world_size())
    device = named.get("device")
    if isinstance(device, Agents):
        named["device"] = device.devices
    made: Loader[Any] = Loader(dataset, *arguments, rank=rank, world_size=size, **named)
    latest = train.get_checkpoint() or checkpoint
    if latest is not None:
        with latest.as_directory() as folder:
            states = _states(folder)
        if states:
            made.load_state_dict(states if len(states) > 1 else states[0])
    return made


def save(of: Loader[Any], folder: _Path) -> None:
    """Writes the position of this rank's loader into the folder of a checkpoint.

    Call it on every rank, then report a checkpoint with this folder in the same step. Ray Train
    stores the files of all ranks together.
    """
    context = imported("ray.train").get_context()
    rank, size = int(context.get_world_rank()), int(context.get_world_size())
    place = os.path.join(given_path("folder", folder), _STATE.format(rank=rank, size=size))
    with open(place, "w", encoding="utf-8") as file:
        json.dump(of.state_dict(), file)


def _states(folder: str) -> List[Dict[str, Any]]:
    """The states of all ranks in a checkpoint, in order."""
    prefix, suffix = _STATE.split("{rank")[0], ".json"
    names = sorted(
        name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(suffix)
    )
    states: List[Dict[str, Any]] = []
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            states.append(json.load(file))
    expected = int(names[0][len(prefix) :].split("-of-")[1][: -len(suffix)]) if names else 0
    if len(names) != expected:
        raise SettingError(
            f"the checkpoint has the positions of {len(names)} of {expected} loaders",
            remedy="call meetpoint.ray.save on every rank before ray.train.report",
        )
    return states
