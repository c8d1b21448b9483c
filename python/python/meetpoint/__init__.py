"""A deep-learning data loader that prepares each epoch from both ends.

::

    import meetpoint
    from meetpoint import transforms as T

    recipe = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToImage()])
    loader = meetpoint.Loader("photos.set", recipe=recipe, batch_size=64, shuffle=True)
    for images, labels in loader:
        ...

Importing the package imports neither NumPy nor a framework. The library that a loader's ``output``
needs is imported when an iteration begins.
"""

from __future__ import annotations

from . import collate, dataset, errors, recipes, samplers, shards, transforms
from ._commands import convert, index, pack, prepare, unpack, verify
from ._damage import DamagedSample
from ._dataset import Columns, Dataset, Sample, open
from ._devices import Emulated, Remote
from ._loader import Loader
from ._native import Batch, Tensor
from ._native import version as _version
from ._plan import Plan, Profile, plan, profile
from ._ragged import Ragged
from ._results import (
    Converted,
    Copied,
    Difference,
    IndexedKeys,
    LeftOut,
    Packed,
    Prepared,
    Repaired,
    Row,
    Statistics,
    Unpacked,
    UnusedLabel,
    Verified,
)
from ._tensor_list import TensorList
from ._writer import Writer
from .errors import (
    BudgetError,
    ClosedError,
    DamageLimitError,
    DamageWarning,
    DatasetError,
    DeviceError,
    DeviceWarning,
    ForkError,
    GpuError,
    GpuWarning,
    InternalError,
    MeetpointError,
    MetricsWarning,
    PackError,
    RankError,
    RecipeError,
    SampleError,
    SettingError,
    StateError,
    StorageError,
    TransformError,
)
from .transforms import from_albumentations, from_torchvision

__version__ = _version()

__all__ = [
    "Batch",
    "BudgetError",
    "ClosedError",
    "Columns",
    "Converted",
    "Copied",
    "DamageLimitError",
    "DamageWarning",
    "DamagedSample",
    "Dataset",
    "DatasetError",
    "DeviceError",
    "DeviceWarning",
    "Difference",
    "Emulated",
    "ForkError",
    "GpuError",
    "GpuWarning",
    "IndexedKeys",
    "InternalError",
    "LeftOut",
    "Loader",
    "MeetpointError",
    "MetricsWarning",
    "PackError",
    "Packed",
    "Plan",
    "Prepared",
    "Profile",
    "Ragged",
    "RankError",
    "RecipeError",
    "Remote",
    "Repaired",
    "Row",
    "Sample",
    "SampleError",
    "SettingError",
    "StateError",
    "Statistics",
    "StorageError",
    "Tensor",
    "TensorList",
    "TransformError",
    "Unpacked",
    "UnusedLabel",
    "Verified",
    "Writer",
    "__version__",
    "collate",
    "convert",
    "dataset",
    "errors",
    "from_albumentations",
    "from_torchvision",
    "index",
    "open",
    "pack",
    "plan",
    "prepare",
    "profile",
    "recipes",
    "samplers",
    "shards",
    "transforms",
    "unpack",
    "verify",
]


def __dir__() -> "list[str]":
    """The public names, without those imported for internal use."""
    return sorted(__all__)
