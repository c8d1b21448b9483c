"""Samples of a dataset by number and by key."""

from __future__ import annotations

import os
from typing import (
    Any,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    overload,
)

from . import _native
from ._arguments import flag, items, path_or_none, text
from ._arguments import paths as given_paths
from ._closing import Closing
from ._options import Size, size
from .errors import ClosedError, DatasetError

Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
"""A folder or URL, or several that are opened as one dataset."""
Path = Union[str, "os.PathLike[str]"]
"""A path."""

__all__ = ["Columns", "Dataset", "Sample", "open"]


class Sample(NamedTuple):
    """One sample as it was packed."""

    number: int
    """Number in the dataset, from 0."""
    key: str
    """Its key: the path that it had, relative to the folder that was packed."""
    image: bytes
    """The file, byte for byte."""
    label: Optional[int]
    """Index into ``label_names``; ``None`` where the dataset has no labels."""

    def __repr__(self) -> str:
        size = len(self.image)
        return f"Sample({self.number}, {self.key!r}, <{size} bytes>, label={self.label})"


class Dataset(Closing):
    """A packed dataset, opened for reading: a sequence of samples, and a mapping from keys.

    Opening reads the manifest and the footers of the parts, but no samples. Every read is compared
    with the checksums in the dataset. A list of folders is opened as one dataset: the samples of the
    first, those of the second, and so on; a key that occurs in several is found in the first. Close
    a dataset with :meth:`close` or a ``with`` block; otherwise it is closed when the last reference
    to it is dropped.

    It has the methods of a sequence but is not a ``collections.abc.Sequence``, because libraries
    such as polars would then read every element instead of the columns.
    """

    def __init__(
        self,
        path: Paths,
        *,
        mapped: bool = False,
        cache_dir: Optional[Path] = None,
        cache_size: Size = "16GiB",
        anonymous: bool = False,
    ) -> None:
        self._mapped = flag("mapped", mapped)
        self._paths = given_paths("path", path)
        self._store = (
            path_or_none("cache_dir", cache_dir),
            size("cache_size", cache_size),
            flag("anonymous", anonymous),
        )
        opened = self._open()
        self._opened: Optional[_native.Dataset] = opened
        self._path = os.fspath(opened.path)

    def _open(self) -> _native.Dataset:
        cache_dir, cache_size, anonymous = self._store
        return _native.Dataset(
            self._paths,
            mapped=self._mapped,
            cache_dir=cache_dir,
            cache_size=cache_size,
            anonymous=anonymous,
        )

    @property
    def _native(self) -> _native.Dataset:
        if self._opened is None:
            raise ClosedError(f"the dataset {self._path!r} was closed", remedy="open it again")
        return self._opened

    def close(self) -> None:
        """Closes its files and their memory map. Samples and columns read before stay valid."""
        self._opened = None

    @property
    def path(self) -> str:
        """Its folder; a list of names where there are several."""
        return self._path

    @property
    def label_names(self) -> List[str]:
        """The name of each label; empty if there are none."""
        return self._native.label_names

    @property
    def fingerprint(self) -> str:
        """SHA-256 of ``dataset.json``, which contains checksums of everything else."""
        return self._native.sha256

    @property
    def manifest(self) -> Dict[str, Any]:
        """``dataset.json``."""
        import json

        manifest: Dict[str, Any] = json.loads(self._native.manifest)
        return manifest

    def __len__(self) -> int:
        return len(self._native)

    @overload
    def __getitem__(self, which: Union[int, str]) -> Sample: ...

    @overload
    def __getitem__(self, which: slice) -> Sequence[Sample]: ...

    def __getitem__(self, which: Union[int, str, slice]) -> Union[Sample, Sequence[Sample]]:
        """A sample by number (negative ones count from the end) or key; a slice is a view.

        :raises IndexError: there is no sample with this number.
        :raises KeyError: there is no sample with this key.
        :raises SampleError: the sample is damaged.
        """
        if isinstance(which, slice):
            return _View(self, range(len(self))[which])
        if isinstance(which, str):
            found = self._native.find(which)
            if found is None:
                raise KeyError(which)
            return self._sample(found)
        return self._sample(self._number(which))

    def _number(self, which: int) -> int:
        try:
            return range(len(self))[which]
        except IndexError:
            raise IndexError(
                f"sample {which} of {len(self)}; they count from 0, and from -1 backwards"
            ) from None
        except TypeError:
            raise TypeError(
                f"{which!r} names no sample; give its number, its key, or a slice"
            ) from None

    def _sample(self, index: int) -> Sample:
        return Sample(index, *self._native.sample(index))

    def __contains__(self, key: object) -> bool:
        """Whether there is a sample with this key."""
        return isinstance(key, str) and self._native.find(key) is not None

    def __iter__(self) -> Iterator[Sample]:
        return (self._sample(index) for index in range(len(self)))

    def __reversed__(self) -> Iterator[Sample]:
        return (self._sample(index) for index in range(len(self) - 1, -1, -1))

    def key(self, index: int) -> str:
        """The key of a sample, without reading its image."""
        return self._native.key(self._number(index))

    @property
    def columns(self) -> List[str]:
        """Names of its columns: key, content, label and all further columns."""
        return self._native.columns

    def select(self, columns: Sequence[str]) -> "Columns":
        """Some columns, for ``pyarrow.table``, ``polars.DataFrame`` and the like.

        In addition to the names in ``columns``, ``"sample"`` selects the number in the dataset.

        :raises SettingError: there is no such column.
        """
        given = [columns] if isinstance(columns, str) else items("columns", columns, "names")
        return Columns(self._native, [text("columns", name) for name in given])

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> Any:
        """All columns but the content, as an Arrow stream: ``pyarrow.table(dataset)``."""
        content = 1
        names = [name for at, name in enumerate(self.columns) if at != content]
        return self.select(names).__arrow_c_stream__(requested_schema)

    def _origin(self) -> Tuple[List[str], bool, str]:
        """The data with which another process opens the same dataset."""
        paths = [path if "://" in path else os.path.abspath(path) for path in self._paths]
        return paths, self._mapped, self.fingerprint

    def __reduce__(self) -> Tuple[Any, ...]:
        return (reopen, (Dataset, *self._origin(), self._store))

    def __repr__(self) -> str:
        state = "closed" if self._opened is None else f"{len(self)} samples"
        return f"meetpoint.open({self.path!r})  # {state}"


class Columns:
    """Some columns of a dataset, read record batch by record batch on demand."""

    def __init__(self, dataset: _native.Dataset, names: List[str]) -> None:
        dataset.stream(names)
        self._dataset = dataset
        self._names = names

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> Any:
        """The columns as an Arrow stream, in their own types."""
        return self._dataset.stream(self._names)

    def __repr__(self) -> str:
        return f"<columns {', '.join(self._names)}>"


class _View(Sequence[Sample]):
    """Some samples of a dataset, read on demand."""

    def __init__(self, dataset: Dataset, indices: range) -> None:
        self._dataset = dataset
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, which: int) -> Sample: ...

    @overload
    def __getitem__(self, which: slice) -> Sequence[Sample]: ...

    def __getitem__(self, which: Union[int, slice]) -> Union[Sample, Sequence[Sample]]:
        if isinstance(which, slice):
            return _View(self._dataset, self._indices[which])
        return self._dataset[self._indices[which]]

    def __repr__(self) -> str:
        return f"<{len(self)} samples of {self._dataset.path!r}>"


_DatasetT = TypeVar("_DatasetT", bound=Dataset)


def reopen(
    kind: Type[_DatasetT], path: Paths, mapped: bool, fingerprint: str, store: Any = None
) -> _DatasetT:
    """Opens a dataset that was pickled, perhaps by another process.

    :raises DatasetError: there is a different one at its path.
    """
    cache_dir, cache_size, anonymous = store or (None, "16GiB", False)
    dataset = kind(
        path, mapped=mapped, cache_dir=cache_dir, cache_size=cache_size, anonymous=anonymous
    )
    if dataset.fingerprint != fingerprint:
        raise DatasetError(
            f"the dataset at {dataset.path!r} is not the one that was pickled",
            remedy="open it again",
            file=dataset.path,
        )
    return dataset


def open(
    path: Paths,
    *,
    mapped: bool = False,
    cache_dir: Optional[Path] = None,
    cache_size: Size = "16GiB",
    anonymous: bool = False,
) -> Dataset:
    """Opens a packed dataset for reading.

    :param mapped: read through a memory map of the parts, which is about twice as fast if they are
        in the page cache. If another program shortens a part while it is mapped (no command of
        ``meetpoint`` does), the kernel ends the process with ``SIGBUS``.
    :param cache_dir: for a dataset at a URL, the folder in which parts of it are cached; by default
        ``meetpoint`` in the user's cache.
    :param cache_size: for a dataset at a URL, maximum bytes of its cache.
    :param anonymous: for a dataset at a URL, whether requests are sent without credentials.
    :raises DatasetError: it is not a dataset, or it is damaged; or ``mapped`` is set and its
        content is in other files, which may change.
    """
    return Dataset(
        path, mapped=mapped, cache_dir=cache_dir, cache_size=cache_size, anonymous=anonymous
    )
