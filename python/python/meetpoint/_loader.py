"""The loader: arguments, iteration, epochs. Everything else is native."""

from __future__ import annotations

import atexit
import warnings
import weakref
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    Literal,
    Optional,
    Set,
    Tuple,
    TypeVar,
    Union,
    cast,
    overload,
)

from . import _checked, samplers
from ._arguments import Recipe
from ._closing import Closing
from ._damage import DamagedSample, OnError
from ._devices import Devices
from ._frameworks import DataLoaderLike
from ._iterator import EpochIterator
from ._loader_types import Columns, Path, Paths
from ._world import World
from .collate import Collate
from .errors import DeviceWarning, GpuWarning
from .transforms import Compose

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._loader_types import (
        ColumnBatch,
        DlpackBatch,
        JaxBatch,
        NumpyBatch,
        Options,
        TorchBatch,
        Varied,
    )

__all__ = ["Loader"]

BatchT = TypeVar("BatchT")
ResultT = TypeVar("ResultT")

_LOSSES = {kind.__name__: kind for kind in (DeviceWarning, GpuWarning)}
"""The warnings of the native loader, by name."""

_open_loaders: "weakref.WeakSet[Loader[Any]]" = weakref.WeakSet()


class Loader(DataLoaderLike[BatchT], Closing):
    """Batches of a packed dataset, epoch after epoch.

    Iterating yields ``(images, labels)`` for every batch of an epoch. ``images`` has the shape
    [batch, height, width, 3], or [batch, 3, height, width] if the recipe sets this layout, and the
    recipe's dtype. ``labels`` are int64 (int32 for ``"jax"``), float32 [batch, classes] after an
    operation on batches, or ``None`` if the dataset has no labels. Each ``iter()`` begins the next
    epoch, with its own order and random parameters, or the same epoch again if no batch of it was
    taken. Only the latest iteration is active. The memory of a batch is not reused until the last
    array that views it is dropped.

    :param dataset: folder of a packed dataset (:func:`meetpoint.pack` creates one), or a list of
        them, which are served as one: the samples of the first, those of the second, and so on. Their
        columns must be the same; labels are merged by name. ``meetpoint.samplers.Mixture`` mixes them.
    :param recipe: a :class:`meetpoint.transforms.Compose`, a list of transforms, torchvision
        transforms, the path of a recipe file, or the name of a recipe of
        :mod:`meetpoint.recipes`, such as ``"deit@1"``.
    :param plan: a plan that :func:`meetpoint.plan` wrote. It supplies dataset, recipe and every
        other argument that it has and that is left at its default. A plan for another dataset or
        recipe is refused, with the difference.
    :param batch_size: samples in a batch.
    :param shuffle: whether every epoch is shuffled: true is short for the sampler ``Shuffled()``,
        false for ``Sequential()``.
    :param sampler: which samples an epoch has, and in which order: one of
        :mod:`meetpoint.samplers`, such as ``Weighted("weight")``.
    :param drop_last: whether to drop a last batch that is not full.
    :param seed: seed of the order and the random parameters. The same seed gives the same samples,
        on the host and on devices.
    :param strategy: how batches are divided between host and devices: ``"auto"``, ``"host-only"``,
        ``"device-only"``, ``"mte"``, ``"mte-feedback"``, ``"wrr"``, ``"wrr-frozen"`` or
        ``"windowed"``.
    :param order: the order of batches that ``"auto"`` must ensure: ``"any"``, ``"replayable"``, or
        ``"baseline"``, which is the order of the host alone.
    :param window: batches in a window of ``"windowed"``.
    :param device: ``"emulated"``, an :class:`Emulated`, ``"unix:PATH"`` of a running device, a
        :class:`Remote` or ``"tcp://HOST:PORT"`` of one on another machine, ``"file:PATH"`` of
        a file with such an address, ``"srv:NAME"`` for the targets of a DNS SRV record, several
        addresses separated by commas, a list of these, or ``None`` for the host alone.
    :param workers: threads that prepare batches; ``None`` for one less than the number of cores
        that the process may use. Torch's name ``num_workers`` is accepted too.
    :param prefetch: batches prepared ahead per worker; torch's ``prefetch_factor``.
    :param tune: ``"auto"`` adapts the numbers of workers and of batches ahead while epochs run,
        within the cores that the process may use and ``memory_budget``; ``"off"`` keeps them.
        Batches and their order do not change. :meth:`explain` states the result.
    :param memory_budget: maximum bytes of all batches that are prepared ahead or in use, a number
        or a string such as ``"1GiB"``; ``None`` for 512 MiB, or a quarter of the memory that the
        process may use if that is less. To decode large pictures, all workers and the devices on
        this machine together use at most the same amount again.
    :param small_samples: maximum bytes of ``memory_budget`` for the stored bytes of small samples
        (of at most 4 KiB on average), which are then read once; ``0`` for none. By default what
        batches leave of it, at most 256 MiB.
    :param cache: maximum bytes of memory for samples as the first operations of the recipe give
        them, a number or a string such as ``"2GiB"``. Later epochs take them from there, with the
        same bits; the sample whose next use is last is evicted first. Ranks of one machine share
        it.
    :param cache_after: number of operations after which samples are cached; by default all that
        have the same result in every epoch.
    :param cache_dir: folder in which parts of a dataset at a URL are cached, for this process and
        later ones; by default ``meetpoint`` in the user's cache. Processes of this machine share it.
    :param cache_size: maximum bytes of the cache of a dataset at a URL.
    :param anonymous: whether requests for a dataset at a URL are sent without credentials.
    :param spool_quota: maximum bytes of the batches that devices have ready, a number or a string
        such as ``"256MiB"``; ``None`` for 256 MiB, or an eighth of the memory that the process may
        use if that is less.
    :param spool_folder: folder of a file for these batches; ``None`` for unnamed shared memory.
    :param rank: index of this process among ``world_size`` processes. By default the rank of
        ``torch.distributed`` when an iteration begins, otherwise ``RANK`` and ``WORLD_SIZE`` in the
        environment. With ``rank=0, world_size=1`` this process loads everything. All ranks take the
        same number of steps.
    :param world_size: processes that share every epoch.
    :param rendezvous: address over which ranks with devices agree on the source of every step:
        ``"unix:PATH"`` (one machine) or ``"tcp://HOST:PORT"`` of rank 0, the same for all ranks. By
        default, ranks exchange addresses through ``torch.distributed``.
    :param rendezvous_token_file: file with a token that all ranks share, required for a rendezvous
        over TCP; by default the file that the environment variable
        ``MEETPOINT_RENDEZVOUS_TOKEN_FILE`` names. Both ends of a connection prove that they have
        the token, and it never crosses the network.
    :param rank_timeout: seconds after which a rank that sends no messages is treated as lost. A
        rank sends messages while it prepares a batch or waits for its devices. A rank whose process
        ends is noticed at once.
    :param rank_link_timeout: seconds after which a connection between ranks on which nothing
        arrives is treated as broken, at least 1; by default 20 between hosts, and no limit on one
        machine. Ranks send messages at least once a second, also during a training step.
    :param output: ``"numpy"``, ``"torch"``, ``"jax"``, or ``"dlpack"`` for tensors that any library
        accepts with its ``from_dlpack``. Nothing is copied, except with torch's ``pin_memory=True``
        if torch finds CUDA: then every batch is copied into pinned memory.
    :param device_out: ``"cuda"`` or ``"cuda:INDEX"``: batches are copied to this GPU ahead of the
        consumer, with the same content as on the host. If the recipe ends in ``ToDtype``,
        ``Normalize`` or ``Layout``, bytes are copied, and the GPU executes these operations;
        otherwise :attr:`report` has a notice that says why not. Texts and bytes stay on the host.
        The output is ``"torch"``, ``"jax"`` or ``"dlpack"``; the last not with ``collate="list"``,
        whose samples could not be indexed. The GPU memory of a batch is rounded up to a multiple of
        2 MiB.
    :param gpu_prefetch: batches that are copied to the GPU before they are requested; 2 by default.
    :param gpu_memory: maximum bytes of GPU memory for the batches of ``device_out``, including
        those in use; ``gpu_decode`` may use the same amount again. 4 GiB by default. Each batch
        takes a multiple of 2 MiB, so this must be a few times its size, rounded up. If batches use
        up the memory for 10 seconds, a :class:`BudgetError` is raised. The CPU decodes samples that
        do not fit into the memory of ``gpu_decode``, for which an eighth as much is page-locked on
        the host.
    :param gpu_pinned_memory: maximum bytes of page-locked memory from which batches are copied:
        slots of the loader and of spools, and a staging buffer of up to 32 MiB for other batches;
        2 GiB by default.
    :param device_dtype: ``"bfloat16"``: pictures that the recipe makes float32 are bfloat16 on the
        GPU, rounded to nearest even, for ``"torch"``, ``"jax"`` or ``"dlpack"``. An error without a
        column of pictures, or if the GPU does not convert them. They take half the memory of
        float32, rounded up to a multiple of 2 MiB for the batch.
    :param gpu_decode: ``"cuda"`` or ``"cuda:INDEX"``: this GPU decodes and transforms a share of
        each batch of the host, to the same bits as the CPU. The CPU prepares the rest, and samples
        that the GPU cannot prepare; :meth:`report` counts both. If the GPU fails during an epoch, a
        :class:`GpuWarning` is issued, and the CPU prepares its share. ``False`` turns off the GPU
        of a plan.
    :param gpu_share: part of each batch that ``gpu_decode`` prepares, from 0 to 1. With ``"auto"``,
        the default, it adapts so that the GPU and the thread of the CPU finish a batch at the same
        time.
    :param columns: names of the columns of a batch: ``"image"``, ``"label"``, ``"key"``,
        ``"sample"`` (number in the dataset, int64) and further columns of the dataset. Iterating
        then yields dictionaries of these columns, in this order. Numbers are arrays [batch, ...],
        lists of different lengths are a :class:`Ragged`, and texts and bytes are lists of ``str``
        and ``bytes``. Columns of variable length are read once when the loader opens, to determine
        the memory that a batch needs. Content is decoded only if ``"image"`` is among the columns.
        With a recipe of :class:`~meetpoint.transforms.Views`, the names of the views replace
        ``"image"``; without ``columns``, batches are dictionaries of all views and ``"label"``.
    :param collate: how pictures of different sizes are combined: ``"stack"`` needs a recipe that
        produces one size; ``"pad"`` pads them to the largest height and width of the batch;
        ``"list"`` gives a :class:`TensorList`; or a :class:`meetpoint.collate.Pad` or
        :class:`meetpoint.collate.List` with options. Masks are treated in the same way. Without
        ``columns``, batches are then dictionaries of ``"image"``, with ``"pad"`` ``"image_size"``,
        and ``"label"``.
    :param batch_transform: a function that is called with each batch; iterating yields what it
        returns. It runs in the thread that iterates, and :meth:`explain` reports its time
        separately. An exception in it causes a :class:`TransformError`, which ends the iteration.
    :param on_error: how samples that cannot be read or decoded are handled. ``"raise"`` raises an
        exception. ``"skip"`` drops the sample; a batch without samples is not delivered, and an
        epoch without samples causes a :class:`DamageWarning`. ``"replace"`` uses another sample,
        which is the same on the host and on devices. A function receives a :class:`DamagedSample`
        and returns one of these words; it is called on the threads of the loader, possibly on
        several at once.
    :param max_errors: maximum number of damaged samples in an epoch; one more raises a
        :class:`DamageLimitError`.
    :param quarantine: file to which one line of JSON is appended for each damaged sample.
    :param stall_timeout: seconds after which the host takes over the work of a device that reports
        no progress.
    :param nvtx: whether every wait for a batch and every delivery is marked as a range for NVIDIA's
        profilers, with ``torch.cuda.nvtx`` if a CUDA build of torch is imported, otherwise with the
        package ``nvtx``. ``None`` marks ranges if one of them is available.
    :raises SettingError: an argument out of its range.
    :raises DatasetError: the dataset does not open.
    :raises GpuError: the GPU of ``device_out`` or ``gpu_decode`` cannot be used.
    :raises DeviceError: a device cannot be started or reached.
    :raises RankError: the other ranks did not connect, or have a different job.
    """

    @overload
    def __init__(
        self: "Loader[NumpyBatch]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["numpy"] = ...,
        columns: None = ...,
        batch_transform: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[TorchBatch]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["torch"],
        columns: None = ...,
        batch_transform: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[JaxBatch]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["jax"],
        columns: None = ...,
        batch_transform: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[DlpackBatch]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["dlpack"],
        columns: None = ...,
        batch_transform: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[Tuple[Any, Any]]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["numpy", "torch", "jax", "dlpack"],
        columns: None = ...,
        batch_transform: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ColumnBatch]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["numpy", "torch", "jax", "dlpack"] = ...,
        columns: Columns,
        batch_transform: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ResultT]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["numpy"] = ...,
        columns: None = ...,
        batch_transform: Callable[["NumpyBatch"], ResultT],
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ResultT]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["torch"],
        columns: None = ...,
        batch_transform: Callable[["TorchBatch"], ResultT],
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ResultT]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["jax"],
        columns: None = ...,
        batch_transform: Callable[["JaxBatch"], ResultT],
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ResultT]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["dlpack"],
        columns: None = ...,
        batch_transform: Callable[["DlpackBatch"], ResultT],
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ResultT]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["numpy", "torch", "jax", "dlpack"],
        columns: None = ...,
        batch_transform: Callable[["Tuple[Any, Any]"], ResultT],
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ResultT]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["numpy", "torch", "jax", "dlpack"] = ...,
        columns: Columns,
        batch_transform: Callable[["ColumnBatch"], ResultT],
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ColumnBatch]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["numpy", "torch", "jax", "dlpack"] = ...,
        columns: Optional[Columns] = ...,
        collate: "Varied",
        batch_transform: None = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[ResultT]",
        dataset: Paths,
        *,
        recipe: Recipe,
        output: Literal["numpy", "torch", "jax", "dlpack"] = ...,
        columns: Optional[Columns] = ...,
        collate: "Varied",
        batch_transform: Callable[["ColumnBatch"], ResultT],
        **options: "Unpack[Options]",
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[Any]",
        dataset: Optional[Paths] = ...,
        *,
        plan: Path,
        recipe: Optional[Recipe] = ...,
        output: Literal["numpy", "torch", "jax", "dlpack"] = ...,
        columns: Optional[Columns] = ...,
        batch_transform: Optional[Callable[[Any], Any]] = ...,
        **options: "Unpack[Options]",
    ) -> None: ...

    def __init__(
        self,
        dataset: Optional[Paths] = None,
        *,
        recipe: Optional[Recipe] = None,
        plan: Optional[Path] = None,
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
        tune: str = "off",
        memory_budget: Union[int, str, None] = None,
        small_samples: Union[int, str, None] = None,
        cache: Union[int, str, None] = None,
        cache_after: Optional[int] = None,
        cache_dir: Optional[Path] = None,
        cache_size: Union[int, str] = "16GiB",
        anonymous: bool = False,
        spool_quota: Union[int, str, None] = None,
        spool_folder: Optional[Path] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        rendezvous: Optional[str] = None,
        rendezvous_token_file: Optional[Path] = None,
        rank_timeout: float = 1800.0,
        rank_link_timeout: Optional[float] = None,
        output: str = "numpy",
        device_out: Any = None,
        gpu_prefetch: Optional[int] = None,
        gpu_memory: Union[int, str, None] = None,
        gpu_pinned_memory: Union[int, str, None] = None,
        device_dtype: Optional[str] = None,
        gpu_decode: Any = None,
        gpu_share: Union[str, float, None] = None,
        columns: Optional[Columns] = None,
        collate: Union[str, Collate] = "stack",
        batch_transform: Optional[Callable[[Any], Any]] = None,
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
            key: it
            for key, it in locals().items()
            if key not in ("self", "torch_names", "__class__")
        }
        self._apply_plan()
        checked = _checked.check(self._arguments, torch_names)
        self._arguments.update(torch_names)
        self._recipe, self._delivery = checked.recipe, checked.delivery
        self._pin_memory = checked.pin_memory
        super().__init__(checked)
        # Leaving a loop drops the iterator, which ends its background work.
        self._iterator: Optional["weakref.ref[EpochIterator[BatchT]]"] = None
        _open_loaders.add(self)

    def _apply_plan(self) -> None:
        given = self._arguments
        if given["plan"] is not None:
            from ._plan import fill

            init = cast(Any, Loader.__init__)  # pyright: ignore[reportUnknownMemberType]
            fill(given, init.__kwdefaults__)
        for name in ("dataset", "recipe"):
            if given[name] is None:
                raise TypeError(f"Loader() needs {name}, or a plan, which names it")
        # What it says is among the arguments now.
        given["plan"] = None

    @property
    def recipe(self) -> Compose:
        """The recipe, which is applied to every image."""
        return self._recipe

    @property
    def samples(self) -> int:
        """Samples in the dataset."""
        return self._native.samples

    @property
    def samples_per_epoch(self) -> int:
        """Samples in an epoch of all ranks together, as determined by the sampler."""
        return self._native.samples_per_epoch

    @property
    def label_names(self) -> List[str]:
        """The name of each label; empty if there are none."""
        return self._native.label_names

    def __iter__(self) -> "EpochIterator[BatchT]":
        self._end_iterator()
        self._settle()
        self._delivery.load()
        position = self._upcoming().begun()
        self._position = position
        self._note_division(position)
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

    def _warn_of_losses(self, warned: Set[str]) -> None:
        """Warns of a device that was lost or fell silent, and of a GPU that failed: each once per
        epoch."""
        for name, sentence in self._native.take_losses():
            if name not in warned:
                warned.add(name)
                warnings.warn(sentence, _LOSSES[name], stacklevel=3)

    def errors(self) -> List[DamagedSample]:
        """The damaged samples of the delivered batches; only the last 10,000.

        Empty under ``on_error="raise"``, which raises an exception for the first one.
        """
        return list(self._damaged)

    @property
    def device_processes(self) -> List[int]:
        """Process IDs of the devices, as they were when the loader was opened."""
        return self._native.device_processes

    def close(self) -> None:
        """Ends the epoch and stops the loader's threads and devices. Batches stay valid."""
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
        datasets = self._settings["dataset"]
        named = datasets[0] if len(datasets) == 1 else datasets
        return f"<meetpoint.Loader {named!r}, {self._batches} batches{state}>"


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
