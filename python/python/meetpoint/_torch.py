# pyright: basic, reportMissingImports=false
"""A loader as a torch DataLoader, for frameworks that accept nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from torch.utils.data import (  # type: ignore[import-not-found,unused-ignore]
    DataLoader,
    DistributedSampler,
)

from . import _frameworks

if TYPE_CHECKING:
    from ._frameworks import DataLoaderLike


class _Sampler(  # type: ignore[misc,unused-ignore]
    _frameworks.Sampler,
    DistributedSampler,  # type: ignore[type-arg,unused-ignore]
):
    """The loader's sampler, of the class by which frameworks recognise distributed samplers."""

    def __init__(self, loader: "DataLoaderLike[Any]") -> None:
        _frameworks.Sampler.__init__(self, loader)
        self.dataset = loader.dataset
        self.drop_last = loader.drop_last


class TorchLoader(DataLoader):  # type: ignore[misc,type-arg,unused-ignore]
    """A DataLoader that yields the batches of a loader."""

    def __init__(self, loader: "DataLoaderLike[Any]") -> None:
        self._loader = loader
        super().__init__(
            loader.dataset, batch_sampler=loader.batch_sampler, collate_fn=loader.collate_fn
        )
        # torch creates its own sampler and does not allow it to be replaced later.
        self.__dict__["sampler"] = _Sampler(loader)

    def set_epoch(self, epoch: int) -> None:
        self._loader._set_epoch_of_pass(epoch)

    def state_dict(self) -> Any:
        return self._loader.state_dict()

    def load_state_dict(self, state: Any) -> None:
        self._loader.load_state_dict(state)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)
