"""Progress of long commands, shown by tqdm or handed to a function."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Generator, Optional, Union

from .errors import SettingError

__all__ = ["Progress", "shown"]

Progress = Callable[[int, Optional[int], int, Optional[int]], object]
"""Called with samples done, samples, bytes done, bytes. An unknown total is ``None``, and
a count that a command does not keep stays 0."""


@contextlib.contextmanager
def shown(
    progress: Union[bool, Progress, None], title: str
) -> Generator[Optional[Progress], None, None]:
    """The function to call; if ``progress`` is ``True``, it shows a bar until the block ends."""
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        if not callable(progress):
            raise SettingError(f"progress is {progress!r}", remedy="set progress to True or a function")
        yield progress
        return
    from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]

    bar: Any = tqdm(desc=title)

    def show(done: int, samples: Optional[int], bytes_done: int, size: Optional[int]) -> None:
        if size is not None:
            done, samples = bytes_done, size
            bar.unit, bar.unit_scale = "B", True
        bar.total = samples
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        bar.close()
