"""Packing from Python."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Literal, NamedTuple, Optional, Union

from . import _native
from ._arguments import U64, flag, path, text_or_none, whole
from .errors import SettingError

__all__ = ["Packed", "pack"]

Progress = Callable[[int, Optional[int], int, Optional[int]], object]


class Packed(NamedTuple):
    """What was packed."""

    destination: str
    """Folder of the dataset."""
    samples: int
    """Samples in it."""
    labels: List[str]
    """Class names; empty for a flat folder."""
    unreadable: List[str]
    """Images that do not decode and were left out."""
    summary: Dict[str, Any]
    """All that ``meetpoint pack --json`` says."""


def pack(
    source: Union[str, "os.PathLike[str]"],
    destination: Union[str, "os.PathLike[str]"],
    *,
    kind: Optional[str] = None,
    force: bool = False,
    on_error: Literal["raise", "skip"] = "raise",
    part_bytes: int = 256 << 20,
    threads: int = 0,
    progress: Union[bool, Progress, None] = None,
) -> Packed:
    """Packs a source into a dataset: a folder of images, one sub-folder a class, or another kind.

    The dataset is there whole or not at all. Files stay as they are, byte for byte.

    :param kind: what the source is, as `meetpoint pack --from` takes it; ``None`` finds it out.
    :param force: replaces a dataset at the destination.
    :param on_error: ``"skip"`` leaves out images that do not decode.
    :param part_bytes: bytes after which the next part file begins.
    :param threads: threads that read and check; 0 for as many as the machine has.
    :param progress: ``True`` for a bar of ``tqdm`` (which must be installed), or a function of
        (samples done, samples, bytes done, bytes) that is called a few times a second; samples and
        bytes are ``None`` where they are not known before the end.
    :raises PackError: what is wrong with the source or the destination, and what would be right.
    """
    if on_error not in ("raise", "skip"):
        raise SettingError(f'on_error is {on_error!r}; it takes "raise" or "skip"')
    bar: Any = None
    told: Optional[Progress]
    if progress is True:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]

        bar = tqdm(unit="B", unit_scale=True, desc=os.path.basename(os.fspath(destination)))

        def tell(
            samples_done: int, samples: Optional[int], bytes_done: int, size: Optional[int]
        ) -> None:
            bar.total = size
            bar.update(bytes_done - bar.n)

        told = tell
    else:
        told = progress or None
    try:
        said = _native.pack(
            path("source", source),
            path("destination", destination),
            kind=text_or_none("kind", kind),
            force=flag("force", force),
            skip=on_error == "skip",
            part_bytes=whole("part_bytes", part_bytes, U64, least=1),
            threads=whole("threads", threads),
            progress=told,
        )
    finally:
        if bar is not None:
            bar.close()
    import json

    summary: Dict[str, Any] = json.loads(said)
    return Packed(
        destination=str(summary["destination"]),
        samples=int(summary["samples"]),
        labels=list(summary["labels"]),
        unreadable=[str(left["path"]) for left in summary["unreadable"]],
        summary=summary,
    )
