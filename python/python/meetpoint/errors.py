"""Exceptions and warnings of the package.

Every exception contains the problem and its remedy. ``file``, ``row`` and ``key`` identify
the file and the sample, if they are known. ``cause`` is a stable identifier of the problem.
``remedy`` is the remedy, and the message ends with it.

::

    MeetpointError
    ├── DatasetError          a dataset that cannot be opened or is damaged   (file)
    │   ├── SampleError       one of its samples                              (file, row, key)
    │   └── DamageLimitError  more damaged samples than max_errors            (file, key)
    ├── PackError             a dataset or a folder of files that cannot be written
    ├── RecipeError           also a ValueError: a recipe that is invalid, or that does not fit
    │                         an image                                      (file, row, key)
    ├── SettingError          also a ValueError: an argument out of its range
    ├── StateError            also a ValueError: a state of another dataset, recipe or seed
    ├── BudgetError           also a MemoryError: the memory budget is too small
    ├── DeviceError           a device that cannot be started or reached
    ├── GpuError              a GPU that cannot be used, or that failed
    ├── RankError             ranks that could not connect or agree
    ├── TransformError        a batch transform that raised or returned None
    │                         (function, epoch, batch)
    ├── StorageError          also an OSError: blocks that cannot be read, memory that cannot be
    │                         allocated
    ├── ForkError             also a RuntimeError: a loader used in a forked child
    ├── ClosedError           also a RuntimeError: a closed object, or an epoch that ended
    └── InternalError         also a RuntimeError: a defect of Meetpoint, to be reported

    DamageWarning             all samples of an epoch are damaged and were dropped
    DeviceWarning             a device was lost or stopped responding; the host takes over
    GpuWarning                the GPU of gpu_decode failed; the CPU takes over
    MetricsWarning            metrics did not reach their collector
"""

from __future__ import annotations

from typing import ClassVar, Optional

__all__ = [
    "BudgetError",
    "ClosedError",
    "DamageLimitError",
    "DamageWarning",
    "DatasetError",
    "DeviceError",
    "DeviceWarning",
    "ForkError",
    "GpuError",
    "GpuWarning",
    "InternalError",
    "MeetpointError",
    "MetricsWarning",
    "PackError",
    "RankError",
    "RecipeError",
    "SampleError",
    "SettingError",
    "StateError",
    "StorageError",
    "TransformError",
]


def __dir__() -> "list[str]":
    """The public names, without those imported for internal use."""
    return sorted(__all__)


class MeetpointError(Exception):
    """The base class of all errors of Meetpoint."""

    _cause: ClassVar[str] = "failed"
    """The cause of errors without a more specific one."""

    def __init__(
        self,
        message: str,
        *,
        file: Optional[str] = None,
        row: Optional[int] = None,
        key: Optional[str] = None,
        cause: Optional[str] = None,
        remedy: Optional[str] = None,
    ) -> None:
        super().__init__(message if remedy is None else f"{message}; {remedy}")
        self.file = file
        """The dataset, part or other file that the error concerns."""
        self.row = row
        """Row of the sample in that part, from 0."""
        self.key = key
        """Key of the sample."""
        self.cause = self._cause if cause is None else cause
        """Stable identifier of the problem, such as ``"device_unreachable"``."""
        self.remedy = remedy
        """The remedy; the message ends with it. ``None`` if no remedy is known."""


class DatasetError(MeetpointError):
    """A dataset that cannot be opened or is damaged."""

    _cause = "dataset"


class SampleError(DatasetError):
    """A sample that cannot be read or decoded."""

    _cause = "sample"


class DamageLimitError(DatasetError):
    """More samples of an epoch are damaged than ``max_errors`` allows."""

    _cause = "damage_limit"


class PackError(MeetpointError):
    """A dataset or a folder of files that cannot be written. The destination is unchanged."""

    _cause = "pack"


class RecipeError(MeetpointError, ValueError):
    """A recipe that is invalid, or an operation of it that does not fit an image."""

    _cause = "recipe"


class SettingError(MeetpointError, ValueError):
    """An argument out of its range."""

    _cause = "setting"


class StateError(MeetpointError, ValueError):
    """A state that this loader cannot resume from."""

    _cause = "state"


class BudgetError(MeetpointError, MemoryError):
    """The memory budget is too small for the batches in use or for decoding, or exceeds a limit."""

    _cause = "budget"


class DeviceError(MeetpointError):
    """A device that cannot be started or reached."""

    _cause = "device"


class GpuError(MeetpointError):
    """A GPU that cannot be used, or that failed while a batch was delivered to it.

    The loader can be closed, and resumed from its state: batches that were delivered are counted.
    """

    _cause = "gpu_failed"


class RankError(MeetpointError):
    """Ranks that could not connect or agree."""

    _cause = "rank"


class TransformError(MeetpointError):
    """A batch transform raised an exception, which is its ``__cause__``, or returned ``None``."""

    _cause = "transform"

    def __init__(
        self,
        message: str,
        *,
        function: str = "",
        epoch: int = 0,
        batch: int = 0,
        remedy: Optional[str] = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.function = function
        """Name of the function."""
        self.epoch = epoch
        """Epoch of the batch."""
        self.batch = batch
        """Index of the batch in its epoch."""


class StorageError(MeetpointError, OSError):
    """Blocks that cannot be read, or memory that cannot be allocated."""

    _cause = "storage"


class ForkError(MeetpointError, RuntimeError):
    """A loader was used in a forked child of the process that created it."""

    _cause = "fork"


class ClosedError(MeetpointError, RuntimeError):
    """A loader or dataset that was closed, or an iteration that another one ended."""

    _cause = "closed"


class InternalError(MeetpointError, RuntimeError):
    """A defect of Meetpoint: native code panicked. The message has the location; please report it.
    Close the object whose method was called, and do not use it further.
    """

    _cause = "defect"


class DamageWarning(UserWarning):
    """All samples of an epoch are damaged and were dropped, so it delivered no batch."""


class DeviceWarning(UserWarning):
    """A device was lost or stopped responding during an epoch; the host prepares its batches.
    Issued once per epoch; ``report()`` contains all events.
    """


class GpuWarning(UserWarning):
    """The GPU of ``gpu_decode`` failed during an epoch; the CPU prepares its share, to the same bits.
    Issued once; ``report()`` has the event.
    """


class MetricsWarning(UserWarning):
    """Metrics did not reach the OpenTelemetry collector. Issued once; training continues."""
