"""Operations on datasets: the commands of ``meetpoint dataset``.

The result is an independent dataset: rows are copied as stored, with every column, and checked
while they are copied. It appears complete or not at all, and memory is bounded for datasets of any
size. ``meetpoint dataset shuffle --help`` describes the options in detail.
"""

from __future__ import annotations

import builtins
import os
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._arguments import U64, flag, items, path, path_or_none, text, whole
from ._options import Size, names, options, share
from ._progress import Progress, shown
from ._results import (
    Copied,
    Difference,
    Repaired,
    Row,
    Statistics,
    list_of_json,
    of_json,
)

__all__ = [
    "cat",
    "diff",
    "head",
    "merge",
    "repair",
    "sample",
    "select",
    "shuffle",
    "split",
    "stats",
]


def __dir__() -> "list[str]":
    """The public names; imports for internal use are not completed."""
    return sorted(__all__)


_Path = Union[str, "os.PathLike[str]"]
_Progress = Union[bool, Progress, None]
_Share = Union[float, str]


def _name(place: str) -> str:
    return os.path.basename(os.path.normpath(place))


def shuffle(
    dataset: _Path,
    destination: _Path,
    *,
    seed: int = 0,
    force: bool = False,
    resume: bool = False,
    part_size: Size = "256MiB",
    memory: Size = "256MiB",
    threads: int = 0,
    progress: _Progress = None,
) -> Copied:
    """Writes a dataset in random order: that of epoch 0 with the same seed.

    :param force: replaces a dataset at the destination.
    :param resume: resumes the same call after it was killed or interrupted.
    :param part_size: bytes after which the next part begins.
    :param memory: maximum bytes of rows in memory at once.
    """
    given = options(locals())
    to, order = path("destination", destination), whole("seed", seed, U64)
    with shown(progress, _name(to)) as report:
        done = _native.shuffle(path("dataset", dataset), to, order, given, report)
    return of_json(Copied, done)


def split(
    dataset: _Path,
    parts: Union[Mapping[str, _Share], Sequence[Tuple[_Path, _Share]], None] = None,
    *,
    stratify: bool = False,
    seed: int = 0,
    by: Optional[str] = None,
    to: Optional[_Path] = None,
    force: bool = False,
    resume: bool = False,
    part_size: Size = "256MiB",
    memory: Size = "256MiB",
    threads: int = 0,
    progress: _Progress = None,
) -> List[Copied]:
    """Splits a dataset into several disjoint ones that together have all of its samples.

    ::

        meetpoint.dataset.split("photos.set", {"train.set": 0.8, "val.set": 0.2}, stratify=True)
        meetpoint.dataset.split("photos.set", by="fold", to="folds")

    :param parts: the datasets to write, each with its share relative to the sum of all shares.
    :param stratify: splits every label by these shares.
    :param by: splits by the values of this column, or by ``"label"``, into the folder ``to``.
    """
    given = options(locals(), to=path_or_none)
    pairs: List[Any] = []
    if parts is not None:
        given_parts: Any = parts.items() if isinstance(parts, Mapping) else parts
        pairs = items("parts", given_parts, "pairs of a path and a share")
    given["parts"] = [_part(pair) for pair in pairs]
    drawn = whole("seed", seed, U64)
    given["seed"] = None if by is not None and drawn == 0 else drawn
    of = path("dataset", dataset)
    with shown(progress, _name(of)) as report:
        return list_of_json(Copied, _native.split(of, given, given, report))


def _part(pair: Any) -> Tuple[str, str]:
    from .errors import SettingError

    try:
        place, size = pair
    except (TypeError, ValueError):
        raise SettingError(
            f"parts holds {pair!r}", remedy="set parts to pairs of a path and a share"
        ) from None
    return path("parts", place), share("parts", size)


def merge(
    datasets: Sequence[_Path],
    destination: _Path,
    *,
    order: Literal["concat", "interleave"] = "concat",
    prefix: Union[str, Sequence[str]] = (),
    force: bool = False,
    resume: bool = False,
    part_size: Size = "256MiB",
    memory: Size = "256MiB",
    threads: int = 0,
    progress: _Progress = None,
) -> Copied:
    """Merges datasets into one. Columns must be the same; labels are merged by name.

    :param order: one dataset after another, or each spread evenly over the result.
    :param prefix: prefixes for the keys, one for each dataset.
    """
    given = options(locals())
    to = path("destination", destination)
    of = [path("datasets", it) for it in items("datasets", datasets, "paths")]
    before = names("prefix", prefix)
    with shown(progress, _name(to)) as report:
        return of_json(Copied, _native.merge(of, to, text("order", order), before, given, report))


def sample(
    dataset: _Path,
    destination: _Path,
    *,
    n: Optional[int] = None,
    fraction: Optional[_Share] = None,
    per_class: bool = False,
    seed: int = 0,
    force: bool = False,
    resume: bool = False,
    part_size: Size = "256MiB",
    memory: Size = "256MiB",
    threads: int = 0,
    progress: _Progress = None,
) -> Copied:
    """Writes some samples of a dataset, drawn at random without replacement.

    :param n: number of samples; or give ``fraction``, as ``0.1`` or ``"10%"``.
    :param per_class: draws from each label separately.
    """
    given: Dict[str, Any] = {**options(locals()), "seed": whole("seed", seed, U64)}
    to = path("destination", destination)
    with shown(progress, _name(to)) as report:
        done = _native.sample(path("dataset", dataset), to, given, given, report)
    return of_json(Copied, done)


def select(
    dataset: _Path,
    destination: _Path,
    *,
    label: Union[str, Sequence[str]] = (),
    key: Union[str, Sequence[str]] = (),
    range: Union[str, builtins.range, None] = None,
    invert: bool = False,
    force: bool = False,
    resume: bool = False,
    part_size: Size = "256MiB",
    memory: Size = "256MiB",
    threads: int = 0,
    progress: _Progress = None,
) -> Copied:
    """Writes the samples of a dataset that match by label, key or number.

    :param label: a label, or several, any of which matches.
    :param key: a pattern of keys, or several, any of which matches: ``*`` matches any text without
        ``/``, ``**`` any folders.
    :param range: numbers of samples: ``range(100, 200)`` or ``"100..200"``.
    :param invert: takes the samples that do not match.
    """
    given = options(locals(), label=names, key=names)
    to = path("destination", destination)
    with shown(progress, _name(to)) as report:
        return of_json(Copied, _native.select(path("dataset", dataset), to, given, given, report))


def head(
    dataset: _Path, *, n: int = 10, columns: Union[str, Sequence[str], None] = None
) -> List[Row]:
    """The first rows of a dataset: key, label, sizes, columns.

    :param columns: only these columns; ``None`` for all, an empty list for none.
    """
    return list(cat(dataset, n=n, columns=columns))


def cat(
    dataset: _Path,
    *,
    n: Optional[int] = None,
    label: Union[str, Sequence[str]] = (),
    key: Union[str, Sequence[str]] = (),
    range: Union[str, builtins.range, None] = None,
    invert: bool = False,
    columns: Union[str, Sequence[str], None] = None,
) -> Iterator[Row]:
    """All or matching rows of a dataset, which are read as they are consumed.

    :param n: maximum number of rows. Other options are those of :func:`select` and :func:`head`.
    """
    given = options(locals(), label=names, key=names)
    most = U64 if given["n"] is None else given["n"]
    rows = _native.RowReader(path("dataset", dataset), given, most, given["columns"])
    return (of_json(Row, row) for row in rows)


def stats(dataset: _Path, *, threads: int = 0, progress: _Progress = None) -> Statistics:
    """Statistics of a dataset: sizes, pixels, coding, labels and duplicates of its samples."""
    of = path("dataset", dataset)
    with shown(progress, _name(of)) as report:
        return of_json(Statistics, _native.stats(of, whole("threads", threads), report))


def diff(
    left: _Path,
    right: _Path,
    *,
    list: int = 100,
    trust_checksums: bool = False,
    threads: int = 0,
    progress: _Progress = None,
) -> Difference:
    """Compares two datasets sample by sample, by their keys.

    :param list: maximum number of samples to list for each kind of difference; all are counted.
    :param trust_checksums: skips contents whose lengths and checksums are equal.
    """
    of, most = path("left", left), whole("list", list)
    trusted = flag("trust_checksums", trust_checksums)
    with shown(progress, _name(of)) as report:
        return of_json(
            Difference,
            _native.diff(
                of, path("right", right), most, trusted, whole("threads", threads), report
            ),
        )


def repair(
    dataset: _Path,
    destination: Optional[_Path] = None,
    *,
    in_place: bool = False,
    force: bool = False,
    part_size: Size = "256MiB",
    progress: _Progress = None,
) -> Repaired:
    """Recovers the undamaged samples of a damaged dataset.

    :param in_place: replaces the damaged dataset instead of writing to a ``destination``.
    """
    given = options(locals())
    of = path("dataset", dataset)
    to = path_or_none("destination", destination)
    with shown(progress, _name(of)) as report:
        return of_json(Repaired, _native.repair(of, to, given, report))
