"""As much of torch as the types of a loader name."""

from typing import Any, Generic, TypeVar

_T = TypeVar("_T", covariant=True)

class DataLoader(Generic[_T]):
    def __init__(self, dataset: Any, *, batch_sampler: Any, collate_fn: Any) -> None: ...

class DistributedSampler(Generic[_T]): ...
