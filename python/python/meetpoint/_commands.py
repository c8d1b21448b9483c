"""The commands that create, convert and check datasets: pack, index, unpack, convert, verify.

Their options are those of the command line; ``meetpoint pack --help`` describes each in detail.
"""

from __future__ import annotations

import os
from typing import Literal, Optional, Sequence, Union, overload

from . import _native
from ._arguments import Recipe, compose, flag, path, path_or_none, whole
from ._options import Size, options, size
from ._progress import Progress, shown
from ._results import Converted, IndexedKeys, Packed, Prepared, Unpacked, Verified, of_json
from .errors import SettingError

__all__ = ["convert", "index", "pack", "prepare", "unpack", "verify"]

_Path = Union[str, "os.PathLike[str]"]
_Progress = Union[bool, Progress, None]
_Form = Literal["jpeg", "compact", "fast"]
_OnError = Literal["raise", "skip"]
_Check = Literal["decode", "header"]
_Store = Literal["auto", "raw", "encoded"]
_Kind = Literal["image", "audio", "text", "bytes", "none"]
_To = Literal["folder", "webdataset", "parquet", "mds", "datadings", "tfrecord"]


def _name(place: str) -> str:
    return os.path.basename(os.path.normpath(place))


def pack(
    source: _Path,
    destination: _Path,
    *,
    form: _Form = "jpeg",
    progressive: Literal["transcode", "keep"] = "transcode",
    restart_interval: Union[int, str, None] = None,
    optimize_huffman: bool = False,
    store: Optional[_Store] = None,
    follow_links: bool = False,
    force: bool = False,
    resume: bool = False,
    on_error: _OnError = "raise",
    entry_points: Union[int, str, None] = "row",
    check: _Check = "decode",
    part_size: Size = "256MiB",
    part_samples: Optional[int] = None,
    part_source_bytes: Optional[Size] = None,
    threads: int = 0,
    from_: Optional[str] = None,
    content: Optional[str] = None,
    kind: Optional[_Kind] = None,
    label: Optional[str] = None,
    key: Optional[str] = None,
    columns: Union[str, Sequence[str], None] = None,
    split: Optional[str] = None,
    table: Optional[_Path] = None,
    root: Optional[_Path] = None,
    sample_bytes_max: Size = "256MiB",
    source_memory: Optional[Size] = None,
    cache: Optional[_Path] = None,
    cache_size: Size = "16GiB",
    anonymous: bool = False,
    progress: _Progress = None,
) -> Packed:
    """Packs a source, such as a folder of images with a sub-folder per class, into a dataset.

    The dataset appears complete or not at all. Pictures are stored byte for byte, except
    progressive JPEGs, which are converted to baseline with the same pixels, unless
    ``progressive="keep"`` is given.

    :param source: a folder, a file or a URL.
    :param form: how JPEGs are stored: as files, or as coefficients that decode faster.
    :param restart_interval: rewrites JPEGs with a restart marker every N MCUs, after each
        ``"row"``, or with ``"none"``; ``None`` leaves them unchanged.
    :param optimize_huffman: rewrites each JPEG with optimal Huffman tables.
    :param store: how to store the pixels of a source that has no picture files (CIFAR, IDX): as
        ``"raw"`` pixels, as an ``"encoded"`` PNG, or by the size of a picture, ``"auto"``, which
        is the default. Every choice keeps all pixels.
    :param follow_links: follows symbolic links that lead out of the source.
    :param force: replaces a dataset at the destination.
    :param resume: resumes the same call if it was killed or interrupted.
    :param on_error: ``"skip"`` leaves out unreadable samples and lists them.
    :param entry_points: positions at which decoding can start inside a JPEG: each ``"row"`` of
        MCUs, every N MCUs, or ``"none"``.
    :param check: an image is unreadable if it does not ``"decode"``, or if its ``"header"``
        cannot be parsed.
    :param part_size: bytes after which the next part file begins.
    :param part_samples: samples of the source after which the next part begins, in place of
        ``part_size``; ``part_source_bytes``: bytes of the source that a part has at most. Parts then
        depend on the listing of the source alone, and :mod:`meetpoint.shards` gives the same bytes.
    :param threads: threads that read and check; 0 for one per core.
    :param from_: kind of source (``--from``); ``None`` detects it.
    :param content: name of the column with the content; ``label`` and ``key`` likewise.
    :param kind: kind of content.
    :param columns: further columns to include; ``None`` for all, an empty list for none.
    :param split: which of several sets in the source to read.
    :param table: table of the samples: CSV, TSV or JSON Lines; ``root`` is the folder that its
        file names are relative to.
    :param sample_bytes_max: size of the longest sample; ``source_memory``: memory for decompressed
        data and lists of values; ``None`` for 1 GiB, or an eighth of the memory that the process
        may use if that is less.
    :param cache: for a URL: folder for objects while they are read; ``cache_size`` bounds it.
    :param anonymous: for a URL: sends requests without credentials.
    :param progress: ``True`` for a progress bar of ``tqdm`` (which must be installed), or a
        function of (samples done, samples, bytes done, bytes), which is called a few times per
        second.
    :raises PackError: the source or the destination is unusable; the message has the remedy.
    """
    given = options(locals())
    to = path("destination", destination)
    with shown(progress, _name(to)) as report:
        return of_json(Packed, _native.pack(path("source", source), to, given, report))


def prepare(
    recipe: Recipe,
    dataset: _Path,
    destination: _Path,
    *,
    cut: Union[int, str],
    codec: Literal["none", "lz4", "zstd"] = "none",
    lossy_jpeg: Optional[int] = None,
    force: bool = False,
    resume: bool = False,
    on_error: _OnError = "raise",
    part_size: Size = "256MiB",
    part_samples: Optional[int] = None,
    part_source_bytes: Optional[Size] = None,
    threads: int = 0,
    progress: _Progress = None,
) -> Prepared:
    """Executes the first operations of a recipe once, and stores the results for all epochs.

    The result is a dataset for the same recipe: :class:`meetpoint.Loader` executes only the rest of
    the operations, and its batches have the same bits. A recipe that begins with other operations
    is refused.

    :param recipe: as for :class:`meetpoint.Loader`, whole.
    :param cut: where to cut: the number of operations that are executed now, or the name of the
        last of them. No operation up to there may be random.
    :param codec: compression of each sample.
    :param lossy_jpeg: encodes pictures as JPEG again with this quality, 1 to 100. This **loses
        detail**: batches differ from those of the source.
    :param force: replaces a dataset at the destination.
    :param resume: resumes the same call after it was killed or interrupted.
    :param on_error: ``"skip"`` leaves out unreadable samples and lists them.
    :param part_size: bytes after which the next part file begins; ``part_samples`` and
        ``part_source_bytes`` as for :func:`pack`.
    :param threads: threads; 0 for one per core.
    :param progress: as for :func:`meetpoint.pack`.
    :raises SettingError: the recipe cannot be cut there; the message names the operation.
    """
    given = options(locals())
    to = path("destination", destination)
    toml = compose(recipe).to_toml()
    with shown(progress, _name(to)) as report:
        return of_json(Prepared, _native.prepare(toml, path("dataset", dataset), to, given, report))


@overload
def index(
    source: _Path, destination: None = None, *, keys: Literal[True], progress: _Progress = None
) -> IndexedKeys: ...


@overload
def index(
    source: _Path,
    destination: _Path,
    *,
    keys: Literal[False] = False,
    force: bool = False,
    resume: bool = False,
    on_error: _OnError = "raise",
    entry_points: Union[int, str, None] = "row",
    check: _Check = "decode",
    part_size: Size = "256MiB",
    part_samples: Optional[int] = None,
    part_source_bytes: Optional[Size] = None,
    threads: int = 0,
    from_: Optional[str] = None,
    content: Optional[str] = None,
    kind: Optional[_Kind] = None,
    label: Optional[str] = None,
    key: Optional[str] = None,
    columns: Union[str, Sequence[str], None] = None,
    split: Optional[str] = None,
    table: Optional[_Path] = None,
    root: Optional[_Path] = None,
    sample_bytes_max: Size = "256MiB",
    source_memory: Optional[Size] = None,
    cache: Optional[_Path] = None,
    cache_size: Size = "16GiB",
    anonymous: bool = False,
    progress: _Progress = None,
) -> Packed: ...


def index(
    source: _Path,
    destination: Optional[_Path] = None,
    *,
    keys: bool = False,
    force: bool = False,
    resume: bool = False,
    on_error: _OnError = "raise",
    entry_points: Union[int, str, None] = "row",
    check: _Check = "decode",
    part_size: Size = "256MiB",
    part_samples: Optional[int] = None,
    part_source_bytes: Optional[Size] = None,
    threads: int = 0,
    from_: Optional[str] = None,
    content: Optional[str] = None,
    kind: Optional[_Kind] = None,
    label: Optional[str] = None,
    key: Optional[str] = None,
    columns: Union[str, Sequence[str], None] = None,
    split: Optional[str] = None,
    table: Optional[_Path] = None,
    root: Optional[_Path] = None,
    sample_bytes_max: Size = "256MiB",
    source_memory: Optional[Size] = None,
    cache: Optional[_Path] = None,
    cache_size: Size = "16GiB",
    anonymous: bool = False,
    progress: _Progress = None,
) -> Union[Packed, IndexedKeys]:
    """Indexes a source in place: a dataset whose content stays in the files of the source.

    With ``keys=True``, ``source`` is a dataset, and its key index is rebuilt. All other options are
    those of :func:`pack`.

    :raises PackError: the source cannot be indexed; the message has the remedy.
    """
    given = options(locals())
    of = path("source", source)
    if flag("keys", keys):
        unused = {"destination": destination, "force": force, "resume": resume, "from_": from_}
        for name, value in unused.items():
            if value:
                raise SettingError(f"{name} means nothing with keys=True", remedy="leave it out")
        with shown(progress, _name(of)) as report:
            return of_json(IndexedKeys, _native.index_keys(of, report))
    if destination is None:
        raise SettingError("destination is None", remedy="set destination to a path, or give keys=True")
    to = path("destination", destination)
    with shown(progress, _name(to)) as report:
        return of_json(Packed, _native.index(of, to, given, report))


def unpack(
    dataset: _Path,
    destination: _Path,
    *,
    to: _To = "folder",
    shard_size: Optional[Size] = None,
    shard_samples: Optional[int] = None,
    without: Union[str, Sequence[str]] = (),
    force: bool = False,
    on_error: _OnError = "raise",
    threads: int = 0,
    progress: _Progress = None,
) -> Unpacked:
    """Unpacks a dataset into a folder of its original files, or into the format of another loader.

    Every sample has the same bytes as when it was packed, unless packing rewrote it. The folder
    appears complete or not at all.

    :param to: format to write.
    :param shard_size: bytes after which the next file begins; ``shard_samples``: the same in
        samples.
    :param without: further columns to leave out.
    :param force: replaces an existing folder, if it contains only files with names that are written
        again.
    :param on_error: ``"skip"`` leaves out damaged samples and lists them.
    :raises DatasetError: the dataset does not open, or samples of it are damaged.
    :raises PackError: the destination cannot be written.
    """
    given = options(locals())
    where = path("destination", destination)
    with shown(progress, _name(where)) as report:
        return of_json(Unpacked, _native.unpack(path("dataset", dataset), where, given, report))


def convert(
    source: _Path,
    destination: _Path,
    *,
    follow_links: bool = False,
    from_: Optional[str] = None,
    content: Optional[str] = None,
    kind: Optional[_Kind] = None,
    label: Optional[str] = None,
    key: Optional[str] = None,
    columns: Union[str, Sequence[str], None] = None,
    split: Optional[str] = None,
    table: Optional[_Path] = None,
    root: Optional[_Path] = None,
    sample_bytes_max: Size = "256MiB",
    source_memory: Optional[Size] = None,
    cache: Optional[_Path] = None,
    cache_size: Size = "16GiB",
    anonymous: bool = False,
    to: _To = "folder",
    shard_size: Optional[Size] = None,
    shard_samples: Optional[int] = None,
    without: Union[str, Sequence[str]] = (),
    force: bool = False,
    on_error: _OnError = "raise",
    threads: int = 0,
    part_samples: Optional[int] = None,
    part_source_bytes: Optional[Size] = None,
    progress: _Progress = None,
) -> Converted:
    """Converts a source into another format, without a packed dataset in between.

    Reads the sources of :func:`pack` and writes the formats of :func:`unpack`, with their options.
    With ``part_samples`` or ``part_source_bytes``, files end by the listing of the source alone, and
    :mod:`meetpoint.shards` gives the same bytes.

    :raises PackError: the source or the destination is unusable; the message has the remedy.
    """
    given = options(locals())
    where = path("destination", destination)
    with shown(progress, _name(where)) as report:
        return of_json(Converted, _native.convert(path("source", source), where, given, report))


def verify(
    dataset: _Path,
    *,
    deep: bool = False,
    threads: int = 0,
    cache_dir: Optional[_Path] = None,
    cache_size: Optional[Size] = None,
    anonymous: bool = False,
    progress: _Progress = None,
) -> Verified:
    """Checks every bit of a dataset, and names the part, row and key of each damaged sample.

    Damage does not raise an exception: ``is_sound`` of the result is then false.

    :param deep: also decodes every sample of an undamaged dataset and recomputes its entry points.
    :param cache_dir: for a dataset at a URL, the folder in which parts of it are cached; by default
        ``meetpoint`` in the user's cache.
    :param cache_size: for a dataset at a URL, maximum bytes of its cache; ``None`` for 16 GiB.
    :param anonymous: for a dataset at a URL, whether requests are sent without credentials.
    :raises DatasetError: the path does not contain a dataset.
    """
    of = path("dataset", dataset)
    with shown(progress, _name(of)) as report:
        store = (
            path_or_none("cache_dir", cache_dir),
            size("cache_size", "16GiB" if cache_size is None else cache_size),
            flag("anonymous", anonymous),
        )
        found = _native.verify(of, flag("deep", deep), whole("threads", threads), store, report)
    return of_json(Verified, found)
