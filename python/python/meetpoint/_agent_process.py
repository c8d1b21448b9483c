"""The program ``meetpoint agent`` as a child process, which an owner starts, watches and ends.

An owner runs one agent at a time, each with a higher generation than the one before. Calls with
another generation have no effect. An owner that no supervisor contacts ends its agent, so that a
lost owner does not serve for long.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import IO, Any, Dict, List, Mapping, Optional

from ._program import own_command
from .errors import DeviceError

SERVER_NAME = "meetpoint-agent"
"""The name in the certificates that are made for the agents of a cluster, on any node."""

_START_SECONDS_MAX = 60.0
"""Maximum time from the start of an agent until it listens."""
_END_SECONDS = 5.0
"""Time beyond the drain timeout after which an agent that was asked to end is killed."""
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Credentials:
    """Certificates and a private key in PEM, in memory. Its ``repr`` does not contain them."""

    ca: bytes = field(repr=False)
    cert: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class AgentService:
    """The settings of every agent of a cluster."""

    roots: Mapping[str, str]
    """Name and folder of each root, on the node of the agent."""
    threads: int
    hosts: int
    drain_seconds: float
    keys: Optional[str] = None
    """Folder of certificates on the node; ``None`` if the agent receives credentials."""
    lease_seconds: float = 30.0
    """An agent ends if its supervisor does not contact its owner for this time."""


@dataclass(frozen=True)
class Contact:
    """The answer of an owner to its supervisor."""

    is_serving: bool
    exit_code: Optional[int] = None
    """The exit code of an agent that ended, as in :class:`subprocess.Popen`."""


def _memory_folder() -> Optional[str]:
    """A folder in memory; ``None``, for the default of :mod:`tempfile`, if there is none."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def in_memory(content: bytes) -> IO[bytes]:
    """An unnamed file, in memory if the system has ``/dev/shm``. See :func:`path_of`."""
    file: IO[bytes] = tempfile.TemporaryFile(dir=_memory_folder())
    file.write(content)
    file.flush()
    return file


def path_of(file: IO[bytes]) -> str:
    """The path at which this process, and its children that inherit the descriptor, can open it."""
    return f"/proc/self/fd/{file.fileno()}"


def make_credentials() -> "tuple[Credentials, Credentials]":
    """Credentials for agents and for their hosts, from a new authority, whose key is deleted."""
    with tempfile.TemporaryDirectory(prefix="meetpoint-keys-", dir=_memory_folder()) as folder:
        words = ["--json", "device", "keys", folder, "--server", SERVER_NAME, "--client", "client"]
        made = subprocess.run(
            [*own_command(), *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        if made.returncode != 0:
            raise _error("certificates for agents cannot be made", made.stdout)
        contents: Dict[str, bytes] = {}
        for name in ("ca.pem", "server.pem", "server.key", "client.pem", "client.key"):
            with open(os.path.join(folder, name), "rb") as file:
                contents[name] = file.read()
    ca = contents["ca.pem"]
    return (
        Credentials(ca, contents["server.pem"], contents["server.key"]),
        Credentials(ca, contents["client.pem"], contents["client.key"]),
    )


class AgentOwner:
    """Starts, watches and ends the agent of one node.

    Its methods must be called by one thread, which must not end before the agent.
    """

    def __init__(self, service: AgentService) -> None:
        self._service = service
        self._generation = 0
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._lock = threading.Lock()
        self._contact = time.monotonic()
        self._lease = threading.Thread(target=self._watch, name="meetpoint-lease", daemon=True)
        self._lease.start()

    def start(
        self, generation: int, host: str, port: int, credentials: Optional[Credentials]
    ) -> int:
        """Kills the previous agent, if any, and starts another one; returns its port.

        :param generation: must be higher than that of every agent before.
        :param host: address on which it listens.
        :param port: port on which it listens if it is free; with 0, any.
        :raises DeviceError: it does not start.
        """
        with self._lock:
            if generation <= self._generation:
                raise DeviceError(
                    f"generation {generation} of an agent at {host} is not higher than "
                    f"{self._generation}, which was already started",
                    cause="agent_fenced",
                )
            self._generation = generation
            _kill(self._process)
            self._process = None
            port = _free_port(host, port)
            self._process = _started(self._service, host, port, credentials)
            self._contact = time.monotonic()
            return port

    def contact(self, generation: int) -> Contact:
        """Whether the agent of this generation serves; renews its lease."""
        with self._lock:
            if generation != self._generation or self._process is None:
                return Contact(False)
            self._contact = time.monotonic()
            exit_code = self._process.poll()
            return Contact(exit_code is None, exit_code)

    def stop(self, generation: int) -> Optional[Dict[str, Any]]:
        """Drains and ends the agent of this generation; returns its summary if it had time to.

        The summary is what ``meetpoint agent --json`` prints: jobs, batches, and use by client.
        """
        with self._lock:
            process = self._process if generation == self._generation else None
            if process is None:
                return None
            self._process = None
        process.send_signal(signal.SIGTERM)
        try:
            printed, _ = process.communicate(timeout=self._service.drain_seconds + _END_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(process)
            return None
        with contextlib.suppress(ValueError):
            summary: Dict[str, Any] = json.loads(printed)
            return summary
        return None

    def process_id(self) -> Optional[int]:
        """Process id of the agent."""
        with self._lock:
            return None if self._process is None else self._process.pid

    def _watch(self) -> None:
        lease = self._service.lease_seconds
        while True:
            time.sleep(min(1.0, lease / 4))
            with self._lock:
                if time.monotonic() - self._contact > lease:
                    _kill(self._process)


def _kill(process: Optional["subprocess.Popen[bytes]"]) -> None:
    if process is not None:
        process.kill()
        process.wait()


def _free_port(host: str, port: int) -> int:
    """The given port if it is free, otherwise any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reason: Optional[OSError] = None
    for wanted in dict.fromkeys([port, 0]):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, wanted))
            except OSError as error:
                reason = error
                continue
            return int(probe.getsockname()[1])
    raise DeviceError(
        f"an agent cannot listen on {host}: {reason}",
        cause="listen",
        remedy="start the node with an address of its machine (ray start --node-ip-address)",
    )


def address_of(host: str, port: int) -> str:
    """The address of an agent as a loader takes it."""
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def _started(
    service: AgentService, host: str, port: int, credentials: Optional[Credentials]
) -> "subprocess.Popen[bytes]":
    """An agent that listens."""
    words = ["--json", "agent", "--listen", address_of(host, port)]
    words += [f"--root={name}={folder}" for name, folder in service.roots.items()]
    words += [f"--threads={service.threads}", f"--hosts={service.hosts}"]
    words += [f"--drain-timeout={round(service.drain_seconds * 1000)}ms"]
    with contextlib.ExitStack() as stack:
        files: List[IO[bytes]] = []
        if credentials is None:
            folder = service.keys or ""
            names = {"ca": "ca.pem", "cert": "server.pem", "key": "server.key", "crl": "crl.pem"}
            paths = {option: os.path.join(folder, name) for option, name in names.items()}
            if not os.path.exists(paths["crl"]):
                del paths["crl"]
        else:
            paths = {}
            for option in ("ca", "cert", "key"):
                file = stack.enter_context(in_memory(getattr(credentials, option)))
                files.append(file)
                paths[option] = path_of(file)
        words += [f"--{option}={path}" for option, path in paths.items()]
        # An abstract name leaves no file. The agent reports to this socket as to systemd.
        name = f"meetpoint-{secrets.token_hex(16)}"
        notify = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        notify.bind(f"\0{name}")
        process = subprocess.Popen(
            [*own_command(is_bound=True), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "NOTIFY_SOCKET": f"@{name}"},
            pass_fds=[file.fileno() for file in files],
        )
        deadline = time.monotonic() + _START_SECONDS_MAX
        try:
            while not select.select([notify], [], [], _POLL_SECONDS)[0]:
                if process.poll() is not None:
                    printed = b"" if process.stdout is None else process.stdout.read()
                    raise _error(f"the agent at {host} ended with {process.returncode}", printed)
                if time.monotonic() > deadline:
                    raise DeviceError(
                        f"the agent at {host} does not listen after {_START_SECONDS_MAX:.0f} s",
                        cause="agent_timeout",
                        remedy="see the log of its Ray worker",
                    )
        except BaseException:
            _kill(process)
            raise
    return process


_REMEDIES = {"root_unreadable": "set roots to folders that the nodes of the agents can read"}
"""Remedies by cause, where that of the program names an option of the command line."""


def _error(what: str, printed: bytes) -> DeviceError:
    """The error that the program printed as JSON."""
    try:
        error: Dict[str, Any] = json.loads(printed)["error"]
    except (ValueError, KeyError):
        return DeviceError(what, cause="agent_ended")
    cause = str(error["cause"])
    message = ": ".join([error["message"], *error.get("because", [])])
    remedy = _REMEDIES.get(cause, error.get("remedy"))
    return DeviceError(f"{what}: {message}", cause=cause, remedy=remedy)
