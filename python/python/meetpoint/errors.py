"""Exceptions and warnings of the package.

Every exception says what is wrong and what would be right. Where they are known, ``file``, ``row``
and ``key`` say which file and which sample it is about. ``cause`` is a stable name of what is wrong,
and ``remedy`` says what helps; the message ends with it.

::

    MeetpointError
    ├── DatasetError          a dataset that does not open or is damaged      (file)
    │   ├── SampleError       one of its samples                              (file, row, key)
    │   └── DamageLimitError  more damaged samples than max_errors            (file, key)
    ├── PackError             a dataset or a folder of files that cannot be written
    ├── RecipeError           also a ValueError: a recipe that cannot be followed, or that does not
    │                         fit a picture                                 (file, row, key)
    ├── SettingError          also a ValueError: an argument out of its range
    ├── StateError            also a ValueError: a state of another dataset, recipe or seed
    ├── BudgetError           also a MemoryError: the memory budget is too small
    ├── DeviceError           a device that cannot be started or reached
    ├── RankError             ranks that came to no decision
    ├── TransformError        a batch transform that raised or returned nothing
    │                         (function, epoch, batch)
    ├── StorageError          also an OSError: blocks that cannot be read or memory not had
    ├── ForkError             also a RuntimeError: a loader used in a forked child
    ├── ClosedError           also a RuntimeError: what was closed, an epoch that ended
    └── InternalError         also a RuntimeError: a defect of Meetpoint, to be reported

    DamageWarning             nothing is left of an epoch, all of whose samples are damaged
    DeviceWarning             a device was lost or fell silent; the host does its part
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
    """The public names; imports for internal use are not completed."""
    return sorted(__all__)


class MeetpointError(Exception):
    """Anything that goes wrong in Meetpoint."""

    _cause: ClassVar[str] = "failed"
    """The cause of those without a more specific one."""

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
        """Dataset, part of it, or other file that it is about."""
        self.row = row
        """Row of the sample in that part, from 0."""
        self.key = key
        """Key of the sample."""
        self.cause = self._cause if cause is None else cause
        """Stable name of what is wrong, such as ``"device_unreachable"``."""
        self.remedy = remedy
        """What helps; the end of the message. ``None`` where nothing is known to."""


class DatasetError(MeetpointError):
    """A dataset that does not open or is damaged."""

    _cause = "dataset"


class SampleError(DatasetError):
    """A sample that does not read or decode."""

    _cause = "sample"


class DamageLimitError(DatasetError):
    """More samples of an epoch are damaged than ``max_errors`` allows."""

    _cause = "damage_limit"


class PackError(MeetpointError):
    """A dataset or a folder of files that cannot be written. The destination is unchanged."""

    _cause = "pack"


class RecipeError(MeetpointError, ValueError):
    """A recipe that cannot be followed, or an operation of it that does not fit a picture."""

    _cause = "recipe"


class SettingError(MeetpointError, ValueError):
    """An argument out of its range."""

    _cause = "setting"


class StateError(MeetpointError, ValueError):
    """A state that this loader cannot go on from."""

    _cause = "state"


class BudgetError(MeetpointError, MemoryError):
    """The memory budget is too small for the batches in use or for decoding, or exceeds a limit."""

    _cause = "budget"


class DeviceError(MeetpointError):
    """A device that cannot be started or reached."""

    _cause = "device"


class RankError(MeetpointError):
    """Ranks that came to no decision."""

    _cause = "rank"


class TransformError(MeetpointError):
    """A batch transform raised an exception, which is its ``__cause__``, or returned nothing."""

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
    """Blocks that cannot be read, or memory that the system does not give."""

    _cause = "storage"


class ForkError(MeetpointError, RuntimeError):
    """A loader was used in a child of the process that made it."""

    _cause = "fork"


class ClosedError(MeetpointError, RuntimeError):
    """A loader or dataset that was closed, or an iteration that another one ended."""

    _cause = "closed"


class InternalError(MeetpointError, RuntimeError):
    """A defect of Meetpoint: native code panicked. The message names the place; please report it.

    The call has ended; close the object that it was made on, and do not use it further.
    """

    _cause = "defect"


class DamageWarning(UserWarning):
    """All samples of an epoch are damaged and were left out, so nothing came of it."""


class DeviceWarning(UserWarning):
    """A device was lost or fell silent in the middle of an epoch; the host prepares its batches.

    Raised once an epoch; ``report()`` has all that happened.
    """


class MetricsWarning(UserWarning):
    """Metrics did not reach the OpenTelemetry collector. Raised once; training goes on."""
