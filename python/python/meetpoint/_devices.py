"""The devices of a loader: emulated ones that it starts, and running ones."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _native
from ._arguments import U64, flag, items, number, text, whole_or_none
from ._program import own_command
from .errors import SettingError

__all__ = ["Device", "Devices", "Emulated", "sources"]


class Emulated(NamedTuple):
    """A computational storage device that is emulated by a separate process.

    Without these settings it is as fast as this machine. Invalid values are an error when a loader
    is created with it.

    :param cpu_ratio: share of a core's time that it may use, from 0.001 to 1.
    :param read_bandwidth: maximum bytes read per second.
    :param write_bandwidth: maximum bytes written per second.
    :param latency: latency of each read and write of a file in seconds, at most 1.
    :param core: core of its preparing thread; by default the last one.
    :param allow_shared: whether it may share a core with the host if there is only one.
    :param faults: faults to inject, such as ``("die@3",)``; ``meetpoint device serve --help`` lists
        them.
    """

    cpu_ratio: Optional[float] = None
    read_bandwidth: Optional[int] = None
    write_bandwidth: Optional[int] = None
    latency: Optional[float] = None
    core: Optional[int] = None
    allow_shared: bool = False
    faults: Sequence[str] = ()

    def command(self) -> List[str]:
        """The command line that starts it, without the arguments that the loader adds.

        :raises SettingError: a knob out of its range.
        """
        ratio_min, latency_max = _native.emulation_limits()
        ratio, latency = self.cpu_ratio, self.latency
        if ratio is not None:
            ratio = number("cpu_ratio", ratio, ratio_min, 1)
        if latency is not None:
            latency = number("latency", latency, 0, latency_max)
        faults = [self.faults] if isinstance(self.faults, str) else self.faults
        settings = {
            "cpu_ratio": ratio,
            "read_bandwidth": whole_or_none("read_bandwidth", self.read_bandwidth, U64, least=1),
            "write_bandwidth": whole_or_none("write_bandwidth", self.write_bandwidth, U64, least=1),
            "latency_ns": None if latency is None else round(latency * 1e9),
            "core": whole_or_none("core", self.core),
            "allow_shared": flag("allow_shared", self.allow_shared),
            "faults": [text("faults", fault) for fault in items("faults", faults, "texts")],
        }
        return [*own_command(), *_native.serve_arguments(settings)]


Device = Union[str, Emulated]
Devices = Union[Device, Sequence[Device], None]


def sources(device: Devices) -> Tuple[List[str], List[List[str]]]:
    """Sockets to connect to, and commands that start devices."""
    is_several = isinstance(device, (list, tuple)) and not isinstance(device, Emulated)
    several: Any = device if is_several else [device]
    devices: List[Any] = list(several)
    sockets: List[str] = []
    commands: List[List[str]] = []
    for one in devices:
        if isinstance(one, Emulated):
            commands.append(one.command())
        elif isinstance(one, str) and one == "emulated":
            commands.append(Emulated().command())
        elif isinstance(one, str) and one.startswith("unix:"):
            sockets.append(one[len("unix:") :])
        elif is_several:
            raise SettingError(
                f'device holds {one!r}; a list of devices takes "emulated", '
                'meetpoint.Emulated(...) and "unix:PATH"',
                remedy="for the host alone give device=None",
            )
        elif one is not None:
            raise SettingError(
                f"device is {one!r}",
                remedy=(
                    'set device to None, "emulated", meetpoint.Emulated(...), '
                    '"unix:PATH", or a list of devices'
                ),
            )
    return sockets, commands
