"""The loader: arguments, iteration, epochs. Everything else is native."""

from __future__ import annotations

import atexit
import os
import warnings
import weakref
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    List,
    Literal,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    overload,
)

from . import (
    _arguments,
    _devices,
    _distributed,
    _frameworks,
    _native,
    _output,
    _world,
    samplers,
)
from ._arguments import U64, Recipe, path_or_none, seconds, text, whole, whole_or_none
from ._closing import Closing
from ._damage import DamagedSample, OnError
from ._devices import Devices
from ._iterator import EpochIterator
from ._measured import Measured
from ._ragged import Ragged
from ._loader_types import Columns, Path
from ._state import Position, States, position_of
from ._world import World
from .errors import ClosedError, DeviceWarning, RankError, SettingError, StateError
from .transforms import Compose

if TYPE_CHECKING:
    import torch.utils.data  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore
    from typing_extensions import Unpack

    from ._frameworks import BatchSampler, LoaderDataset, Sampler
    from ._nvtx import Ranges
    from ._loader_types import ColumnBatch, DlpackBatch, JaxBatch, NumpyBatch, Options, TorchBatch

__all__ = ["Loader"]

BatchT = TypeVar("BatchT")

_open_loaders: "weakref.WeakSet[Loader[Any]]" = weakref.WeakSet()


class Loader(Measured, Closing, Generic[BatchT]):
    """Batches of a packed dataset, epoch after epoch.

    Iterating gives ``(images, labels)`` for every batch of an epoch: ``images`` has the shape
    [batch, height, width, 3], or [batch, 3, height, width] where the recipe says so, and the
    recipe's dtype; ``labels`` are int64 (int32 for ``"jax"``), float32 [batch, classes] after an
    operation on batches, or ``None`` where the dataset has none. Each ``iter()`` begins the next epoch, with an order and draws of its own (the same one
    where no batch of it was taken); only the latest iteration goes on. Memory of a batch is its
    own until the last array that shows it is gone.

    :param dataset: folder of a packed dataset (:func:`meetpoint.pack` makes one).
    :param recipe: a :class:`meetpoint.transforms.Compose`, a list of transforms, torchvision
        transforms, or the path of a recipe file.
    :param batch_size: samples in a batch.
    :param shuffle: whether every epoch has an order of its own: short for the sampler
        ``Shuffled()`` or ``Sequential()``.
    :param sampler: which samples an epoch has, and in which order: one of
        :mod:`meetpoint.samplers`, such as ``Weighted("weight")``.
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
    :param memory_budget: most bytes of batches, prepared ahead and in use together; decoding large
        pictures takes at most as much again, all workers together.
    :param spool_quota: most bytes of the batches that devices have ready.
    :param spool_folder: folder of the file for those; ``None``: memory without a name.
    :param rank: which of ``world_size`` processes this is; by default that of ``torch.distributed``
        when an iteration begins, else ``RANK`` and ``WORLD_SIZE`` in the environment. With
        ``rank=0, world_size=1`` this process loads everything. All ranks take the same number of
        steps.
    :param world_size: processes that share every epoch.
    :param rendezvous: where ranks with devices meet, to agree on the source of every step:
        ``"unix:PATH"`` (one machine) or ``"tcp:HOST:PORT"`` of rank 0, the same for all. Without,
        ``torch.distributed`` introduces them to each other.
    :param rank_timeout: seconds that ranks wait for one that gives no sign of life, as one that
        prepares a batch or waits for its devices does. One whose process ends is noticed at once.
    :param output: ``"numpy"``, ``"torch"``, ``"jax"``, or ``"dlpack"``: tensors that any library
        takes with its ``from_dlpack``. Nothing is copied, but with torch's ``pin_memory=True``
        where torch finds CUDA: then every batch is copied into pinned memory.
    :param columns: names of the columns of a batch: ``"image"``, ``"label"``, ``"key"``,
        ``"sample"`` (number in the dataset, int64) and further columns of the dataset. Iterating then
        gives dictionaries of these, in this order: arrays [batch, ...] of numbers, a
        :class:`Ragged` where samples have lists of different lengths, lists of ``str`` and of
        ``bytes``. Columns of variable length are read once when the loader opens, for the memory
        that a batch needs. Content is decoded only where ``"image"`` is among them.
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

    @overload
    def __init__(
        self: "Loader[NumpyBatch]",
        dataset: Path,
        *,
        recipe: Recipe,
        output: Literal["numpy"] = ...,
        columns: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[TorchBatch]",
        dataset: Path,
        *,
        recipe: Recipe,
        output: Literal["torch"],
        columns: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[JaxBatch]",
        dataset: Path,
        *,
        recipe: Recipe,
        output: Literal["jax"],
        columns: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[DlpackBatch]",
        dataset: Path,
        *,
        recipe: Recipe,
        output: Literal["dlpack"],
        columns: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[Tuple[Any, Any]]",
        dataset: Path,
        *,
        recipe: Recipe,
        output: Literal["numpy", "torch", "jax", "dlpack"],
        columns: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ColumnBatch]",
        dataset: Path,
        *,
        recipe: Recipe,
        output: Literal["numpy", "torch", "jax", "dlpack"] = ...,
        columns: Columns,
        **options: "Unpack[Options]",
    ) -> None: ...

    def __init__(
        self,
        dataset: Path,
        *,
        recipe: Recipe,
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: Optional[samplers.Sampler] = None,
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
        spool_folder: Optional[Path] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        rendezvous: Optional[str] = None,
        rank_timeout: float = 1800.0,
        output: str = "numpy",
        columns: Optional[Columns] = None,
        on_error: OnError = "raise",
        max_errors: Optional[int] = None,
        quarantine: Optional[Path] = None,
        stall_timeout: float = 2.0,
        nvtx: Optional[bool] = None,
        num_workers: Optional[int] = None,
        prefetch_factor: Optional[int] = None,
        pin_memory: bool = False,
        persistent_workers: bool = False,
        timeout: float = 0,
        in_order: bool = True,
        **torch_names: Any,
    ) -> None:
        self._arguments: Dict[str, Any] = {
            key: it for key, it in locals().items() if key not in ("self", "torch_names")
        }
        self._arguments.update(torch_names)
        # Of the outputs only torch's knows pinned memory.
        pin = bool(pin_memory) and output == "torch"
        torch_names.update(
            persistent_workers=persistent_workers, timeout=timeout, in_order=in_order
        )
        if not pin:
            torch_names["pin_memory"] = pin_memory
        workers = _arguments.either(num_workers=num_workers, workers=workers)
        prefetch = _arguments.either(prefetch_factor=prefetch_factor, prefetch=prefetch)
        _arguments.refuse_unknown(torch_names)
        batch_size, seed = whole("batch_size", batch_size), whole("seed", seed, U64)
        self._sampler = _arguments.sampler(sampler, _arguments.flag("shuffle", shuffle))
        self._drop_last = drop_last = _arguments.flag("drop_last", drop_last)
        self._batch_size = batch_size
        strategy, order = text("strategy", strategy), text("order", order)
        window = whole_or_none("window", window)
        rank_timeout = seconds("rank_timeout", rank_timeout)
        rendezvous = _arguments.text_or_none("rendezvous", rendezvous)
        workers = whole_or_none("workers", workers)
        prefetch = whole_or_none("prefetch", prefetch)
        self._convert = _output.converter(output, pin=pin)
        self._ranges = _ranges(nvtx)
        self._columns = _arguments.column_names(columns)
        self._recipe = _arguments.compose(recipe)
        sockets, commands = _devices.sources(device)
        self._given = _world.given(rank, world_size)
        self._rendezvous = rendezvous
        self._world = _world.look(self._given, rendezvous)
        if rendezvous is not None and self._world.source == _world.ALONE:
            raise SettingError(
                f"rendezvous is {rendezvous!r}, but there is only one rank",
                remedy="give rank and world_size as well, or leave rendezvous out",
            )
        has_devices = bool(sockets or commands)
        if strategy == "auto" and not has_devices:
            strategy = "host-only"
        self._strategy = strategy
        self._dataset = _arguments.path("dataset", dataset)
        recipe_toml = self._recipe.to_toml()
        self._settings: _native.Settings = {
            "dataset": self._dataset,
            "recipe": recipe_toml,
            "columns": ["image", "label"] if self._columns is None else self._columns,
            "batch_size": batch_size,
            "drop_last": drop_last,
            "sampler": self._sampler._native(),
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
            "rank": self._world.rank,
            "ranks": self._world.size,
            "meeting": None,
            "rank_timeout": rank_timeout,
            "stall_timeout": seconds("stall_timeout", stall_timeout),
            "on_error": text("on_error", on_error) if isinstance(on_error, str) else on_error,
            "max_errors": whole_or_none("max_errors", max_errors, U64),
            "quarantine": path_or_none("quarantine", quarantine),
        }
        Measured.__init__(self)
        self._is_closed = False
        # The rank that the native loader is for; ``None`` where it has to be opened anew.
        self._opened_for: Optional[Tuple[int, int]] = None
        self._native = self._open(may_wait=True)
        description, checksum = self._native.sampler
        self._fixed: Dict[str, Any] = {
            "dataset": self._native.dataset_sha256,
            "recipe": self._native.recipe_hash,
            "batch_size": batch_size,
            "drop_last": drop_last,
            "sampler": description,
            "sampler_sha256": checksum,
            "seed": seed,
            "world_size": self._world.size,
            "rank": self._world.rank,
        }
        self._pin_memory = pin
        self._batches = self._native.batches
        self._position = Position(epoch=0)
        # The state that was loaded, until a batch of it is handed out.
        self._loaded: Optional[States] = None
        # Difference to the epochs of frameworks, which count from 0 again after a resume.
        self._epoch_offset = 0
        # A batch was handed out, so the rank cannot change any more.
        self._is_used = False
        # Who leaves a loop drops it, and with it what goes on for it.
        self._iterator: Optional["weakref.ref[EpochIterator[BatchT]]"] = None
        self._view: Optional["LoaderDataset"] = None
        _open_loaders.add(self)

    def _open(self, *, may_wait: bool) -> _native.Loader:
        """Opens the native loader for this rank.

        Ranks from the environment may not be able to meet yet. With ``may_wait``, only the host's
        part is opened then; devices follow when an iteration begins.
        """
        world = self._world
        settings: _native.Settings = {**self._settings, "rank": world.rank, "ranks": world.size}
        has_devices = bool(settings["sockets"] or settings["commands"])
        if world.size > 1 and has_devices and settings["strategy"] != "host-only":
            is_early = not _distributed.can_meet(self._rendezvous)
            if may_wait and is_early and world.source == _world.ENVIRONMENT:
                self._opened_for = None
                settings["strategy"] = "host-only"
                settings["sockets"], settings["commands"] = [], []
                return _native.Loader(settings)
            job = (
                f"strategy {settings['strategy']} (order {settings['order']}, window "
                f"{settings['window']}), batches of {settings['batch_size']} (drop_last "
                f"{settings['drop_last']}, sampler {self._sampler}, seed "
                f"{settings['seed']}), and the recipe\n{settings['recipe']}"
            )
            settings["meeting"] = _distributed.meeting(
                world.rank, world.size, self._rendezvous, job, settings["rank_timeout"]
            )
        opened = _native.Loader(settings)
        self._opened_for = world.place
        return opened

    def _look(self) -> None:
        """Determines the rank again, which may change until a batch was handed out."""
        if not self._is_used:
            self._become(_world.look(self._given, self._rendezvous))

    def _become(self, world: World) -> None:
        """Changes to this rank if its source has at least the precedence of the present one."""
        if not world.replaces(self._world):
            return
        if world.place != self._world.place:
            fixed = {**self._fixed, "rank": world.rank, "world_size": world.size}
            batches, _ = self._native.size_of(*world.place)
            resumed: List[str] = []
            position = Position(epoch=self._position.epoch)
            if self._loaded is not None:
                samples = self._native.samples_per_epoch
                position, resumed = position_of(self._loaded, fixed, samples, batches)
            self._fixed, self._batches = fixed, batches
            self._position, self._resumed = position, resumed
        self._world = world

    def _settle(self) -> None:
        """Reopens the native loader if the rank has changed since it was opened.

        :raises RankError: batches were already handed out as another rank.
        """
        world = _world.look(self._given, self._rendezvous)
        if self._is_used and world.replaces(self._world) and world.place != self._world.place:
            raise RankError(
                f"this loader has handed out batches as {self._world}, but this process is now "
                f"{world}",
                remedy=(
                    "initialise torch.distributed before making the loader or iterating over "
                    "it, or load its state_dict() into a new loader"
                ),
            )
        self._look()
        if self._opened_for == self._world.place or self._is_closed:
            return
        self._native.close()
        self._opened_for = None
        self._native = self._open(may_wait=False)
        self._batches = self._native.batches
        if self._exporter is not None:
            self._exporter._move(self._native, *self._world.place)

    def __len__(self) -> int:
        """Batches of an epoch."""
        self._look()
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
    def samples_per_epoch(self) -> int:
        """Samples of an epoch of all ranks together, as the sampler says."""
        return self._native.samples_per_epoch

    @property
    def dataset(self) -> "LoaderDataset":
        """The dataset itself: a sequence of samples as they were packed."""
        if self._view is None:
            self._view = _frameworks.LoaderDataset(self._dataset)
        return self._view

    @property
    def batch_size(self) -> int:
        """Samples in a full batch."""
        return self._batch_size

    @property
    def drop_last(self) -> bool:
        """Whether an incomplete last batch is left out."""
        return self._drop_last

    @property
    def num_workers(self) -> int:
        """Number of worker processes, which is 0: workers are threads of this process."""
        return 0

    @property
    def prefetch_factor(self) -> None:
        """Batches prepared ahead per worker process: ``None``, as there are no worker processes."""
        return None

    @property
    def pin_memory(self) -> bool:
        """Whether batches are copied into pinned memory if torch finds CUDA."""
        return self._pin_memory

    @property
    def sampler(self) -> "Sampler":
        """The sample numbers of this rank in the next epoch, in the order of the host alone.

        Devices change the order of batches, but not their content.
        """
        return _frameworks.Sampler(self)

    @property
    def batch_sampler(self) -> "BatchSampler":
        """The same, batch by batch; see :meth:`as_torch`."""
        return _frameworks.BatchSampler(self)

    @property
    def collate_fn(self) -> Callable[[Any], Any]:
        """The function that a torch DataLoader calls on fetched samples; see :meth:`as_torch`."""
        return _frameworks.collate

    def as_torch(self) -> "torch.utils.data.DataLoader[BatchT]":
        """This loader as a ``torch.utils.data.DataLoader``, for frameworks that take nothing else.

        It yields the same batches and shares this loader's position in the epoch.
        """
        from ._torch import TorchLoader

        return TorchLoader(self)

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
        self._epoch_offset = 0
        self._begin_at(whole("epoch", epoch))

    def seek(self, step: int) -> None:
        """The next iteration begins at this step of its epoch, as if those before had been taken.

        Which epoch that is, :meth:`set_epoch` says.

        :param step: batches of this rank to pass over, from 0 to ``len(loader)``.
        :raises SettingError: there is no such step.
        :raises StateError: the order of batches differs between runs, as under ``"wrr"``, so a step
            does not say which batches come before it.
        :raises ClosedError: the loader was closed.
        """
        if self._is_closed:
            raise ClosedError("the loader was closed", remedy="make another loader")
        self._settle()
        step = whole("step", step, self._batches)
        if step and not self._native.has_host_order:
            raise StateError(
                f"cannot seek step {step}: with strategy {self._strategy!r} the order of batches "
                "differs between runs",
                remedy=(
                    'resume with load_state_dict(), or make the loader with order="baseline"'
                ),
            )
        self._loaded = None
        self._position = Position(self._upcoming().epoch, [(0, step)] if step else None)

    def _begin_at(self, epoch: int) -> None:
        position = self._position
        if self._is_past(position) or position.epoch != epoch:
            self._position, self._loaded = Position(epoch=epoch), None

    def _set_epoch_of_pass(self, epoch: int) -> None:
        """As :meth:`set_epoch`, called by a framework that numbers its passes itself."""
        epoch = whole("epoch", epoch)
        if self._loaded is not None:
            self._epoch_offset = self._position.epoch - epoch
        self._begin_at(max(0, epoch + self._epoch_offset))

    def _left(self) -> Tuple[int, List[int]]:
        """The epoch of the next iteration, and the batches that are left of it."""
        self._settle()
        position = self._upcoming()
        consumed = {batch for start, end in position.ranges for batch in range(start, end)}
        return position.epoch, [it for it in range(self._batches) if it not in consumed]

    def _skip(self, epoch: int, batches: Sequence[int]) -> None:
        """Makes the next iteration one of this epoch, without the first of the batches left.

        :raises StateError: the order is not fixed, so these batches are not determined.
        """
        self._begin_at(epoch)
        if not batches:
            return
        self._settle()
        if not self._native.has_host_order:
            raise StateError(
                f"cannot skip the first {len(batches)} batches of epoch {epoch}: with strategy "
                f"{self._strategy!r} the order of batches differs between runs",
                remedy='resume with load_state_dict(), or make the loader with order="baseline"',
            )
        self._position = self._upcoming().without(batches)

    def _samples_of_rank(self) -> int:
        self._look()
        _, samples = self._native.size_of(*self._world.place)
        return samples

    def _is_past(self, position: Position) -> bool:
        """Whether the next iteration is of the next epoch."""
        # An iteration without a batch taken does not count: Lightning begins each epoch twice.
        return position.is_begun and (position.is_used or len(position) >= self._batches)

    def _upcoming(self) -> Position:
        """Where the next iteration begins."""
        position = self._position
        return Position(epoch=position.epoch + 1) if self._is_past(position) else position

    def __iter__(self) -> "EpochIterator[BatchT]":
        self._end_iterator()
        self._settle()
        # An import during the first step would be counted as training.
        _output.load(self._convert)
        position = self._upcoming().begun()
        self._position = position
        is_whole = len(position) >= self._batches
        record = position.record if position.strategy == self._strategy else None
        serial = None
        if not is_whole:
            serial = self._native.begin(position.epoch, position.ranges, record, position.errors)
        position.strategy = self._strategy
        iterator = EpochIterator(self, serial, position)
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
        if self._columns is None:
            return self._column(batch, "image"), self._column(batch, "label")
        return {name: self._column(batch, name) for name in self._columns}

    def _column(self, batch: _native.Batch, name: str) -> Any:
        if name == "label":
            # Without leave to use 64 bits, which is its default, JAX has integers of 32.
            labels = batch.labels(narrow=_output.has_narrow_integers(self._convert))
            return None if labels is None else self._convert(labels)
        if name == "sample":
            narrow = _output.has_narrow_integers(self._convert)
            return self._convert(batch.sample_numbers(narrow=narrow))
        values = batch.column(name)
        if isinstance(values, tuple):
            return Ragged(*(self._convert(part) for part in values))
        return values if isinstance(values, list) else self._convert(values)

    def _warn_of_losses(self, warned: bool) -> bool:
        """Warns of a device that was lost or fell silent, once per epoch."""
        losses = self._native.take_losses()
        if losses and not warned:
            warnings.warn(losses[0], DeviceWarning, stacklevel=4)
        return warned or bool(losses)

    def state_dict(self) -> Dict[str, Any]:
        """Where the loader is: a small dictionary of numbers and texts, good for JSON.

        Counted is what was handed out, so what was prepared ahead is neither lost nor repeated.
        """
        self._look()
        position = self._position
        if len(position) >= self._batches:
            position = Position(epoch=position.epoch + 1)
        return {"version": 2, **self._fixed, **position.to_dict()}

    def load_state_dict(self, state: States) -> None:
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
        self._look()
        samples = self._native.samples_per_epoch
        position, self._resumed = position_of(state, self._fixed, samples, self._batches)
        self._end_iterator()
        self._position, self._loaded = position, state

    def errors(self) -> List[DamagedSample]:
        """The damaged samples of the batches that were handed out, the last 10,000 of them.

        Empty under ``on_error="raise"``, where the first one is an exception.
        """
        return list(self._damaged)

    @property
    def device_processes(self) -> List[int]:
        """Process ids of the devices that are used, as they were when the loader was opened."""
        return self._native.device_processes

    def close(self) -> None:
        """Ends the epoch, the threads and the devices that were started. Batches stay good."""
        self._iterator = None
        self._is_closed = True
        self._native.close()
        _open_loaders.discard(self)
        if self._exporter is not None:
            self._exporter._warn()

    def __reduce__(self) -> Tuple[Any, ...]:
        return (_rebuild, (self._arguments, self.state_dict(), self._world))

    def __repr__(self) -> str:
        state = ", closed" if self._native.is_closed else ""
        return f"<meetpoint.Loader {self._dataset!r}, {self._batches} batches{state}>"


def _rebuild(arguments: Dict[str, Any], state: Dict[str, Any], world: World) -> "Loader[Any]":
    loader: Loader[Any] = Loader(**arguments)
    # A process that was spawned by a rank has no process group that says which rank it is.
    if world.is_better_known_than(loader._world):
        loader._become(world)
    loader.load_state_dict(state)
    if not state["consumed"]:
        loader._loaded = None
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
