"""The devices of a loader: emulated ones that it starts, and those that somebody else started."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._program import own_command
from .errors import SettingError

__all__ = ["Device", "Emulated", "sources"]


class Emulated(NamedTuple):
    """A computational storage device that is emulated by a process of its own.

    Without knobs it is as fast as this machine.

    :param cpu_ratio: share of a core's time that it computes, over 0 and at most 1.
    :param read_bandwidth: most bytes that it reads in a second.
    :param write_bandwidth: most bytes that it writes in a second.
    :param latency: seconds that each of its commands takes at least.
    :param core: core of its preparing thread; the last one where nothing is given.
    :param allow_shared: whether it may share its core with the host, where there is only one.
    :param faults: what goes wrong on purpose, such as ``"die@3"``; `meetpoint device serve --help`
        lists them.
    """

    cpu_ratio: Optional[float] = None
    read_bandwidth: Optional[int] = None
    write_bandwidth: Optional[int] = None
    latency: Optional[float] = None
    core: Optional[int] = None
    allow_shared: bool = False
    faults: Tuple[str, ...] = ()

    def command(self) -> List[str]:
        """The command line that starts it, without what the loader adds."""
        command = [*own_command(), "device", "serve"]
        knobs = [
            ("--cpu-ratio", self.cpu_ratio, ""),
            ("--read-bandwidth", self.read_bandwidth, "B/s"),
            ("--write-bandwidth", self.write_bandwidth, "B/s"),
            ("--latency", None if self.latency is None else round(self.latency * 1e9), "ns"),
            ("--core", self.core, ""),
        ]
        for name, value, unit in knobs:
            if value is not None:
                command += [name, f"{value}{unit}"]
        for fault in self.faults:
            command += ["--fault", fault]
        if self.allow_shared:
            command.append("--allow-shared")
        return command


Device = Union[str, Emulated, None]


def sources(device: Union[Device, Sequence[Device]]) -> Tuple[List[str], List[List[str]]]:
    """Sockets to connect to, and commands that start devices."""
    is_several = isinstance(device, (list, tuple)) and not isinstance(device, Emulated)
    several: Any = device if is_several else [device]
    devices: List[Any] = list(several)
    sockets: List[str] = []
    commands: List[List[str]] = []
    for one in devices:
        if isinstance(one, Emulated):
            commands.append(one.command())
        elif one == "emulated":
            commands.append(Emulated().command())
        elif isinstance(one, str) and one.startswith("unix:"):
            sockets.append(one[len("unix:") :])
        elif one is not None:
            raise SettingError(
                f'device is {one!r}; it takes None, "emulated", meetpoint.Emulated(...), '
                '"unix:PATH", or a list of those'
            )
    return sockets, commands
