"""The interface of a torch DataLoader that frameworks expect: its dataset and its samplers.

accelerate, and with it the Trainer of transformers, takes a loader apart and builds a DataLoader:
``DataLoader(it.dataset, batch_sampler=it.batch_sampler, collate_fn=it.collate_fn)``.
That DataLoader yields the loader's own batches: the batch sampler names a batch, and the dataset
takes it from the loader. Nothing here imports torch.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from ._dataset import Dataset, Sample, reopen
from ._resume import Resumable
from .errors import SettingError, StateError

if TYPE_CHECKING:
    import torch.utils.data  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore


BatchT = TypeVar("BatchT")

# Batches whose sample numbers are requested at once.
_CHUNK = 256


class Taken:
    """A batch that the loader handed out, passing through a torch DataLoader."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


class BatchIndices(List[int]):
    """The sample numbers of a batch, and the pass over the epoch that it belongs to."""

    def __init__(self, samples: Sequence[int], of: "Pass", number: int) -> None:
        super().__init__(samples)
        self._of = of
        self._number = number

    def take(self) -> Taken:
        """The batch itself, from the loader."""
        return Taken(self._of.take(self._number))

    def __reduce__(self) -> Tuple[Any, ...]:
        # In another process there is no loader to take it from.
        return (list, (list(self),))


class Pass:
    """One pass of the batch sampler: batches are taken from the loader in its order."""

    def __init__(self, loader: "DataLoaderLike[Any]") -> None:
        self._loader = loader
        self.epoch, self.left = loader._left()
        self._batches: Optional[Iterator[Any]] = None
        self._next = 0

    def take(self, number: int) -> Any:
        """The batch with this number in the pass.

        :raises StateError: the first batches were skipped although the loader's order is not fixed,
            or later ones were skipped.
        """
        loader = self._loader
        if self._batches is None:
            loader._skip(self.epoch, self.left[:number])
            self._batches = iter(loader)
            self._next = number
        if number != self._next:
            raise StateError(
                f"batch {number} of the epoch was requested before batch {self._next}: a framework "
                f"distributes batches among ranks again, but this loader ({loader._world}) already "
                "does",
                remedy=(
                    "use the loader unchanged, or prepare it for one process, as with "
                    "accelerate.data_loader.prepare_data_loader(loader, num_processes=1, "
                    "process_index=0)"
                ),
            )
        self._next += 1
        return next(self._batches)

    def __iter__(self) -> Iterator[BatchIndices]:
        for begin in range(0, len(self.left), _CHUNK):
            chunk = self.left[begin : begin + _CHUNK]
            for at, samples in enumerate(self._loader._native.samples_of(self.epoch, chunk)):
                yield BatchIndices(samples, self, begin + at)


class Sampler:
    """The sample numbers of this rank, in the order in which the host prepares them."""

    def __init__(self, loader: "DataLoaderLike[Any]") -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[int]:
        return (sample for batch in Pass(self._loader) for sample in batch)

    def __len__(self) -> int:
        """Samples of this rank in an epoch."""
        return self._loader._samples_of_rank()

    def set_epoch(self, epoch: int) -> None:
        """As :meth:`Loader.set_epoch`, but counts from the epoch of a state that was loaded.

        Frameworks that number their passes start again at 0 when training resumes.
        """
        self._loader._set_epoch_of_pass(epoch)


class BatchSampler:
    """The sample numbers of each batch, in the order in which the host prepares them."""

    # There is no batch_size, so that accelerate does not distribute batches among ranks again.

    def __init__(self, loader: "DataLoaderLike[Any]") -> None:
        self._loader = loader

    @property
    def sampler(self) -> Sampler:
        """The same samples one by one."""
        return Sampler(self._loader)

    @property
    def drop_last(self) -> bool:
        """Whether an incomplete last batch is left out."""
        return self._loader.drop_last

    def set_epoch(self, epoch: int) -> None:
        """As :meth:`Sampler.set_epoch`."""
        self._loader._set_epoch_of_pass(epoch)

    def __iter__(self) -> Iterator[BatchIndices]:
        return iter(Pass(self._loader))

    def __len__(self) -> int:
        return len(self._loader)


class LoaderDataset(Dataset):
    """A loader's dataset: samples as they were packed, and for torch the loader's batches."""

    def __getitems__(self, indices: Union[BatchIndices, Sequence[int]]) -> Any:
        """What a torch DataLoader fetches: a batch of the loader, or samples by number."""
        if isinstance(indices, BatchIndices):
            return indices.take()
        return [self[index] for index in indices]

    def __reduce__(self) -> Tuple[Any, ...]:
        return (reopen, (LoaderDataset, *self._origin(), self._store))


def collate(fetched: Union[Taken, List[Sample]]) -> Any:
    """The batch that was fetched.

    :raises SettingError: samples were fetched one by one instead of a batch.
    """
    if not isinstance(fetched, Taken):
        raise SettingError(
            "samples of a loader's dataset were fetched one by one, but the loader prepares whole "
            "batches",
            remedy=(
                "build a DataLoader with batch_sampler=loader.batch_sampler and "
                "num_workers=0, or call loader.as_torch()"
            ),
        )
    return fetched.batch


class DataLoaderLike(Resumable, Generic[BatchT]):
    """The part of a loader that has the attributes of a torch DataLoader."""

    _pin_memory: bool
    _view: Optional[LoaderDataset] = None

    @property
    def dataset(self) -> LoaderDataset:
        """The dataset itself: a sequence of samples as they were packed."""
        if self._view is None:
            given = self._settings
            self._view = LoaderDataset(
                given["dataset"],
                cache_dir=given["cache_dir"],
                cache_size=given["cache_size"],
                anonymous=given["anonymous"],
            )
        return self._view

    @property
    def batch_size(self) -> int:
        """Samples in a full batch."""
        return self._settings["batch_size"]

    @property
    def drop_last(self) -> bool:
        """Whether an incomplete last batch is left out."""
        return self._settings["drop_last"]

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
    def sampler(self) -> Sampler:
        """The sample numbers of this rank in the next epoch, in the order of the host alone.

        Devices change the order of batches, but not their content.
        """
        return Sampler(self)

    @property
    def batch_sampler(self) -> BatchSampler:
        """The same, batch by batch; see :meth:`as_torch`."""
        return BatchSampler(self)

    @property
    def collate_fn(self) -> Callable[[Any], Any]:
        """The function that a torch DataLoader calls on fetched samples; see :meth:`as_torch`."""
        return collate

    def as_torch(self) -> "torch.utils.data.DataLoader[BatchT]":
        """This loader as a ``torch.utils.data.DataLoader``, for frameworks that accept nothing
        else.

        It yields the same batches and shares this loader's position in the epoch.
        """
        from ._torch import TorchLoader

        return TorchLoader(self)
