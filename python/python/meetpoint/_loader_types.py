"""Arguments and batches of a loader, for type checkers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Literal, Optional, Sequence, Tuple, TypedDict, Union

from ._damage import OnError
from ._devices import Devices

if TYPE_CHECKING:
    import jax  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore
    import numpy
    import numpy.typing
    import torch  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore

    from ._native import Tensor
    from . import collate
    from .samplers import Sampler

    NumpyBatch = Tuple[
        numpy.typing.NDArray[Any], Optional[numpy.typing.NDArray[numpy.signedinteger[Any]]]
    ]
    TorchBatch = Tuple[torch.Tensor, Optional[torch.Tensor]]  # pyright: ignore
    JaxBatch = Tuple[jax.Array, Optional[jax.Array]]  # pyright: ignore
    DlpackBatch = Tuple[Tensor, Optional[Tensor]]
    ColumnBatch = Dict[str, Any]
    Varied = Union[Literal["pad", "list"], collate.Pad, collate.List]
    """How pictures of different sizes are combined into a batch."""

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]


class Options(TypedDict, total=False):
    """The arguments of a loader that do not change the type of its batches."""

    batch_size: int
    shuffle: bool
    sampler: Optional[Sampler]
    drop_last: bool
    seed: int
    strategy: str
    order: str
    window: Optional[int]
    device: Devices
    workers: Optional[int]
    prefetch: Optional[int]
    tune: str
    memory_budget: Union[int, str, None]
    small_samples: Union[int, str, None]
    cache: Union[int, str, None]
    cache_after: Optional[int]
    cache_dir: Optional[Path]
    cache_size: Union[int, str]
    anonymous: bool
    spool_quota: Union[int, str, None]
    spool_folder: Optional[Path]
    rank: Optional[int]
    world_size: Optional[int]
    rendezvous: Optional[str]
    rendezvous_token_file: Optional[Path]
    rank_timeout: float
    rank_link_timeout: Optional[float]
    on_error: OnError
    max_errors: Optional[int]
    quarantine: Optional[Path]
    stall_timeout: float
    nvtx: Optional[bool]
    device_out: Union[str, torch.device, None]  # pyright: ignore
    gpu_prefetch: Optional[int]
    gpu_memory: Union[int, str, None]
    gpu_pinned_memory: Union[int, str, None]
    device_dtype: Optional[str]
    gpu_decode: Union[str, torch.device, Literal[False], None]  # pyright: ignore
    gpu_share: Union[Literal["auto"], float, None]
    # torch's names.
    num_workers: Optional[int]
    prefetch_factor: Optional[int]
    pin_memory: bool
    pin_memory_device: str
    persistent_workers: bool
    timeout: float
    in_order: bool
    # What torch's users may pass on without a value.
    batch_sampler: None
    collate_fn: None
    worker_init_fn: None
    multiprocessing_context: None
    generator: None


Columns = Union[str, Sequence[str]]
