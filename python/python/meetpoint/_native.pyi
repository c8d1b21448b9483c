"""The native runtime. Use the package ``meetpoint``, which wraps it; users see only tensors and
batches.
"""

from os import PathLike
from typing import (
    Any,
    Callable,
    Dict,
    List,
    Optional,
    Sequence,
    Tuple,
    TypedDict,
    Union,
    final,
)

from ._damage import DamagedSample

class Output(TypedDict):
    """The result of a recipe for one image."""

    shape: List[int]
    """[height, width, channels] or [channels, height, width]; 1, 3 or 4 channels."""
    dtype: str
    """NumPy's name."""
    layout: str
    """``"NHWC"`` or ``"NCHW"``."""

class Described(TypedDict):
    """A recipe that was checked."""

    toml: str
    form: str
    """JSON, with all defaults written out and the paths of files."""
    hash: str
    is_deterministic: bool
    outputs: Dict[str, Optional[Output]]

@final
class RankListener:
    """A listening socket of rank 0, for ``unix:PATH`` or ``tcp://HOST:PORT`` (port 0: any)."""

    def __new__(cls, place: str) -> RankListener: ...
    @property
    def port(self) -> Optional[int]:
        """Of TCP."""

class Meeting(TypedDict):
    """How ranks connect; every key is required."""

    place: str
    token: Optional[bytes]
    """32 bytes that all ranks know; ``None`` only at ``unix:PATH``."""
    listener: Optional[RankListener]
    """The listener of rank 0, if it already listens."""
    attempt: Tuple[str, int]
    """The run and the number of its attempt."""
    job: str
    """The job of this rank; the same for all ranks."""
    silence: Optional[float]
    """Seconds without a message after which a connection is broken; ``None`` for the default."""

def rank_token(file: str) -> bytes:
    """The token in a file.

    :raises SettingError: it is not a token.
    """

class RemoteSettings(TypedDict):
    """A device on another machine; every key is required."""

    address: str
    """``tcp://HOST:PORT`` or ``file:PATH``."""
    keys: Optional[str]
    ca: Optional[str]
    cert: Optional[str]
    key: Optional[str]
    crl: Optional[str]
    server_name: Optional[str]
    token_file: Optional[str]
    root: Optional[str]

class GpuArguments(TypedDict):
    """How batches are delivered to a GPU; every key is required."""

    device: str
    """``cuda`` or ``cuda:INDEX``."""
    prefetch: int
    memory: int
    """Bytes of GPU memory."""
    pinned: int
    """Bytes of page-locked memory."""
    bfloat16: bool
    """Whether float32 is converted to bfloat16 on the GPU."""
    packages: List[str]
    """Folders of Python packages."""

class DecodeArguments(TypedDict):
    """The GPU that prepares a share of each batch of the host; every key is required."""

    device: str
    """``cuda`` or ``cuda:INDEX``."""
    share: Optional[float]
    """From 0 to 1; ``None``: by measurement."""
    memory: Optional[int]
    """Bytes of GPU memory; ``None``: the default."""
    packages: List[str]
    """Folders of Python packages."""

class Settings(TypedDict):
    """The settings of a loader; every key is required."""

    dataset: List[str]
    recipe: str
    """TOML."""
    columns: List[str]
    collate: Tuple[str, Optional[int], Optional[float], Optional[Tuple[int, int]]]
    """Mode, multiple_of, fill and max_size."""
    batch_size: int
    drop_last: bool
    sampler: Tuple[str, List[Tuple[str, Union[bool, int, str, Tuple[str, bytes]]]]]
    seed: int
    strategy: str
    order: str
    window: Optional[int]
    workers: int
    prefetch: int
    tune: str
    memory_budget: Optional[int]
    """Bytes."""
    small_samples: Optional[int]
    """Bytes."""
    cache: Optional[int]
    """Bytes."""
    cache_after: Optional[int]
    cache_dir: Optional[str]
    cache_size: int
    """Bytes."""
    anonymous: bool
    sockets: List[str]
    remotes: List[RemoteSettings]
    commands: List[List[str]]
    spool_quota: Optional[int]
    """Bytes."""
    spool_folder: Optional[str]
    rank: int
    ranks: int
    meeting: Optional[Meeting]
    """How the ranks connect, if they need to agree on steps."""
    rank_timeout: float
    """Seconds."""
    stall_timeout: float
    """Seconds."""
    on_error: Union[str, Callable[[DamagedSample], str]]
    max_errors: Optional[int]
    quarantine: Optional[str]
    gpu: Optional[GpuArguments]
    """The GPU to which batches are delivered."""
    gpu_decode: Optional[DecodeArguments]

@final
class Tensor:
    """A tensor in native memory, dense and row-major, on the CPU or on a GPU.

    Any library takes it without a copy: ``numpy.asarray``, ``numpy.from_dlpack``,
    ``torch.from_dlpack``, ``jax.numpy.from_dlpack``. The memory is used for nothing else until the
    last of all that show it is gone.
    """

    @property
    def shape(self) -> List[int]:
        """Its axes, outermost first."""
    @property
    def dtype(self) -> str:
        """NumPy's name: bool, uint8 to uint64, int8 to int64, or float16 to float64."""
    @property
    def __array_interface__(self) -> Dict[str, Any]:
        """NumPy's array interface, version 3.

        :raises AttributeError: the tensor is on a GPU.
        """
    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        """The interface of CuPy and Numba, version 3.

        :raises AttributeError: the tensor is on the CPU.
        """
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        """NumPy's array.

        :raises TypeError: the tensor is on a GPU.
        """
    def __dlpack__(
        self,
        *,
        stream: Optional[Any] = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """A capsule of DLPack 1.0 if ``max_version`` allows it, otherwise of the previous version.

        On a GPU, ``stream`` waits for the content: a handle, 1 for the legacy default stream, as
        also ``None`` means, 2 for that of the thread, or -1 for no stream. The stream must exist
        as long as the tensor.

        :raises BufferError: a stream on the CPU, another device or a copy was requested.
        :raises ValueError: the stream is 0 or less than -1.
        :raises GpuError: the GPU failed.
        """
    def __dlpack_device__(self) -> Tuple[int, int]:
        """(1, 0): the CPU. (2, index): a GPU."""

@final
class Batch:
    """A prepared batch."""

    @property
    def columns(self) -> List[str]:
        """Names of its columns, in the requested order."""
    def column(
        self, name: str
    ) -> Union[
        Tensor, Tuple[Tensor, Tensor], Tuple[Tensor, Tensor, Tensor], List[str], List[bytes]
    ]:
        """The values of a column, by its kind: a tensor [batch, ...]; values [rows, ...] and
        offsets [batch + 1] (int64, in rows) of a ragged tensor; elements, offsets and shapes
        [batch, axes] of tensors that have a shape of their own; a text or bytes per sample.

        :raises KeyError: the batch has no such column.
        """
    @property
    def has_labels(self) -> bool:
        """Whether the dataset has labels and the batch contains them."""
    def sample_numbers(self, *, narrow: bool = False) -> Tensor:
        """Indices of its samples in the dataset: int64, or int32 if requested and sufficient."""

    def labels(self, *, narrow: bool = False) -> Optional[Tensor]:
        """[batch], int64, or int32 with ``narrow``; float32 [batch, classes] after an operation on
        batches; ``None`` if there are no labels.
        """
    @property
    def samples(self) -> List[int]:
        """Indices of its samples in the dataset."""
    @property
    def damaged(self) -> List[Dict[str, Any]]:
        """Its damaged samples and how they were handled, as arguments of :class:`DamagedSample`."""
    @property
    def index(self) -> int:
        """Index in the epoch."""
    @property
    def epoch(self) -> int:
        """Epoch, from 0."""
    @property
    def device(self) -> Optional[int]:
        """Number of the device that prepared it; ``None`` for the host."""
    def __len__(self) -> int: ...

@final
class Loader:
    """A loader on a separate thread."""

    def __new__(cls, settings: Settings) -> Loader: ...
    @property
    def batches(self) -> int: ...
    @property
    def samples(self) -> int: ...
    @property
    def samples_per_epoch(self) -> int: ...
    @property
    def sampler(self) -> Tuple[str, str]:
        """The sampler with its options, and its checksum on the dataset."""
    @property
    def has_host_order(self) -> bool:
        """Whether batches are delivered in the order of the host alone."""
    def size_of(self, rank: int, ranks: int) -> Tuple[int, int]:
        """Batches and samples of an epoch of another rank."""
    def samples_of(self, epoch: int, batches: Sequence[int]) -> List[List[int]]:
        """The sample indices of these batches, in order."""
    @property
    def label_names(self) -> List[str]: ...
    @property
    def recipe_hash(self) -> str: ...
    @property
    def dataset_sha256(self) -> str: ...
    @property
    def notices(self) -> List[str]: ...
    @property
    def device_processes(self) -> List[int]: ...
    @property
    def is_closed(self) -> bool: ...
    def begin(
        self,
        epoch: int,
        consumed: Sequence[Tuple[int, int]] = ...,
        record: Optional[str] = None,
        errors: int = 0,
    ) -> int:
        """Begins an epoch, without the batches of these ranges, which had so many damaged samples;
        a number for ``next``."""
    def next(self, serial: int) -> Optional[Batch]:
        """The next batch, waiting for it while other threads run; ``None`` at the end."""
    def note_transform(self, serial: int, seconds: float) -> None:
        """Counts time of the user's batch transform, for :meth:`explain`."""
    def abandon(self, serial: int) -> None:
        """Ends an epoch, without waiting for that."""
    @property
    def rest_record(self) -> Optional[str]:
        """The record that determines the order of the remaining batches."""
    def take_losses(self) -> List[Tuple[str, str]]:
        """Losses since the previous call: the class of the warning, and a sentence."""
    def take_finished(self) -> List[str]:
        """Measurements of the epochs that ended since the previous call, as JSON."""
    def explain(self, replayed_step: Optional[float] = None) -> Optional[str]:
        """What limited the last epoch, as JSON; ``replayed_step``: seconds of a step on ready
        batches.
        """
    def write_trace(self, path: str) -> Tuple[int, int]:
        """Events written, and batches left out."""
    def metrics(self) -> str:
        """OpenMetrics text."""
    def export_metrics(self, settings: ExportSettings) -> MetricsExporter:
        """Starts to send metrics to a collector, counting from 0."""
    def begin_energy(self, power: Optional[str] = None) -> Energy: ...
    def end_energy(self, energy: Energy) -> str:
        """The measurements and the result of the model, as JSON."""
    def close(self) -> None:
        """Ends threads and devices."""

class ExportSettings(TypedDict):
    """Where metrics are sent; every key must be there."""

    endpoint: Optional[str]
    """URL; ``None``: from the environment."""
    interval: Optional[float]
    """Seconds; ``None``: from the environment."""
    attributes: List[Tuple[str, str]]
    """Of the resource."""
    rank: int
    ranks: int

@final
class MetricsExporter:
    """A thread that sends metrics to an OpenTelemetry collector."""

    @property
    def exports(self) -> int:
        """Number of successful exports."""
    @property
    def failures(self) -> int:
        """Number of failed exports."""
    @property
    def failure(self) -> Optional[str]:
        """Why the last failed export failed."""
    def take_failure(self) -> Optional[str]:
        """Why the first failed export failed; returned only once."""
    def flush(self, timeout: float) -> bool:
        """Exports now, and waits at most this many seconds. Returns whether it succeeded."""
    def close(self) -> None:
        """Exports once more, for at most a second, and ends the thread."""

@final
class Energy:
    """An interval whose energy is measured."""

@final
class Dataset:
    """An open dataset."""

    def __new__(
        cls,
        path: List[str],
        *,
        mapped: bool = False,
        cache_dir: Optional[str] = None,
        cache_size: Optional[int] = None,
        anonymous: bool = False,
    ) -> Dataset: ...
    @property
    def path(self) -> str: ...
    @property
    def label_names(self) -> List[str]: ...
    @property
    def sha256(self) -> str: ...
    @property
    def manifest(self) -> str:
        """``dataset.json``."""
    def __len__(self) -> int: ...
    def key(self, sample: int) -> str: ...
    def sample(self, sample: int) -> Tuple[str, bytes, Optional[int]]:
        """Key, file as it was packed, and label."""
    def find(self, key: str) -> Optional[int]:
        """The sample with a key."""
    @property
    def columns(self) -> List[str]:
        """Names of its columns."""
    def stream(self, columns: List[str]) -> Any:
        """A capsule ``arrow_array_stream`` of these columns and ``"sample"``."""

@final
class Writer:
    """A writer of a dataset of images."""

    def __new__(cls, path: str, *, force: bool, part_bytes: int) -> Writer: ...
    def push(self, key: str, image: bytes, label: Optional[int]) -> None: ...
    def finish(self, labels: List[str], source: str) -> int:
        """Completes the dataset; returns the number of its samples."""
    def discard(self) -> None:
        """Removes everything that was written."""

def describe_recipe(
    toml: str, made_of: Optional[Sequence[Tuple[int, str]]] = None
) -> Described:
    """Reads and checks a recipe; ``made_of`` are position and class of the transform of each
    operation, which errors then name."""

def load_recipe(name: Union[str, "PathLike[str]"]) -> str:
    """The TOML of a recipe file, or of the shipped recipe of this name."""

def check_gpu(argument: str, device: str) -> None:
    """Raises a ``SettingError`` if an argument does not name a GPU."""

def shipped_recipes() -> str:
    """The shipped recipes: JSON, name, version, about, source and toml of each."""

def shipped_recipe(name: str, changes: List[str]) -> str:
    """The TOML of a shipped recipe with other values of some keys, each ``KEY = VALUE``."""

def contact_sheet(
    dataset: str, recipe: str, samples: int, draws: int, seed: int, epoch: int
) -> Tuple[bytes, Tuple[int, int], List[Tuple[int, str]]]:
    """A PNG, its width and height, and number and key of the sample in each row."""

def recipe_schema() -> str:
    """The declarations of all operations: JSON, as ``meetpoint recipe schema --json`` prints."""

_Progress = Optional[Callable[[int, Optional[int], int, Optional[int]], object]]
_Options = Dict[str, Any]
"""By their names on the command line; every option of the command must be present."""

# Commands return their result as the JSON document of ``--json``.

def pack(source: str, destination: str, options: _Options, progress: _Progress) -> str: ...
def read_plan(path: str, dataset: Optional[List[str]], recipe: Optional[str]) -> str: ...
def prepare(
    recipe: str, source: str, destination: str, options: _Options, progress: _Progress
) -> str: ...
def index(source: str, destination: str, options: _Options, progress: _Progress) -> str: ...
def index_keys(dataset: str, progress: _Progress) -> str: ...
def unpack(dataset: str, destination: str, options: _Options, progress: _Progress) -> str: ...
def convert(source: str, destination: str, options: _Options, progress: _Progress) -> str: ...
def plan_shards(command: str, positional: List[str], options: _Options, shards: int) -> str: ...
def open_shards(folder: str) -> str: ...
def run_shard(folder: str, shard: int, threads: int, progress: _Progress) -> str: ...
def commit_shards(folder: str) -> Tuple[str, str]: ...
def verify(
    dataset: str,
    deep: bool,
    threads: int,
    store: Tuple[Optional[str], Optional[int], bool],
    progress: _Progress,
) -> str: ...
def shuffle(
    dataset: str, destination: str, seed: int, writing: _Options, progress: _Progress
) -> str: ...
def sample(
    dataset: str, destination: str, options: _Options, writing: _Options, progress: _Progress
) -> str: ...
def select(
    dataset: str, destination: str, fitting: _Options, writing: _Options, progress: _Progress
) -> str: ...
def merge(
    datasets: List[str],
    destination: str,
    order: str,
    prefix: List[str],
    writing: _Options,
    progress: _Progress,
) -> str: ...
def split(dataset: str, options: _Options, writing: _Options, progress: _Progress) -> str: ...
def stats(dataset: str, threads: int, progress: _Progress) -> str: ...
def diff(
    left: str, right: str, list: int, trust_checksums: bool, threads: int, progress: _Progress
) -> str: ...
def repair(
    dataset: str, destination: Optional[str], options: _Options, progress: _Progress
) -> str: ...
@final
class RowReader:
    """Rows of a dataset as JSON, read a little ahead of the consumer."""

    def __new__(
        cls, dataset: str, fitting: _Options, most: int, columns: Optional[List[str]]
    ) -> RowReader: ...
    def __iter__(self) -> RowReader: ...
    def __next__(self) -> str: ...

def device_addresses(argument: str, text: str) -> List[str]:
    """The devices that a text names: ``"tcp://HOST:PORT"``, ``"file:PATH"`` or ``"unix:PATH"``.

    :param argument: name of the argument that has this text, for errors.
    :param text: one of these forms, ``"srv:NAME"``, or several separated by commas. Names are
        looked up.
    :raises SettingError: the text has none of these forms, or a name cannot be looked up.
    """

def serve_arguments(settings: Dict[str, Any]) -> List[str]:
    """The arguments of `meetpoint` that start an emulated device.

    :raises SettingError: a setting outside its range, or an unknown fault.
    """

def emulation_limits() -> Tuple[float, float]:
    """The smallest CPU ratio and the longest latency in seconds that can be emulated."""

def parse_bytes(text: str) -> Optional[int]:
    """A size such as ``"256MiB"`` in bytes; ``None`` if the text is not a size."""

def declaration() -> str:
    """The options of every command of the command line, as JSON."""

def panic_for_tests(on_thread: bool) -> None:
    """Panics; only in builds with debug assertions."""

def main(arguments: List[str], again: List[str]) -> int:
    """Runs a command line of the program ``meetpoint``; its exit code."""

def version() -> str: ...
