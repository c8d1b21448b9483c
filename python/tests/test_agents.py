"""Agents of a cluster without Ray: the process, its owner, the supervisor, and arguments."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy
import pytest
from conftest import wait_until_gone

import meetpoint
import meetpoint.ray
from meetpoint import _agent_process as process
from meetpoint import transforms as T
from meetpoint._address_files import AddressFiles
from meetpoint._agent_process import AgentOwner, AgentService, Contact, Credentials
from meetpoint._ray_agents import roots_by_name
from meetpoint._ray_nodes import Node, fitting, has_labels, selector
from meetpoint._ray_supervisor import (
    CONTACT_SECONDS,
    FAILURES_MAX,
    SILENCE_SECONDS_MAX,
    START_SECONDS_MAX,
    AgentFailedError,
    OwnerLostError,
    Supervisor,
)

HERE = "127.0.0.1"
RECIPE = T.Compose([T.RandomResizedCrop(8), T.RandomHorizontalFlip()])
PATIENCE = 60.0


def test_importing_meetpoint_imports_no_ray() -> None:
    code = "import sys, meetpoint, meetpoint.ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


# The process and its owner.


@pytest.fixture(scope="module")
def keys() -> Tuple[Credentials, Credentials]:
    return process.make_credentials()


def service(dataset: str, **named: Any) -> AgentService:
    return AgentService({"set": dataset}, threads=1, hosts=2, drain_seconds=10.0, **named)


@pytest.fixture
def owner(dataset: str) -> Iterator[AgentOwner]:
    made = AgentOwner(service(dataset))
    yield made
    if made.process_id() is not None:
        os.kill(made.process_id() or 0, signal.SIGKILL)


def loader(dataset: str, device: Any, strategy: str = "device-only") -> Any:
    return meetpoint.Loader(
        dataset, recipe=RECIPE, batch_size=4, shuffle=True, seed=3, strategy=strategy, device=device
    )


def images(dataset: str, device: Any, strategy: str = "device-only") -> List[numpy.ndarray]:
    with loader(dataset, device, strategy) as batches:
        return [batch[0].copy() for batch in batches]


def remote(address: str, of: Credentials) -> "Tuple[meetpoint.Remote, List[Any]]":
    """An agent of this machine, and the files of its credentials, which must stay open."""
    files = [process.in_memory(content) for content in (of.ca, of.cert, of.key)]
    ca, cert, key = map(process.path_of, files)
    return (
        meetpoint.Remote(address, ca=ca, cert=cert, key=key, server_name=process.SERVER_NAME),
        files,
    )


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "in time"
        time.sleep(0.02)


def test_a_killed_agent_starts_again_at_its_address_and_serves_the_same_batches(
    dataset: str, owner: AgentOwner, keys: Tuple[Credentials, Credentials]
) -> None:
    alone = images(dataset, None, "host-only")
    port = owner.start(1, HERE, 0, keys[0])
    device, _open = remote(process.address_of(HERE, port), keys[1])
    assert owner.contact(1) == Contact(True)
    for left, right in zip(images(dataset, device), alone):
        assert numpy.array_equal(left, right)
    os.kill(owner.process_id() or 0, signal.SIGKILL)
    wait_until(lambda: owner.contact(1) == Contact(False, -signal.SIGKILL))
    assert owner.start(2, HERE, port, keys[0]) == port
    for left, right in zip(images(dataset, device), alone):
        assert numpy.array_equal(left, right)
    summary = owner.stop(2)
    assert summary is not None and summary["jobs"] == 1
    assert [it["batches"] for it in summary["clients"]] == [len(alone)]


def test_a_loader_uses_an_agent_that_moved_in_a_later_epoch(
    dataset: str, owner: AgentOwner, keys: Tuple[Credentials, Credentials]
) -> None:
    files = AddressFiles()
    files.update({0: process.address_of(HERE, owner.start(1, HERE, 0, keys[0]))})
    device, _open = remote(files.device(0), keys[1])
    other = AgentOwner(service(dataset))
    alone = loader(dataset, None, "host-only")
    with loader(dataset, device) as moving, alone, pytest.warns(meetpoint.DeviceWarning):

        def events() -> List[str]:
            return [it["kind"] for it in moving.report()["epochs"][-1]["events"]]

        def check_epoch() -> None:
            expected = [batch[0].copy() for batch in alone]
            seen = [batch[0].copy() for batch in moving]
            assert all(map(numpy.array_equal, seen, expected)) and len(seen) == len(expected)

        check_epoch()
        os.kill(owner.process_id() or 0, signal.SIGKILL)
        files.update({0: process.address_of(HERE, other.start(1, HERE, 0, keys[0]))})
        check_epoch()
        while "device_reopened" not in events():
            check_epoch()
        check_epoch()
    summary = other.stop(1)
    assert summary is not None and summary["batches"] > 0


def test_earlier_generations_are_fenced(
    owner: AgentOwner, keys: Tuple[Credentials, Credentials]
) -> None:
    owner.start(3, HERE, 0, keys[0])
    with pytest.raises(meetpoint.DeviceError) as raised:
        owner.start(3, HERE, 0, keys[0])
    assert raised.value.cause == "agent_fenced"
    assert owner.contact(2) == Contact(False)
    assert owner.stop(2) is None
    assert owner.contact(3) == Contact(True), "calls of another generation changed nothing"


def test_an_owner_without_contact_ends_its_agent(
    dataset: str, keys: Tuple[Credentials, Credentials]
) -> None:
    lost = AgentOwner(service(dataset, lease_seconds=0.4))
    lost.start(1, HERE, 0, keys[0])
    agent = lost.process_id()
    assert agent is not None
    wait_until_gone(agent)


def test_an_agent_ends_with_the_process_of_its_owner(dataset: str) -> None:
    code = (
        "import os, signal, sys\n"
        "from meetpoint import _agent_process as process\n"
        f"service = process.AgentService({{'set': {dataset!r}}}, 1, 1, 5.0)\n"
        "owner = process.AgentOwner(service)\n"
        "owner.start(1, '127.0.0.1', 0, process.make_credentials()[0])\n"
        "print(owner.process_id(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, timeout=PATIENCE
    )
    assert ran.returncode == -signal.SIGKILL
    wait_until_gone(int(ran.stdout))


def test_agents_that_do_not_start_raise_the_reason(
    owner: AgentOwner, tmp_path: Path, keys: Tuple[Credentials, Credentials]
) -> None:
    lost = AgentOwner(AgentService({"a": str(tmp_path / "none")}, 1, 1, 5.0))
    with pytest.raises(meetpoint.DeviceError) as raised:
        lost.start(1, HERE, 0, keys[0])
    assert raised.value.cause == "root_unreadable" and "roots" in (raised.value.remedy or "")
    with pytest.raises(meetpoint.DeviceError) as raised:
        owner.start(1, "192.0.2.1", 0, keys[0])
    assert raised.value.cause == "listen"


def test_keys_of_a_folder_are_used(dataset: str, tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    words = ["device", "keys", str(folder), "--server", HERE, "--client", "client"]
    subprocess.run(
        [sys.executable, "-m", "meetpoint", *words], check=True, stdout=subprocess.DEVNULL
    )
    made = AgentOwner(service(dataset, keys=str(folder)))
    port = made.start(1, HERE, 0, None)
    device = meetpoint.Remote(process.address_of(HERE, port), keys=folder)
    assert len(images(dataset, device)) == len(images(dataset, None, "host-only"))
    made.stop(1)


def test_keys_are_neither_printed_nor_stored(keys: Tuple[Credentials, Credentials]) -> None:
    for of in keys:
        assert b"PRIVATE KEY" in of.key
        assert "PRIVATE" not in repr(of) and "PRIVATE" not in str(of)
        assert pickle.loads(pickle.dumps(of)) == of
    with process.in_memory(b"secret") as file:
        path = process.path_of(file)
        assert Path(path).read_bytes() == b"secret"
        assert os.fstat(file.fileno()).st_nlink == 0, "it has no name"
    assert not Path(path).exists()


# The supervisor, with a cluster of the test.


class FakeCluster:
    """Owners that answer when the test says so."""

    def __init__(self, *nodes: str) -> None:
        self.up = [Node(name, f"10.0.0.{index}", {}, {}) for index, name in enumerate(nodes, 1)]
        self.placed: List[str] = []
        self.released: List[int] = []
        self.calls: List[Tuple[Any, ...]] = []
        self.answers: Dict[int, Any] = {}

    def nodes(self) -> List[Node]:
        return self.up

    def place(self, node: Node) -> int:
        self.placed.append(node.id)
        return len(self.placed) - 1

    def start(self, owner: int, generation: int, node: Node, port: int) -> int:
        return self._call("start", owner, generation, port)

    def contact(self, owner: int, generation: int) -> int:
        return self._call("contact", owner, generation)

    def stop(self, owner: int, generation: int) -> int:
        return self._call("stop", owner, generation)

    def _call(self, *call: Any) -> int:
        self.calls.append(call)
        return len(self.calls) - 1

    def result(self, call: int) -> Optional[List[Any]]:
        answer = self.answers.get(call)
        if isinstance(answer, Exception):
            raise answer
        return None if answer is None else [answer]

    def release(self, owner: int) -> None:
        self.released.append(owner)

    def answer(self, answer: Any) -> None:
        """Answers the last call."""
        self.answers[len(self.calls) - 1] = answer


def serving(cluster: FakeCluster, port: int = 7000) -> Supervisor:
    """A supervisor of one agent, which serves since time 0."""
    supervisor = Supervisor(cluster, 1)
    supervisor.step(0)
    assert cluster.calls == [("start", 0, 1, 0)]
    assert supervisor.status()[0].state == "starting"
    cluster.answer(port)
    supervisor.step(0)
    status = supervisor.status()[0]
    assert (status.state, status.generation, status.address) == (
        "serving",
        1,
        f"tcp://10.0.0.1:{port}",
    )
    return supervisor


def test_agents_have_a_node_each_and_are_contacted() -> None:
    cluster = FakeCluster("a", "b", "c")
    supervisor = Supervisor(cluster, 2)
    supervisor.step(0)
    assert cluster.placed == ["a", "b"]
    cluster.answers = {0: 7000, 1: 7001}
    supervisor.step(1)
    assert [it.address for it in supervisor.status()] == [
        "tcp://10.0.0.1:7000",
        "tcp://10.0.0.2:7001",
    ]
    supervisor.step(1 + CONTACT_SECONDS)
    assert cluster.calls[2:] == [("contact", 0, 1), ("contact", 1, 1)]
    assert sorted(supervisor.stop()) == [0, 1]


def test_an_agent_that_ended_starts_again_under_a_new_generation_at_its_port() -> None:
    cluster = FakeCluster("a", "b")
    supervisor = serving(cluster)
    supervisor.step(CONTACT_SECONDS)
    cluster.answer(Contact(False, -9))
    supervisor.step(2)
    assert cluster.calls[-1] == ("start", 0, 2, 7000), "the same owner"
    status = supervisor.status()[0]
    assert (status.state, status.error) == ("starting", "the agent ended with -9")
    cluster.answer(7000)
    supervisor.step(2)
    supervisor.step(2 + CONTACT_SECONDS)
    cluster.answer(Contact(True))
    supervisor.step(4)
    assert supervisor.status()[0].error is None


def test_a_lost_owner_is_replaced_on_its_node_or_on_another() -> None:
    cluster = FakeCluster("a", "b")
    supervisor = serving(cluster)
    supervisor.step(CONTACT_SECONDS)
    cluster.answer(OwnerLostError("died"))
    supervisor.step(2)
    assert (cluster.placed, cluster.calls[-1]) == (["a", "a"], ("start", 1, 2, 7000))
    cluster.answer(OwnerLostError("died"))
    del cluster.up[0]
    supervisor.step(3)
    supervisor.step(4)
    assert (cluster.placed, cluster.calls[-1]) == (["a", "a", "b"], ("start", 2, 3, 0))
    cluster.answer(7003)
    supervisor.step(5)
    assert supervisor.status()[0].address == "tcp://10.0.0.1:7003".replace("0.1:", "0.2:")
    assert cluster.released == [0, 1]


def test_a_silent_owner_is_declared_lost_and_its_late_answers_are_ignored() -> None:
    cluster = FakeCluster("a", "b")
    supervisor = serving(cluster)
    supervisor.step(CONTACT_SECONDS)
    late = len(cluster.calls) - 1
    now = CONTACT_SECONDS + SILENCE_SECONDS_MAX
    supervisor.step(now)
    assert cluster.released == []
    supervisor.step(now + 0.1)
    assert cluster.released == [0]
    cluster.answers[late] = Contact(True)
    supervisor.step(now + 0.2)
    assert supervisor.status()[0].state == "starting"
    assert supervisor.status()[0].generation == 2
    assert cluster.placed == ["a", "b"], "not on the node that does not answer"


def test_an_owner_that_never_starts_is_declared_lost() -> None:
    cluster = FakeCluster("a")
    supervisor = Supervisor(cluster, 1)
    supervisor.step(0)
    supervisor.step(START_SECONDS_MAX + 1)
    assert cluster.released == [0] and cluster.placed == ["a", "a"]


def test_failures_are_tried_later_and_then_on_another_node() -> None:
    cluster = FakeCluster("a", "b")
    supervisor = Supervisor(cluster, 1)
    times = []
    now = 0.0
    while len(times) < FAILURES_MAX:
        before = len(cluster.calls)
        supervisor.step(now)
        if len(cluster.calls) > before:
            times.append(now)
            cluster.answer(AgentFailedError("no root"))
        now += 0.25
    assert [later - earlier for earlier, later in zip(times, times[1:])] == [0.25, 1.25]
    supervisor.step(now)
    status = supervisor.status()[0]
    assert (status.state, status.error) == ("failed", "no root")
    supervisor.step(now + 60)
    assert cluster.placed == ["a", "b"] and cluster.released == [0]


def test_an_agent_without_a_free_node_waits_for_one() -> None:
    cluster = FakeCluster("a")
    supervisor = Supervisor(cluster, 2)
    supervisor.step(0)
    assert [it.state for it in supervisor.status()] == ["starting", "waiting"]
    assert supervisor.status()[1].address is None
    cluster.up.append(Node("b", "10.0.0.2", {}, {}))
    supervisor.step(CONTACT_SECONDS)
    assert cluster.placed == ["a", "b"]


# Arguments.


@pytest.mark.parametrize(
    ("label", "wanted"),
    [
        (None, {}),
        ("storage=nvme", {"storage": "nvme"}),
        ("storage=in(nvme, ssd),zone=!b", {"storage": "in(nvme, ssd)", "zone": "!b"}),
        ({"ray.io/node-group": "data"}, {"ray.io/node-group": "data"}),
    ],
)
def test_labels_are_selectors_of_ray(label: Any, wanted: Dict[str, str]) -> None:
    assert selector(label) == wanted


@pytest.mark.parametrize("label", ["storage", "=a", "a=", "a=b,", "a=in()", {"a": 1}, 3])
def test_invalid_labels_are_refused(label: Any) -> None:
    with pytest.raises(meetpoint.SettingError) as raised:
        selector(label)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("nvme", [True, False, False]),
        ("!nvme", [False, True, True]),
        ("in(nvme, ssd)", [True, True, False]),
        ("!in(nvme, ssd)", [False, False, True]),
    ],
)
def test_nodes_are_selected_by_the_rules_of_ray(value: str, fits: List[bool]) -> None:
    nodes: List[Dict[str, str]] = [{"storage": "nvme"}, {"storage": "ssd"}, {}]
    assert [has_labels(labels, {"storage": value}) for labels in nodes] == fits


def test_nodes_that_are_dead_or_lack_resources_do_not_fit() -> None:
    table = [
        {
            "NodeID": name,
            "NodeManagerAddress": address,
            "Alive": alive,
            "Resources": resources,
            "Labels": {"storage": "nvme"},
        }
        for name, address, alive, resources in (
            ("b", "10.0.0.2", True, {"CPU": 2.0, "nvme": 1.0}),
            ("a", "10.0.0.1", True, {"CPU": 2.0, "nvme": 1.0}),
            ("dead", "10.0.0.3", False, {"CPU": 2.0, "nvme": 1.0}),
            ("small", "10.0.0.4", True, {"CPU": 2.0}),
        )
    ]
    found = fitting(table, {"storage": "nvme"}, {"CPU": 1, "nvme": 0.5})
    assert [node.id for node in found] == ["a", "b"]
    assert fitting(table, {"storage": "ssd"}) == []


def test_roots_are_named_absolute_folders() -> None:
    assert roots_by_name("/data/a.set") == {"root-0": "/data/a.set"}
    assert roots_by_name([Path("/a"), "/b"]) == {"root-0": "/a", "root-1": "/b"}
    assert roots_by_name({"photos": "/a"}) == {"photos": "/a"}
    for roots in ("a.set", [], {}, {"a=b": "/a"}, {"": "/a"}, {"a": 3}):
        with pytest.raises(meetpoint.SettingError) as raised:
            roots_by_name(roots)
        assert raised.value.remedy


def test_invalid_arguments_are_refused_before_ray_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ray:
        """Refuses everything."""

    monkeypatch.setitem(sys.modules, "ray", Ray)  # type: ignore[arg-type]
    for named in (
        {"roots": "a"},
        {"roots": "/a", "label": "storage"},
        {"roots": "/a", "count": 0},
        {"roots": "/a", "num_cpus": -1},
        {"roots": "/a", "drain_timeout": -1},
        {"roots": "/a", "threads": 0},
        {"roots": "/a", "hosts": 65},
        {"roots": "/a", "server_name": "a"},
        {"roots": "/a", "timeout": "long"},
    ):
        with pytest.raises(meetpoint.SettingError):
            meetpoint.ray.agents(**named)
    for named in ({"count": 0}, {"label": "a"}, {"count": 2, "csv": "/a.csv"}):
        with pytest.raises(meetpoint.SettingError):
            meetpoint.ray.profile(RECIPE, "/a.set", **named)


def test_agents_of_a_connection_that_ended_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ray:
        """A Ray that is not connected."""

        @staticmethod
        def is_initialized() -> bool:
            return False

    monkeypatch.setitem(sys.modules, "ray", Ray)  # type: ignore[arg-type]
    agents = meetpoint.ray.Agents(None, None, "/keys", None, (1.0, 1.0))
    with pytest.raises(meetpoint.DeviceError) as raised:
        agents.status()
    assert raised.value.cause == "agents_lost"
    copy = pickle.loads(pickle.dumps(agents))
    with pytest.raises(meetpoint.SettingError):
        copy.shutdown()
    assert agents.shutdown() == []
    with pytest.raises(meetpoint.ClosedError):
        agents.devices
