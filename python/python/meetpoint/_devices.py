"""The devices of a loader: emulated ones that it starts, and running ones."""

from __future__ import annotations

import os
from typing import Any, List, NamedTuple, Optional, Sequence, Union

from . import _native
from ._arguments import (
    U64,
    flag,
    items,
    number,
    path_or_none,
    text,
    text_or_none,
    whole_or_none,
)
from ._program import own_command
from .errors import SettingError

__all__ = ["Device", "Devices", "Emulated", "Remote", "sources"]


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

        :raises SettingError: a setting out of its range.
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


PathLike = Union[str, "os.PathLike[str]"]


class Remote(NamedTuple):
    """A device on another machine, which has a copy of the dataset and sends its batches.

    Start it there with ``meetpoint agent --listen``. Paths are read when the loader connects.

    :param address: ``"tcp://HOST:PORT"``; or ``"file:PATH"``, a file with such an address, which is
        read whenever the loader connects; or ``"srv:NAME"``, the targets of the DNS SRV record
        ``_meetpoint._tcp.NAME``; or several of these separated by commas, which are several devices
        with the same settings.
    :param keys: folder with ``ca.pem``, ``client.pem`` and ``client.key``, as ``meetpoint device
        keys`` writes it; by default that of the environment variable ``MEETPOINT_DEVICE_KEYS``.
        Without certificates, only devices of this machine are connected to.
    :param ca: certificate of the authority that signed the device's certificate, in PEM; replaces
        that of ``keys``.
    :param cert: certificate of this host, in PEM; replaces that of ``keys``.
    :param key: its private key, in PEM; replaces that of ``keys``.
    :param crl: list of revoked certificates, in PEM.
    :param server_name: the name in the device's certificate, if it differs from the host in the
        address.
    :param token_file: file with the token that the device asks for; by default that of the
        environment variable ``MEETPOINT_DEVICE_TOKEN_FILE``.
    :param root: name of the device's root that the dataset is in; by default any.
    """

    address: str
    keys: Optional[PathLike] = None
    ca: Optional[PathLike] = None
    cert: Optional[PathLike] = None
    key: Optional[PathLike] = None
    crl: Optional[PathLike] = None
    server_name: Optional[str] = None
    token_file: Optional[PathLike] = None
    root: Optional[str] = None

    def settings(self) -> _native.RemoteSettings:
        """The settings as the native module takes them.

        :raises SettingError: a value of another type.
        """
        return {
            "address": text("address", self.address),
            "keys": path_or_none("keys", self.keys),
            "ca": path_or_none("ca", self.ca),
            "cert": path_or_none("cert", self.cert),
            "key": path_or_none("key", self.key),
            "crl": path_or_none("crl", self.crl),
            "server_name": text_or_none("server_name", self.server_name),
            "token_file": path_or_none("token_file", self.token_file),
            "root": text_or_none("root", self.root),
        }


class Sources(NamedTuple):
    """How to reach the devices of a loader."""

    sockets: List[str]
    """Sockets to connect to."""
    remotes: List[_native.RemoteSettings]
    """Devices on other machines."""
    commands: List[List[str]]
    """Commands that start devices."""


_RUNNING = ("tcp://", "file:", "unix:", "srv:")
"""Beginnings of strings that name running devices."""

Device = Union[str, Emulated, Remote]
Devices = Union[Device, Sequence[Device], None]


def sources(device: Devices) -> Sources:
    """The devices by where they come from."""
    is_several = isinstance(device, (list, tuple)) and not isinstance(device, (Emulated, Remote))
    several: Any = device if is_several else [device]
    devices: List[Any] = list(several)
    sockets: List[str] = []
    remotes: List[_native.RemoteSettings] = []
    commands: List[List[str]] = []
    for one in devices:
        if isinstance(one, Emulated):
            commands.append(one.command())
        elif isinstance(one, str) and one == "emulated":
            commands.append(Emulated().command())
        elif isinstance(one, Remote):
            settings = one.settings()
            for address in _native.device_addresses("address", settings["address"]):
                remotes.append({**settings, "address": address})
        elif isinstance(one, str) and one.startswith(_RUNNING):
            for address in _native.device_addresses("device", one):
                if address.startswith("unix:"):
                    sockets.append(address[len("unix:") :])
                else:
                    remotes.append(Remote(address).settings())
        elif is_several:
            raise SettingError(
                f'device holds {one!r}; a list of devices takes "emulated", '
                'meetpoint.Emulated(...), meetpoint.Remote(...), "unix:PATH", "srv:NAME", '
                '"file:PATH" and "tcp://HOST:PORT"',
                remedy="for the host alone give device=None",
            )
        elif one is not None:
            raise SettingError(
                f"device is {one!r}",
                remedy=(
                    'set device to None, "emulated", meetpoint.Emulated(...), '
                    'meetpoint.Remote(...), "unix:PATH", "srv:NAME", "file:PATH", '
                    '"tcp://HOST:PORT", or a list of devices'
                ),
            )
    return Sources(sockets, remotes, commands)
