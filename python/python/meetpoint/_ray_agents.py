"""Agents on the nodes of a Ray cluster: see :func:`meetpoint.ray.agents`.

One actor, the manager, runs on the node of the driver and supervises the others, the owners, each
of which runs one agent. Batches go from agents to loaders directly, never through Ray.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from dataclasses import dataclass
from typing import IO, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast

from ._address_files import files_of, keep_updated
from ._agent_process import (
    SERVER_NAME,
    AgentOwner,
    AgentService,
    Credentials,
    in_memory,
    make_credentials,
    path_of,
)
from ._arguments import path as given_path
from ._arguments import number, path_or_none, paths, text, text_or_none, whole, whole_or_none
from ._devices import Remote
from ._ray_import import imported, plain
from ._ray_nodes import Label, Node, fitting, selector
from ._ray_supervisor import (
    AgentFailedError,
    AgentStatus,
    OwnerLostError,
    Supervisor,
)
from .errors import ClosedError, DeviceError, MeetpointError, SettingError

PathLike = Union[str, "os.PathLike[str]"]
Roots = Union[PathLike, Sequence[PathLike], Mapping[str, PathLike]]

_STEP_SECONDS = 0.2
"""Time between two steps of the manager."""
_NODES_SECONDS = 1.0
"""Time for which the list of nodes is cached."""
_ANSWER_SECONDS_MAX = 30.0
"""Maximum time that the manager may take to answer."""
_FOLLOW_SECONDS = 2.0
"""Time between two updates of the address files."""
_FOLLOW_ANSWER_SECONDS_MAX = 10.0
"""Maximum time of an update."""
_HOSTS_MAX = 64
_THREADS_MAX = 1024
_COUNT_MAX = 2**16
_SECONDS_MAX = 1e6


@dataclass(frozen=True)
class AgentSummary:
    """The summary of an agent that ended."""

    index: int
    summary: Optional[Dict[str, Any]]
    """The document of ``meetpoint agent --json``: jobs, batches, and the use by each client;
    ``None`` if the agent had no time to end."""


class _RayCluster:
    """Ray, as the cluster of a supervisor."""

    def __init__(
        self,
        service: AgentService,
        credentials: Optional[Credentials],
        wanted: Mapping[str, str],
        num_cpus: float,
        resources: Optional[Mapping[str, float]],
    ) -> None:
        self._ray = imported("ray")
        self._strategies = imported("ray.util.scheduling_strategies")
        self._service = service
        self._credentials = credentials
        self._wanted = wanted
        self._num_cpus = num_cpus
        self._resources = dict(resources or {})
        self._listed = 0.0
        self._nodes: List[Node] = []

    def nodes(self) -> List[Node]:
        now = time.monotonic()
        if not self._nodes or now - self._listed > _NODES_SECONDS:
            needed = {**self._resources, "CPU": self._num_cpus}
            self._nodes = fitting(self._ray.nodes(), self._wanted, needed)
            self._listed = now
        return self._nodes

    def place(self, node: Node) -> Any:
        affinity = self._strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
        owner = self._ray.remote(AgentOwner).options(
            num_cpus=self._num_cpus,
            resources=self._resources or None,
            scheduling_strategy=affinity,
            # The supervisor starts another owner with a higher generation.
            max_restarts=0,
            max_task_retries=0,
        )
        return owner.remote(self._service)

    def start(self, owner: Any, generation: int, node: Node, port: int) -> Any:
        return owner.start.remote(generation, node.address, port, self._credentials)

    def contact(self, owner: Any, generation: int) -> Any:
        return owner.contact.remote(generation)

    def stop(self, owner: Any, generation: int) -> Any:
        return owner.stop.remote(generation)

    def result(self, call: Any) -> Optional[List[Any]]:
        done, _ = self._ray.wait([call], timeout=0)
        if not done:
            return None
        try:
            return [self._ray.get(call)]
        except self._ray.exceptions.RayTaskError as error:
            # The message of the error that the owner raised.
            raise AgentFailedError(str(getattr(error, "cause", None) or error)) from None
        except self._ray.exceptions.RayError as error:
            raise OwnerLostError(f"its Ray worker or node died ({type(error).__name__})") from None

    def release(self, owner: Any) -> None:
        self._ray.kill(owner, no_restart=True)


class _Manager:
    """The actor that supervises all agents. It ends with the driver, and the owners with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._supervisor: Optional[Supervisor] = None
        self._cluster: Optional[_RayCluster] = None
        self._stopped = threading.Event()
        self._error: Optional[str] = None

    def begin(
        self,
        service: AgentService,
        # Not an argument of the actor's constructor, which Ray stores to restart actors.
        credentials: Optional[Credentials],
        wanted: Mapping[str, str],
        num_cpus: float,
        resources: Optional[Mapping[str, float]],
        count: int,
    ) -> None:
        """Starts the supervision."""
        self._cluster = _RayCluster(service, credentials, wanted, num_cpus, resources)
        self._supervisor = Supervisor(self._cluster, count)
        threading.Thread(target=self._run, name="meetpoint-supervisor", daemon=True).start()

    def status(self) -> "Tuple[List[AgentStatus], Optional[str]]":
        """The agents, and the error that ended the supervision."""
        with self._lock:
            return ([] if self._supervisor is None else self._supervisor.status()), self._error

    def stop(self, limit: float) -> List[AgentSummary]:
        """Drains and ends all agents."""
        self._stopped.set()
        with self._lock:
            if self._supervisor is None or self._cluster is None:
                return []
            calls = self._supervisor.stop()
            deadline = time.monotonic() + limit
            summaries: Dict[int, Any] = {}
            waiting = dict(calls)
            while waiting and time.monotonic() < deadline:
                for index, call in list(waiting.items()):
                    with contextlib.suppress(OwnerLostError, AgentFailedError):
                        result = self._cluster.result(call)
                        if result is None:
                            continue
                        summaries[index] = result[0]
                    del waiting[index]
                time.sleep(_STEP_SECONDS / 4)
            self._supervisor.release()
            return [AgentSummary(index, summaries.get(index)) for index in sorted(calls)]

    def _run(self) -> None:
        assert self._supervisor is not None
        while not self._stopped.wait(_STEP_SECONDS):
            with self._lock:
                if self._stopped.is_set():
                    return
                try:
                    self._supervisor.step(time.monotonic())
                except Exception as error:
                    # Such as a lost connection to Ray's control store. Without contact, owners
                    # end their agents.
                    self._error = f"{type(error).__name__}: {error}"
                    return


class Agents:
    """Agents that Ray supervises. :func:`meetpoint.ray.agents` creates this object.

    It can be pickled, for example as an argument of a task or in the configuration of Ray Train:
    the copies refer to the same agents. Only the original ends them, by :meth:`shutdown` or at the
    end of ``with``. A pickle contains the private key of the hosts, which Ray does not encrypt
    unless ``RAY_USE_TLS=1``. With ``keys=FOLDER`` of :func:`meetpoint.ray.agents`, it contains no
    key.
    """

    def __init__(
        self,
        manager: Any,
        credentials: Optional[Credentials],
        keys: Optional[str],
        server_name: Optional[str],
        limits: "Tuple[float, float]",
    ) -> None:
        self._manager = manager
        self._credentials = credentials
        self._keys = keys
        self._server_name = server_name
        self._start_seconds, self._drain_seconds = limits
        self._id = secrets.token_hex(16)
        self._follower: Optional[threading.Thread] = None
        self._is_owner = True
        self._is_closed = False

    @property
    def devices(self) -> List[Remote]:
        """The agents for ``Loader(device=…)``, by index.

        Waits, at most for the ``timeout`` of :func:`meetpoint.ray.agents`, while agents are
        starting; then returns those that serve. It does not wait for agents without a node or
        that fail repeatedly. From its next epoch on, a loader uses an agent that was started again,
        on its node or on another: its address is in a file in memory, which a thread of this
        process keeps up to date while this object exists. The devices are for loaders of this
        process; pass the object itself to other processes.

        :raises DeviceError: no agent serves, or the manager does not answer.
        :raises ClosedError: after :meth:`shutdown`.
        """
        status = self._settled()
        serving = [it for it in status if it.state == "serving" and it.address is not None]
        if not serving:
            raise _none_serves(status)
        files = files_of(self._id)
        files.update(_addresses(serving))
        if self._follower is None or not self._follower.is_alive():
            self._follower = keep_updated(files, self._current_addresses, _FOLLOW_SECONDS)
        return [self._remote(files.device(it.index)) for it in serving]

    def status(self) -> List[AgentStatus]:
        """The state of each agent, by index.

        :raises DeviceError: the manager does not answer.
        :raises ClosedError: after :meth:`shutdown`.
        """
        if self._is_closed:
            raise ClosedError("the agents were shut down")
        ray = imported("ray")
        if not ray.is_initialized():
            raise DeviceError(
                "Ray was shut down, and the agents with it",
                cause="agents_lost",
                remedy="call ray.init, then meetpoint.ray.agents again",
            )
        try:
            status, error = ray.get(self._manager.status.remote(), timeout=_ANSWER_SECONDS_MAX)
        except ray.exceptions.RayError as failure:
            raise DeviceError(
                f"the manager of the agents does not answer: {failure}",
                cause="agents_lost",
                remedy="call meetpoint.ray.agents again; agents end with their manager",
            ) from failure
        if error is not None:
            raise DeviceError(f"the supervision of the agents ended: {error}", cause="agents_lost")
        return cast("List[AgentStatus]", status)

    def shutdown(self) -> List[AgentSummary]:
        """Drains and ends all agents; returns their summaries. Loaders continue without them.

        A second call does nothing.

        :raises SettingError: this is a copy.
        """
        if not self._is_owner:
            raise SettingError(
                "a copy of the agents cannot end them", remedy="call shutdown of the original"
            )
        if self._is_closed:
            return []
        self._is_closed = True
        ray = imported("ray")
        if not ray.is_initialized():
            # The agents ended with the connection to Ray. A call would connect again.
            return []
        limit = self._drain_seconds + _ANSWER_SECONDS_MAX
        summaries: List[AgentSummary] = []
        with contextlib.suppress(ray.exceptions.RayError):
            summaries = ray.get(self._manager.stop.remote(limit), timeout=2 * limit)
        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(self._manager, no_restart=True)
        return summaries

    def __enter__(self) -> "Agents":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_owner:
            self.shutdown()

    def __repr__(self) -> str:
        return f"<meetpoint.ray.Agents, {'closed' if self._is_closed else 'open'}>"

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_is_owner": False, "_follower": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _remote(self, address: str) -> Remote:
        if self._credentials is None:
            return Remote(address, keys=self._keys, server_name=self._server_name)
        ca, cert, key = (path_of(file) for file in _files(self._credentials))
        return Remote(address, ca=ca, cert=cert, key=key, server_name=SERVER_NAME)

    def _current_addresses(self) -> Optional[Dict[int, str]]:
        """The addresses that are known now, by index; ``None`` once the agents have ended."""
        try:
            if self._is_closed or not imported("ray").is_initialized():
                return None
            # Unlike ray.get, this never connects to Ray again, even if Ray is shut down now.
            answer = self._manager.status.remote().future()
            status, _ = answer.result(_FOLLOW_ANSWER_SECONDS_MAX)
        except Exception:
            # The next call may succeed; `status` reports why one fails.
            return {}
        return _addresses(status)

    def _settled(self) -> List[AgentStatus]:
        """The states, once no agent is starting or the time limit has passed."""
        deadline = time.monotonic() + self._start_seconds
        while True:
            status = self.status()
            if status and not any(it.state == "starting" for it in status):
                return status
            if time.monotonic() > deadline:
                return status
            time.sleep(_STEP_SECONDS)


_OPEN_FILES: "Dict[Tuple[bytes, bytes, bytes], List[IO[bytes]]]" = {}
"""Credentials of this process, as files that loaders read whenever they connect. They are unnamed,
so none remains after this process, however it ends."""


def _files(credentials: Credentials) -> List[IO[bytes]]:
    contents = (credentials.ca, credentials.cert, credentials.key)
    files = _OPEN_FILES.get(contents)
    if files is None:
        files = _OPEN_FILES.setdefault(contents, [in_memory(content) for content in contents])
    return files


def _addresses(status: Sequence[AgentStatus]) -> Dict[int, str]:
    return {it.index: it.address for it in status if it.address is not None}


def _none_serves(status: List[AgentStatus]) -> DeviceError:
    errors = [f"agent {it.index}: {it.error}" for it in status if it.error is not None]
    return DeviceError(
        f"no agent serves ({'; '.join(errors) or 'none has a node'})",
        cause="no_agent",
        remedy="see status() of the agents, and check that nodes with the label are up",
    )


def roots_by_name(roots: Any) -> Dict[str, str]:
    """The folders of agents by name; without names, they are called ``root-0``, ``root-1``, …

    :raises SettingError: a path is relative, or a name is invalid.
    """
    named: Dict[str, str] = {}
    if isinstance(roots, Mapping):
        given: Mapping[Any, Any] = roots  # pyright: ignore[reportUnknownVariableType]
        for name, folder in given.items():
            if not text("roots", name) or "=" in name or "/" in name:
                raise SettingError(
                    f"roots has the name {name!r}", remedy="use names without '=' and '/'"
                )
            named[name] = given_path("roots", folder)
    else:
        named = {f"root-{index}": it for index, it in enumerate(paths("roots", roots))}
    if not named:
        raise SettingError("roots is empty", remedy="set roots to one folder or more")
    for folder in named.values():
        if not os.path.isabs(folder):
            raise SettingError(
                f"roots has {folder!r}, a relative path, which differs between nodes",
                remedy="set roots to absolute paths on the nodes of the agents",
            )
    return named


def agents(
    label: Label = None,
    *,
    roots: Roots,
    count: Optional[int] = None,
    num_cpus: float = 1,
    resources: Optional[Dict[str, float]] = None,
    threads: Optional[int] = None,
    hosts: int = 16,
    keys: Optional[PathLike] = None,
    server_name: Optional[str] = None,
    timeout: float = 120.0,
    drain_timeout: float = 25.0,
) -> Agents:
    """Starts agents on nodes near the data, waits until all serve, and restarts those that fail.

    ::

        with meetpoint.ray.agents("storage=nvme", roots="/data/photos.set") as agents:
            loader = meetpoint.Loader("/data/photos.set", recipe=recipe, device=agents.devices)

    Each agent is the program ``meetpoint agent``, which an actor runs on a different node. If the
    agent or its actor dies, the agent is started again on the same node and, if possible, on the
    same port. If the node dies, the agent is started on another node that has the label and no
    agent. Loaders use it again from their next epoch on. Agents end with the driver.

    :param label: labels of the nodes (``ray start --labels``): ``"KEY=VALUE"``, several separated
        by commas, or a mapping. Without ``label`` and ``resources``, all nodes with enough CPUs
        are used.
    :param roots: folders on the nodes that hold datasets: a path, a list, or a mapping from names.
    :param count: number of agents; by default, one for each live node that is selected.
    :param num_cpus: CPUs of the node that Ray reserves for an agent; 0 for none.
    :param resources: custom resources of the node that an agent takes, which select nodes too.
    :param threads: batches that an agent prepares at the same time; by default
        ``num_cpus``, at least one.
    :param hosts: loaders that an agent serves at the same time.
    :param keys: folder with certificates that exists on all nodes: ``ca.pem``, ``server.pem``,
        ``server.key`` on those of agents, ``ca.pem``, ``client.pem``, ``client.key`` on those of
        loaders. By default, certificates are made for these agents, are valid for a year, exist
        only in memory, and cross the network as arguments of Ray's calls.
    :param server_name: with ``keys``, the name in the certificates of the agents, if it is not
        their address.
    :param timeout: maximum time in seconds to wait for agents.
    :param drain_timeout: maximum time in seconds for an agent to drain and end.
    :raises DeviceError: an agent does not start.
    :raises SettingError: too few nodes have the label and the resources.
    """
    ray = imported("ray")
    wanted = selector(label)
    folder = path_or_none("keys", keys)
    if folder is None and server_name is not None:
        raise SettingError("server_name is set without keys", remedy="set keys, or leave it out")
    cpus = number("num_cpus", num_cpus, 0, _THREADS_MAX)
    of_agent = whole_or_none("threads", threads, _THREADS_MAX, least=1)
    service = AgentService(
        roots=roots_by_name(roots),
        threads=max(1, int(cpus)) if of_agent is None else of_agent,
        hosts=whole("hosts", hosts, _HOSTS_MAX, least=1),
        drain_seconds=number("drain_timeout", drain_timeout, 0, _SECONDS_MAX),
        keys=folder,
    )
    wished = whole_or_none("count", count, _COUNT_MAX, least=1)
    name = text_or_none("server_name", server_name)
    limit = number("timeout", timeout, 0, _SECONDS_MAX)
    if not ray.is_initialized():
        ray.init()
    up = fitting(ray.nodes(), wanted, {**(resources or {}), "CPU": cpus})
    if len(up) < (wished or 1):
        raise SettingError(
            f"{len(up)} live nodes have label={label!r}, resources={resources!r} and {cpus} "
            f"CPUs, but {wished or 1} agents need a node each",
            remedy='start nodes with `ray start --labels "KEY=VALUE"`, or set a lower count',
        )
    ours, theirs = (None, None) if folder is not None else make_credentials()
    strategies = imported("ray.util.scheduling_strategies")
    here = ray.get_runtime_context().get_node_id()
    manager = (
        ray.remote(_Manager)
        .options(
            num_cpus=0,
            max_restarts=0,
            # With soft=True, Ray also uses other nodes, whose loss would end all agents.
            scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(here, soft=False),
        )
        .remote()
    )
    made = Agents(manager, theirs, folder, name, (limit, service.drain_seconds))
    try:
        begun = manager.begin.remote(
            service, ours, wanted, cpus, resources, wished or len(up)
        )
        plain(ray, begun, limit)
        status = made._settled()
        failed = [it for it in status if it.state != "serving"]
        if failed:
            raise _not_started(failed[0], limit)
    except BaseException:
        made.shutdown()
        raise
    return made


def _not_started(status: AgentStatus, limit: float) -> MeetpointError:
    what = status.error or f"it does not serve after {limit:.0f} s"
    return DeviceError(
        f"agent {status.index} does not start: {what}",
        cause="agent_not_started",
        remedy="see the log of its Ray worker",
    )
