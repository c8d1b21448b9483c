"""The loader: arguments, iteration, epochs. Everything else is native."""

from __future__ import annotations

import atexit
import os
import warnings
import weakref
from collections import deque
from typing import (
    TYPE_CHECKING,
    Any,
    Deque,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import _arguments, _devices, _distributed, _native, _output
from ._arguments import U64, Recipe, path_or_none, seconds, text, whole, whole_or_none
from ._closing import Closing
from ._damage import DamagedSample, OnError
from ._devices import Devices
from ._state import Position, position_of
from .errors import DamageWarning, DeviceWarning
from .transforms import Compose

if TYPE_CHECKING:
    from ._nvtx import Ranges
    from ._observe import Energy, Explanation, MetricsExporter, MetricsServer, Replay

__all__ = ["Loader"]

# Epochs of which a report keeps everything; of those before, all but the batches one by one.
_WHOLE_EPOCHS = 4
# Damaged samples that are remembered.
_ERRORS_KEPT = 10_000

# In the events of an epoch, what says that a device does no more, or nothing for now.
_LOSSES = ("was lost", "no more work", "published nothing in time")

_open_loaders: "weakref.WeakSet[Loader]" = weakref.WeakSet()


class Loader(Closing):
    """Batches of a packed dataset, epoch after epoch.

    Iterating gives ``(images, labels)`` for every batch of an epoch: ``images`` has the shape
    [batch, height, width, 3], or [batch, 3, height, width] where the recipe says so, and the
    recipe's dtype; ``labels`` are int64 (int32 for ``"jax"``), or ``None`` where the dataset has
    none. Each ``iter()`` begins the next epoch, with an order and draws of its own (the same one
    where no batch of it was taken); only the latest iteration goes on. Memory of a batch is its
    own until the last array that shows it is gone.

    :param dataset: folder of a packed dataset (:func:`meetpoint.pack` makes one).
    :param recipe: a :class:`meetpoint.transforms.Compose`, a list of transforms, torchvision
        transforms, or the path of a recipe file.
    :param batch_size: samples in a batch.
    :param shuffle: whether every epoch has an order of its own.
    :param drop_last: whether a last batch that is not full is left out.
    :param seed: of order and draws. The same seed gives the same samples, whoever prepares them.
    :param strategy: who prepares what: ``"auto"``, ``"host-only"``, ``"device-only"``, ``"mte"``,
        ``"mte-feedback"``, ``"wrr"``, ``"wrr-frozen"`` or ``"windowed"``.
    :param order: what the order must be under ``"auto"``: ``"any"``, ``"replayable"``, or
        ``"baseline"``, which is that of the host alone.
    :param window: batches in a window of ``"windowed"``.
    :param device: ``"emulated"``, an :class:`Emulated`, ``"unix:PATH"`` of a device that somebody
        else started, a list of those, or ``None``: the host alone.
    :param workers: threads that prepare; ``None`` for one less than the cores that may be used.
        Torch's name ``num_workers`` is taken too.
    :param prefetch: batches prepared ahead a worker; torch's ``prefetch_factor``.
    :param memory_budget: most bytes of batches, prepared ahead and in use together; and most bytes
        that decoding large pictures takes, all workers together.
    :param spool_quota: most bytes of the batches that devices have ready.
    :param spool_folder: folder of the file for those; ``None``: memory without a name.
    :param rank: which of ``world_size`` processes this is; from ``torch.distributed`` where that
        was initialised. All ranks take the same number of steps.
    :param world_size: processes that share every epoch.
    :param rendezvous: where ranks with devices meet, to agree on the source of every step:
        ``"unix:PATH"`` (one machine) or ``"tcp:HOST:PORT"`` of rank 0, the same for all. Without,
        ``torch.distributed`` introduces them to each other.
    :param rank_timeout: seconds that ranks wait for one that gives no sign of life, as one that
        prepares a batch or waits for its devices does. One whose process ends is noticed at once.
    :param output: ``"numpy"``, ``"torch"``, ``"jax"``, or ``"dlpack"``: tensors that any library
        takes with its ``from_dlpack``. Nothing is copied, but with torch's ``pin_memory=True``
        where torch finds CUDA: then every batch is copied into pinned memory.
    :param columns: some of ``"image"``, ``"label"``, ``"sample"`` (number in the dataset) and
        ``"key"``; iterating then gives dictionaries of these.
    :param on_error: what is done about a sample that does not read or decode: ``"raise"``,
        ``"skip"`` (its batch is shorter, and left out where nothing is left of it; an epoch of
        which nothing is left is a :class:`DamageWarning`), ``"replace"``
        (another sample takes its place, the same one whoever prepares the batch), or a function
        that is given a :class:`DamagedSample` and gives one of these words. It is called on a
        thread of the loader, each time that such a sample is met; several may call it at a time.
    :param max_errors: most damaged samples of an epoch; one more is a :class:`DamageLimitError`.
    :param quarantine: file to which a line of JSON is added for every damaged sample, once.
    :param stall_timeout: seconds after which a device that says nothing is given up.
    :param nvtx: whether every wait for a batch and every hand-over is a range for NVIDIA's
        profilers: by ``torch.cuda.nvtx`` where a torch that was built for CUDA is loaded, else by
        the package ``nvtx``. ``None``: where one of them is there.
    :raises SettingError: an argument out of its range.
    :raises DatasetError: the dataset does not open.
    :raises DeviceError: a device cannot be started or reached.
    :raises RankError: the other ranks did not come, or are to run something else.
    """

    def __init__(
        self,
        dataset: Union[str, "os.PathLike[str]"],
        *,
        recipe: Recipe,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        strategy: str = "auto",
        order: str = "any",
        window: Optional[int] = None,
        device: Devices = None,
        workers: Optional[int] = None,
        prefetch: Optional[int] = None,
        memory_budget: int = 512 << 20,
        spool_quota: int = 256 << 20,
        spool_folder: Union[str, "os.PathLike[str]", None] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        rendezvous: Optional[str] = None,
        rank_timeout: float = 1800.0,
        output: str = "numpy",
        columns: Optional[Sequence[str]] = None,
        on_error: OnError = "raise",
        max_errors: Optional[int] = None,
        quarantine: Union[str, "os.PathLike[str]", None] = None,
        stall_timeout: float = 2.0,
        nvtx: Optional[bool] = None,
        **torch_names: Any,
    ) -> None:
        self._arguments: Dict[str, Any] = {
            key: it for key, it in locals().items() if key not in ("self", "torch_names")
        }
        self._arguments.update(torch_names)
        # Of the outputs only torch's knows pinned memory.
        pin = bool(torch_names.pop("pin_memory", False)) if output == "torch" else False
        named = _arguments.take_torch_names(torch_names, workers=workers, prefetch=prefetch)
        _arguments.refuse_unknown(torch_names)
        batch_size, seed = whole("batch_size", batch_size), whole("seed", seed, U64)
        shuffle = _arguments.flag("shuffle", shuffle)
        drop_last = _arguments.flag("drop_last", drop_last)
        strategy, order = text("strategy", strategy), text("order", order)
        window = whole_or_none("window", window)
        rank_timeout = seconds("rank_timeout", rank_timeout)
        rendezvous = _arguments.text_or_none("rendezvous", rendezvous)
        workers = whole_or_none("workers", named.workers)
        prefetch = whole_or_none("prefetch", named.prefetch)
        self._convert = _output.converter(output, pin=pin)
        self._ranges = _ranges(nvtx)
        self._columns = _arguments.column_names(columns)
        self._recipe = _arguments.compose(recipe)
        sockets, commands = _devices.sources(device)
        rank, world_size = _distributed.ranks(rank, world_size, rendezvous)
        has_devices = bool(sockets or commands)
        if strategy == "auto" and not has_devices:
            strategy = "host-only"
        self._strategy = strategy
        self._dataset = _arguments.path("dataset", dataset)
        recipe_toml = self._recipe.to_toml()
        settings: _native.Settings = {
            "dataset": self._dataset,
            "recipe": recipe_toml,
            "batch_size": batch_size,
            "drop_last": drop_last,
            "shuffle": shuffle,
            "seed": seed,
            "strategy": strategy,
            "order": order,
            "window": window,
            "workers": _default_workers() if workers is None else workers,
            "prefetch": 2 if prefetch is None else prefetch,
            "memory_budget": whole("memory_budget", memory_budget, U64),
            "sockets": sockets,
            "commands": commands,
            "spool_quota": whole("spool_quota", spool_quota, U64),
            "spool_folder": path_or_none("spool_folder", spool_folder),
            "rank": rank,
            "ranks": world_size,
            "meeting": None,
            "rank_timeout": rank_timeout,
            "stall_timeout": seconds("stall_timeout", stall_timeout),
            "on_error": text("on_error", on_error) if isinstance(on_error, str) else on_error,
            "max_errors": whole_or_none("max_errors", max_errors, U64),
            "quarantine": path_or_none("quarantine", quarantine),
        }
        if world_size > 1 and has_devices and strategy != "host-only":
            job = (
                f"strategy {strategy} (order {order}, window {window}), batches of {batch_size} "
                f"(drop_last {drop_last}, shuffle {shuffle}, seed {seed}), and the recipe\n"
                + recipe_toml
            )
            settings["meeting"] = _distributed.meeting(
                rank, world_size, rendezvous, job, rank_timeout
            )
        self._native = _native.Loader(settings)
        self._fixed: Dict[str, Any] = {
            "dataset": self._native.dataset_sha256,
            "recipe": self._native.recipe_hash,
            "batch_size": batch_size,
            "drop_last": drop_last,
            "shuffle": shuffle,
            "seed": seed,
            "world_size": world_size,
            "rank": rank,
        }
        self._resumed: List[str] = []
        self._batches = self._native.batches
        self._position = Position(epoch=0)
        # Who leaves a loop drops it, and with it what goes on for it.
        self._iterator: Optional["weakref.ref[_Iterator]"] = None
        self._epochs: List[Dict[str, Any]] = []
        self._keys: Optional[_native.Dataset] = None
        self._damaged: Deque[DamagedSample] = deque(maxlen=_ERRORS_KEPT)
        self._replayed_step: Optional[float] = None
        self._exporter: Optional["MetricsExporter"] = None
        _open_loaders.add(self)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._batches

    @property
    def recipe(self) -> Compose:
        """What is done to every picture."""
        return self._recipe

    @property
    def samples(self) -> int:
        """Samples in the dataset."""
        return self._native.samples

    @property
    def label_names(self) -> List[str]:
        """The name of each label; empty where there are none."""
        return self._native.label_names

    @property
    def epoch(self) -> int:
        """The epoch of the latest iteration; before there is one, the epoch that it will be of."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is of this epoch, as with ``DistributedSampler.set_epoch``.

        Where a state of this epoch was loaded, the iteration goes on in the middle of it.
        """
        epoch = whole("epoch", epoch)
        position = self._position
        if position.is_begun or position.epoch != epoch:
            self._position = Position(epoch=epoch)

    def __iter__(self) -> "_Iterator":
        self._end_iterator()
        position = self._position
        # Of an iteration that nobody took a batch from, nothing is over: Lightning begins twice.
        if position.is_begun and (position.is_used or len(position) >= self._batches):
            position = Position(epoch=position.epoch + 1)
        position = position.begun()
        self._position = position
        is_whole = len(position) >= self._batches
        record = position.record if position.strategy == self._strategy else None
        serial = None
        if not is_whole:
            serial = self._native.begin(position.epoch, position.ranges, record, position.errors)
        position.strategy = self._strategy
        iterator = _Iterator(self, serial, position)
        self._iterator = weakref.ref(iterator)
        return iterator

    def _end_iterator(self) -> None:
        iterator = None if self._iterator is None else self._iterator()
        self._iterator = None
        if iterator is not None:
            iterator._close()

    def _wait(self, serial: int, epoch: int) -> Optional[_native.Batch]:
        if self._ranges is None:
            return self._native.next(serial)
        with self._ranges(f"meetpoint: wait, epoch {epoch}"):
            return self._native.next(serial)

    def _hand_over(self, batch: _native.Batch) -> Any:
        if self._ranges is None:
            return self._deliver(batch)
        source = "host" if batch.device is None else f"device {batch.device}"
        name = f"meetpoint: hand over, epoch {batch.epoch}, batch {batch.index}, {source}"
        with self._ranges(name):
            return self._deliver(batch)

    def _deliver(self, batch: _native.Batch) -> Any:
        images = self._convert(batch.images)
        # Without leave to use 64 bits, which is its default, JAX has integers of 32.
        tensor = batch.labels(narrow=_output.has_narrow_integers(self._convert))
        labels = None if tensor is None else self._convert(tensor)
        if self._columns is None:
            return images, labels
        columns: Dict[str, Any] = {"image": images, "label": labels, "sample": batch.samples}
        if "key" in self._columns:
            if self._keys is None:
                self._keys = _native.Dataset(self._dataset)
            columns["key"] = [self._keys.key(sample) for sample in batch.samples]
        return {name: columns[name] for name in self._columns}

    def _tell(self, warned: bool) -> bool:
        """Warns of a device that was lost or fell silent, once an epoch."""
        for text in self._native.take_events():
            if not warned and any(words in text for words in _LOSSES):
                warned = True
                warnings.warn(text, DeviceWarning, stacklevel=4)
        return warned

    def state_dict(self) -> Dict[str, Any]:
        """Where the loader is: a small dictionary of numbers and texts, good for JSON.

        Counted is what was handed out, so what was prepared ahead is neither lost nor repeated.
        """
        position = self._position
        if len(position) >= self._batches:
            position = Position(epoch=position.epoch + 1)
        return {"version": 1, **self._fixed, **position.to_dict()}

    def load_state_dict(self, state: Union[Dict[str, Any], Sequence[Dict[str, Any]]]) -> None:
        """The next iteration gives the batches that were left when the state was taken.

        Under ``host-only``, ``device-only`` and ``windowed`` they come in the order in which they
        would have come; under ``mte`` and ``mte-feedback`` as well, once their split was known.
        ``wrr`` has no order of its own: the same batches come. The number of workers, the devices
        and the strategy may be others.

        So may the number of ranks: what all of them had left is cut anew, in whole batches. Where
        it does not divide, the fewest batches come twice (with ``drop_last``: are left out) that
        give all ranks equal steps; :meth:`report` says how many. Give the states of all ranks as a
        list, or any one of them where ranks consume in order (``host-only``, ``device-only``).

        :raises StateError: the state is of another dataset, recipe, seed or batch size, or says
            too little.
        """
        samples = self._native.samples
        position, self._resumed = position_of(state, self._fixed, samples, self._batches)
        self._end_iterator()
        self._position = position

    def errors(self) -> List[DamagedSample]:
        """The damaged samples of the batches that were handed out, the last 10,000 of them.

        Empty under ``on_error="raise"``, where the first one is an exception.
        """
        return list(self._damaged)

    def report(self) -> Dict[str, Any]:
        """What was measured: ``epochs``, as in the reports of `meetpoint run`, and ``notices``.

        An epoch under way is not in it.
        """
        # Importing this package is to take no time.
        import json

        for text in self._native.take_finished():
            self._epochs.append(json.loads(text))
        for epoch in self._epochs[:-_WHOLE_EPOCHS]:
            epoch.pop("records", None)
        return {
            "strategy": self._strategy,
            "batches": self._batches,
            "samples": self._native.samples,
            "epochs": list(self._epochs),
            "notices": [*self._native.notices, *self._resumed],
        }

    def explain(self) -> Optional["Explanation"]:
        """Whether loading held the last epoch up, which stage of it, and what would be gained.

        Of an epoch that has ended, with two batches or more; ``None`` where there is none. After
        :meth:`replay` what would be gained is measured, else it is worked out of the steps.
        """
        from ._observe import explanation

        text = self._native.explain(self._replayed_step)
        return None if text is None else explanation(text)

    def replay(self, batches: int = 4, steps: int = 64) -> "Replay":
        """The first batches of the next epoch, over and over, with nothing prepared meanwhile.

        Train on it for a while: how long its steps take is the pace of training that never waits,
        with which :meth:`explain` goes on. The epoch that it takes batches from is begun again by
        the next iteration; its state is as it was.

        :param batches: how many different ones are kept.
        :param steps: how many are given.
        """
        from ._observe import Replay

        batches, steps = whole("batches", batches, least=1), whole("steps", steps, least=1)
        before, damaged = self._position, list(self._damaged)
        kept: List[Any] = []
        for batch in self:
            kept.append(batch)
            if len(kept) == batches:
                break
        self._end_iterator()
        self._position = before
        self._damaged = deque(damaged, maxlen=_ERRORS_KEPT)

        def done(seconds: float) -> None:
            self._replayed_step = seconds

        return Replay(kept, steps, done)

    def energy(self, power: Union[str, "os.PathLike[str]", None] = None) -> "Energy":
        """The energy of a ``with`` block, each figure with its source.

        ::

            with loader.energy() as energy:
                for images, labels in loader:
                    ...
            print(energy)

        :param power: the model of watts: a preset's name (``server``, ``desktop``, …) or a TOML
            file; ``None`` for the default preset.
        """
        from ._observe import Energy

        return Energy(self._native, path_or_none("power", power))

    def trace(self, path: Union[str, "os.PathLike[str]"]) -> int:
        """Writes the last four epochs that ended as a trace for ui.perfetto.dev or Chrome.

        Who prepared which batch when, what the consumer waited for, how many batches were ready,
        and what went wrong. An epoch under way is not in it; of more than 200,000 batches the last
        are, and the file says how many are not.

        :returns: events written.
        :raises SettingError: ``path`` is none.
        """
        events, _ = self._native.write_trace(_arguments.path("path", path))
        return events

    def metrics(self) -> str:
        """Counters and histograms as Prometheus scrapes them (OpenMetrics text)."""
        return self._native.metrics()

    def serve_metrics(self, port: int = 0, host: str = "127.0.0.1") -> "MetricsServer":
        """Answers ``GET /metrics`` until the server that it gives is closed.

        :param port: 0 for any that is free; the server says which.
        :param host: address to listen on; only this machine can ask where nothing is given.
        :raises SettingError: it cannot listen there.
        """
        from ._observe import MetricsServer

        return MetricsServer(self.metrics, host, port)

    def export_metrics(
        self,
        endpoint: Optional[str] = None,
        *,
        interval: Optional[float] = None,
        attributes: Optional[Mapping[str, str]] = None,
    ) -> "MetricsExporter":
        """Sends metrics to an OpenTelemetry collector (OTLP over gRPC), from now until closed.

        The instruments are those of :meth:`metrics`, counted from now on. What is not given, the
        ``OTEL_*`` variables of the environment say. A collector that is not there, or is silent,
        costs a :class:`MetricsWarning` and holds nothing up.

        :param endpoint: URL such as ``"http://127.0.0.1:4317"``, which is that where nobody says.
        :param interval: seconds between two exports; 10 where nobody says.
        :param attributes: further attributes of the resource, which has ``service.name``,
            ``meetpoint.rank`` and ``meetpoint.world_size``.
        :raises SettingError: an endpoint that cannot be used, a protocol that is not gRPC, or an
            exporter is at it already.
        """
        from ._observe import MetricsExporter

        rank, ranks = self._fixed["rank"], self._fixed["world_size"]
        self._exporter = MetricsExporter(
            self._native, endpoint, interval, attributes or {}, rank, ranks
        )
        return self._exporter

    @property
    def device_processes(self) -> List[int]:
        """Process ids of the devices that are used, as they were when the loader was opened."""
        return self._native.device_processes

    def close(self) -> None:
        """Ends the epoch, the threads and the devices that were started. Batches stay good."""
        self._iterator = None
        self._native.close()
        _open_loaders.discard(self)
        if self._exporter is not None:
            self._exporter._warn()

    def __reduce__(self) -> Tuple[Any, ...]:
        return (_rebuild, (self._arguments, self.state_dict()))

    def __repr__(self) -> str:
        state = ", closed" if self._native.is_closed else ""
        return f"<meetpoint.Loader {self._dataset!r}, {self._batches} batches{state}>"


class _Iterator(Iterator[Any]):
    """One epoch under way."""

    def __init__(self, loader: Loader, serial: Optional[int], position: Position) -> None:
        self._loader: Optional[Loader] = loader
        self._native = loader._native
        self._serial = serial
        self._position = position
        self._warned = False
        self._left = len(loader) - len(position)
        self._begun_with = self._left
        self._is_empty = True

    def __iter__(self) -> "_Iterator":
        return self

    def __len__(self) -> int:
        """Batches that are left."""
        return self._left

    def __next__(self) -> Any:
        loader = self._loader
        if loader is None or self._serial is None:
            raise StopIteration
        while True:
            batch = loader._wait(self._serial, self._position.epoch)
            self._warned = loader._tell(self._warned)
            if loader._exporter is not None:
                loader._exporter._warn()
            if batch is None:
                self._loader = None
                if self._is_empty and self._begun_with > self._left:
                    warnings.warn(self._why_empty(), DamageWarning, stacklevel=2)
                raise StopIteration
            self._left -= 1
            self._position.add(batch.index, self._native.rest_record)
            damaged = [DamagedSample(**record) for record in batch.damaged]
            self._position.errors += len(damaged)
            loader._damaged.extend(damaged)
            # Every sample of it was left out.
            if len(batch) > 0:
                self._is_empty = False
                return loader._hand_over(batch)

    def _why_empty(self) -> str:
        return (
            f"epoch {self._position.epoch} gave nothing: every sample of its batches is damaged "
            "and was left out; loader.errors() names them, and `meetpoint verify` finds what is "
            "wrong with the dataset"
        )

    def _close(self) -> None:
        if self._loader is not None and self._serial is not None:
            self._native.abandon(self._serial)
        self._loader = None

    def __del__(self) -> None:
        if getattr(self, "_loader", None) is not None:
            self._close()


def _rebuild(arguments: Dict[str, Any], state: Dict[str, Any]) -> Loader:
    loader = Loader(**arguments)
    loader.load_state_dict(state)
    return loader


def _close_all() -> None:
    for loader in list(_open_loaders):
        loader.close()


atexit.register(_close_all)


def _default_workers() -> int:
    return max(1, len(os.sched_getaffinity(0)) - 1)


def _ranges(wanted: Optional[bool]) -> Optional["Ranges"]:
    if wanted is False:
        return None
    from ._nvtx import ranges

    return ranges(wanted)
