"""The results of the commands and of a loader: the documents of ``--json``, with types."""

from __future__ import annotations

import dataclasses
import json
import typing
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Type, TypeVar, Union, get_type_hints

__all__ = [
    "Changed",
    "ColumnCount",
    "Converted",
    "Copied",
    "DeepChecks",
    "Difference",
    "Distribution",
    "Duplicates",
    "GpuFailure",
    "GpuUse",
    "IndexedKeys",
    "Keys",
    "LabelCount",
    "LeftOut",
    "Lost",
    "Moved",
    "Packed",
    "Prepared",
    "Problem",
    "Repaired",
    "Row",
    "Statistics",
    "Unpacked",
    "UnusedLabel",
    "Verified",
]

T = TypeVar("T")


@dataclass(frozen=True)
class LeftOut:
    """Something of a source or a dataset that was left out."""

    path: str
    """Path in the source, key, or another name."""
    reason: str


@dataclass(frozen=True)
class UnusedLabel:
    """A column with the name of a label that is not used as the class label."""

    column: str
    """Name in the source."""
    type: str
    """Arrow type in lower case; ``null`` for a column without values."""
    class_label: Optional[str]
    """The column that is the class label; ``None`` if there is none."""


@dataclass(frozen=True)
class Packed:
    """The result of :func:`meetpoint.pack` and :func:`meetpoint.index`."""

    destination: str
    """Folder of the dataset."""
    samples: int
    kind: str
    """Kind of content: ``image``, ``audio``, ``text``, ``bytes`` or ``none``."""
    columns: List[str]
    """Names of the further columns."""
    image_bytes: int
    """Bytes of all content as stored."""
    ratio: float
    """Bytes stored per byte of the source's samples."""
    stored: Dict[str, Any]
    """Form of the JPEGs, how many were converted or rewritten, entry points. With
    ``restart_interval``, ``restart_markers`` has the numbers of files: ``inserted`` (with markers)
    and ``had_before`` (whose own markers were replaced or removed), and ``bytes`` and
    ``bytes_without`` of the files with and without the inserted markers."""
    file_bytes: int
    """Bytes of the dataset's files."""
    parts: int
    parts_resumed: int
    """Finished parts of an interrupted run that were reused."""
    labels: List[str]
    """Class names; empty if there are no labels."""
    unused_labels: List[UnusedLabel]
    """Columns with the name of a label that are not used as the class label, such as floats."""
    unreadable: List[LeftOut]
    """Unreadable samples that were skipped."""
    not_samples: List[LeftOut]
    ignored: int
    """Number of hidden files and side files."""
    cleaned: List[str]
    """Remains of killed processes that were removed."""
    notes: List[str]
    replaced: bool
    """Whether a dataset was replaced."""


@dataclass(frozen=True)
class Prepared:
    """The result of :func:`meetpoint.prepare`."""

    destination: str
    """Folder of the dataset."""
    samples: int
    cut: str
    """The cut, as ``meetpoint profile`` names it."""
    prepared: Dict[str, Any]
    """Operations that were executed, the hash of their recipe, the codec."""
    source_bytes: int
    """Stored bytes of the samples of the source."""
    stored_bytes: int
    """Bytes of all prepared samples."""
    file_bytes: int
    """Bytes of the dataset's files."""
    parts: int
    parts_resumed: int
    """Parts that an interrupted run had left."""
    unreadable: List[LeftOut]
    """Unreadable samples that were skipped."""
    cleaned: List[str]
    """Remains of killed processes that were removed."""
    notes: List[str]
    replaced: bool
    """Whether a dataset was replaced."""


@dataclass(frozen=True)
class IndexedKeys:
    """The result of :func:`meetpoint.index` with ``keys=True``."""

    path: str
    """The file ``keys.idx``."""
    keys: int
    bytes: int


@dataclass(frozen=True)
class Unpacked:
    """The result of :func:`meetpoint.unpack`."""

    destination: str
    sink: str
    """The written format, as in ``to=``."""
    samples: int
    files: int
    bytes: int
    converted: int
    """Samples that were restored from a coefficient form."""
    rewritten: int
    """Samples whose bytes differ from the file that was packed; the pixels are the same."""
    notes: List[str]
    without: List[str]
    damaged: List[LeftOut]
    """Samples that were skipped."""
    cleaned: List[str]
    replaced: bool


@dataclass(frozen=True)
class Converted:
    """The result of :func:`meetpoint.convert`."""

    destination: str
    sink: str
    samples: int
    files: int
    bytes: int
    labels: List[str]
    unused_labels: List[UnusedLabel]
    notes: List[str]
    without: List[str]
    damaged: List[LeftOut]
    not_samples: List[LeftOut]
    ignored: int
    cleaned: List[str]
    replaced: bool


@dataclass(frozen=True)
class Problem:
    """Damage that :func:`meetpoint.verify` found."""

    file: str
    """Name in the folder of the dataset."""
    place: Dict[str, Any]
    """``kind`` is ``"file"``, ``"row"`` (with ``row``, ``key``) or ``"bytes"`` (with ``start``,
    ``end``, ``region``)."""
    problem: str
    """The problem and its remedy."""


@dataclass(frozen=True)
class DeepChecks:
    """Counts of ``verify(deep=True)``."""

    decoded: int
    converted: int
    not_jpeg: int
    entry_points: int


@dataclass(frozen=True)
class Verified:
    """The result of :func:`meetpoint.verify`."""

    samples: int
    parts: int
    bytes: int
    problems: List[Problem]
    notes: List[str]
    """Sentences, such as that the folder of a plan was not removed."""
    deep: Optional[DeepChecks] = None
    """``None`` unless requested, and for a damaged dataset."""

    @property
    def is_sound(self) -> bool:
        """Whether every bit is unchanged since packing."""
        return not self.problems


@dataclass(frozen=True)
class Copied:
    """A dataset that an operation wrote."""

    destination: str
    samples: int
    image_bytes: int
    file_bytes: int
    parts: int
    labels: int
    """Number of labels."""
    parts_resumed: int
    cleaned: List[str]
    notes: List[str]
    replaced: bool


@dataclass(frozen=True)
class Row:
    """A sample without its content."""

    sample: int
    """Number in the dataset."""
    key: str
    label: Optional[str]
    """Name of the label."""
    bytes: int
    """Bytes of the content as stored."""
    crc32c: str
    entry_points_bytes: int
    columns: Dict[str, Any]
    """Further columns by name, as ``--json`` prints them."""


@dataclass(frozen=True)
class Distribution:
    """A quantity over all samples; ``p5`` is the quantile of 5 %."""

    count: int
    min: int
    p5: int
    p25: int
    p50: int
    p75: int
    p95: int
    p99: int
    max: int
    mean: float
    sum: int


@dataclass(frozen=True)
class LabelCount:
    """A label and the number of its samples."""

    name: str
    samples: int


@dataclass(frozen=True)
class ColumnCount:
    """A further column."""

    name: str
    type: str
    nulls: int


@dataclass(frozen=True)
class Duplicates:
    """Samples with the same stored bytes."""

    groups: int
    samples: int
    """All but one of each group."""
    bytes: int
    named: List[List[str]]
    """Keys of the first groups."""


@dataclass(frozen=True)
class Statistics:
    """The result of :func:`meetpoint.dataset.stats`."""

    path: str
    samples: int
    bytes: Distribution
    width: Distribution
    height: Distribution
    pixels: Distribution
    formats: Dict[str, int]
    subsampling: Dict[str, int]
    jpegs: int
    progressive: int
    labels: List[LabelCount]
    unlabelled: int
    columns: List[ColumnCount]
    duplicates: Duplicates
    damaged: int
    damaged_named: List[LeftOut]
    is_in_place: bool


@dataclass(frozen=True)
class Keys:
    """A number of samples, and the keys of the first of them."""

    samples: int
    named: List[str]


@dataclass(frozen=True)
class Changed:
    """A sample that differs."""

    left: int
    right: int
    key: str
    what: List[str]


@dataclass(frozen=True)
class Moved:
    """A sample at a different position."""

    key: str
    left: int
    right: int


@dataclass(frozen=True)
class Difference:
    """The result of :func:`meetpoint.dataset.diff`."""

    left: str
    right: str
    same: int
    other_form: int
    only_left: Keys
    only_right: Keys
    changed: int
    changed_named: List[Changed]
    columns: Optional[str]
    label_names: bool
    """Whether the names of the labels, or their order, differ."""
    order: Optional[Moved]

    @property
    def is_empty(self) -> bool:
        """Whether the datasets are equal: the same samples in the same order."""
        counts = self.only_left.samples + self.only_right.samples + self.changed
        return not (counts or self.columns is not None or self.label_names or self.order)


@dataclass(frozen=True)
class Lost:
    """Samples that were not recovered."""

    part: str
    first_row: int
    samples: int
    key: Optional[str]
    reason: str


@dataclass(frozen=True)
class Repaired:
    """The result of :func:`meetpoint.dataset.repair`."""

    repaired: Optional[Copied]
    """``None`` if nothing was damaged."""
    samples: int
    samples_lost: int
    lost: List[Lost]
    manifest: str
    """State of ``dataset.json``: ``sound``, ``damaged``, ``unreadable`` or ``lost``."""
    labels_from: str
    keys_indexed: bool


@dataclass(frozen=True)
class GpuFailure:
    """Why a GPU stopped preparing."""

    cause: str
    """A stable identifier, such as ``gpu_out_of_memory``."""
    detail: str
    """The message of the error."""


@dataclass(frozen=True)
class GpuUse:
    """The use of the GPU of ``gpu_decode`` in an epoch. Counts are of samples."""

    gpu: str
    """Its name."""
    threads: int
    """Threads of the host that prepare with it."""
    threads_failed: int
    """Of these, threads that no longer use it because of a failure."""
    share: float
    """Mean of ``shares``."""
    shares: List[float]
    """The share of a batch that each thread gives it at the end of the epoch."""
    prepared: int
    """Samples prepared on it."""
    resident: int
    """Of these, samples whose tensors stayed on it until their batch was delivered there."""
    beyond_share: int
    """Left to the CPU because the share was full."""
    not_taken: int
    """Left to the CPU because it cannot prepare them."""
    not_taken_because: Dict[str, int]
    """The samples of ``not_taken`` by reason, such as ``progressive``."""
    given_back: int
    """Taken and given back to the CPU, because their data are damaged."""
    after_failure: int
    """Left to the CPU after a failure."""
    out_of_memory: int
    """Left to the CPU because the GPU ran out of memory, including those before the next attempt to
    use it."""
    out_of_memory_batches: int
    """Batches for which the GPU ran out of memory."""
    busy_ns: int
    """Time from the start of its work on a batch until the end, summed over batches and threads, in
    nanoseconds. Batches of several threads overlap."""
    device_bytes_limit: int
    """Limit of device memory, summed over the threads, in bytes."""
    pinned_bytes_limit: int
    """Limit of page-locked memory, summed over the threads, in bytes."""
    device_bytes_max: int
    """Peak device memory so far in bytes: the sum of the peaks of the threads."""
    pinned_bytes_max: int
    """Peak page-locked memory so far in bytes: the sum of the peaks of the threads."""
    allocations: int
    """Allocations of device and page-locked memory in the epoch; none in the steady state."""
    downloaded_because: Optional[Dict[str, Any]]
    """Why tensors were copied to the host although batches are delivered to the same GPU: ``reason``
    and its details; ``None`` if none were."""
    unused_because: Optional[Dict[str, Any]]
    """Why the CPU prepares all samples: ``reason`` and its details; ``None`` if it does not."""
    failure: Optional[GpuFailure]
    """The first failure."""


def of_json(kind: Type[T], text: str) -> T:
    """An object of one of these classes from its document."""
    made: T = _of(kind, json.loads(text))
    return made


def of_data(kind: Type[T], value: Dict[str, Any]) -> T:
    """As :func:`of_json`, of a document that is parsed already."""
    made: T = _of(kind, value)
    return made


def list_of_json(kind: Type[T], text: str) -> List[T]:
    """As :func:`of_json`, of a list."""
    return [_of(kind, item) for item in json.loads(text)]


def _of(kind: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        fields: Dict[str, Any] = {name: _of(hints[name], it) for name, it in value.items()}
        return kind(**fields)  # type: ignore[operator,unused-ignore]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [_of(inner[0], item) for item in value]
    if origin is Union and value is not None:
        return _of(inner[0], value)
    return value
