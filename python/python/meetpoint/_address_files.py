"""Addresses of agents in files of this process, which loaders read whenever they connect.

A thread replaces the address of an agent that moved, so that loaders that are open find it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from typing import IO, Callable, Dict, Mapping, Optional

from ._agent_process import in_memory


class AddressFiles:
    """One unnamed file for each agent of a cluster, by index."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: Dict[int, IO[bytes]] = {}
        self._written: Dict[int, str] = {}

    def update(self, addresses: Mapping[int, str]) -> None:
        """Writes addresses. An agent that is left out keeps its last one."""
        with self._lock:
            for index, address in addresses.items():
                if self._written.get(index) == address:
                    continue
                new = in_memory(f"{address}\n".encode())
                file = self._files.setdefault(index, new)
                if file is not new:
                    # The descriptor refers to another file from then on, under the same path, so
                    # a reader gets the whole old address or the whole new one.
                    with new:
                        os.dup2(new.fileno(), file.fileno(), inheritable=False)
                self._written[index] = address

    def device(self, index: int) -> str:
        """The address of the agent as a loader takes it, in this process or in one that it starts."""
        process = os.readlink("/proc/self")
        return f"file:/proc/{process}/fd/{self._files[index].fileno()}"


_FILES: Dict[str, AddressFiles] = {}


def files_of(cluster: str) -> AddressFiles:
    """The files of a cluster. They are never closed, because loaders only have their paths."""
    return _FILES.setdefault(cluster, AddressFiles())


def keep_updated(
    files: AddressFiles, current: Callable[[], Optional[Mapping[int, str]]], pause: float
) -> threading.Thread:
    """Updates files in a thread, every ``pause`` seconds.

    The thread ends when the object of the method is garbage or the method returns ``None``. It
    keeps neither the object nor the process alive.

    :param current: a method that returns the addresses that are known now, by index.
    """
    method = weakref.WeakMethod(current)

    def run() -> None:
        while True:
            time.sleep(pause)
            read = method()
            addresses = None if read is None else read()
            del read
            if addresses is None:
                return
            # Too many files may be open; the next update tries again.
            with contextlib.suppress(OSError):
                files.update(addresses)

    thread = threading.Thread(target=run, name="meetpoint-addresses", daemon=True)
    thread.start()
    return thread
