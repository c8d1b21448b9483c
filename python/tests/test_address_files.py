"""Files with the addresses of agents, which follow agents that move, without Ray."""

from __future__ import annotations

import errno
import gc
import pickle
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from test_agents import FakeCluster, serving, wait_until

from meetpoint import _address_files, _ray_agents
from meetpoint._address_files import AddressFiles
from meetpoint._ray_agents import Agents
from meetpoint._ray_nodes import Node
from meetpoint._ray_supervisor import CONTACT_SECONDS, OwnerLostError, Supervisor


def address_in(device: str) -> str:
    assert device.startswith("file:/")
    return Path(device[len("file:") :]).read_text().rstrip("\n")


def test_a_reader_gets_the_whole_old_address_or_the_whole_new_one() -> None:
    files = AddressFiles()
    old, new = "tcp://a:1", f"tcp://{'b' * 200}:2"
    files.update({0: old, 3: new})
    device = files.device(0)
    done = threading.Event()

    def write() -> None:
        for _ in range(200):
            files.update({0: new})
            files.update({0: old})
        done.set()

    threading.Thread(target=write).start()
    while not done.is_set():
        assert address_in(device) in (old, new)
    files.update({3: old})
    assert [address_in(files.device(index)) for index in (0, 3)] == [old, old]
    assert files.device(0) == device, "the path is the same"


class Manager:
    """The manager of agents, whose only method is ``status``."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.asked = 0
        self.is_lost = False

    @property
    def status(self) -> Manager:
        return self

    def remote(self) -> Answer:
        if self.is_lost:
            raise RuntimeError("a lost manager")
        self.asked += 1
        return Answer((self.supervisor.status(), None))


class Answer:
    """A reference to the result of a call."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def future(self) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self.result)
        return future


class Ray:
    """The functions of Ray that read the status."""

    is_up = True

    class exceptions:  # noqa: N801
        RayError = OSError

    @classmethod
    def is_initialized(cls) -> bool:
        return cls.is_up

    @classmethod
    def get(cls, answer: Answer, timeout: float) -> Any:
        assert cls.is_up, "ray.get would connect again"
        return answer.result


@pytest.fixture(autouse=True)
def ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", Ray)  # type: ignore[arg-type]
    monkeypatch.setattr(Ray, "is_up", True)
    monkeypatch.setattr(_ray_agents, "_FOLLOW_SECONDS", 0.01)


def agents_of(manager: Manager) -> Agents:
    return Agents(manager, None, "/keys", None, (1.0, 1.0))


def _too_many_files(content: bytes) -> Any:
    raise OSError(errno.EMFILE, "too many open files")


def has_ended(thread: Any) -> bool:
    return not thread.is_alive()


def test_the_file_of_an_agent_follows_it_to_another_node(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster("a")
    manager = Manager(serving(cluster))
    supervisor = manager.supervisor
    agents = agents_of(manager)
    (device,) = agents.devices
    assert (address_in(device.address), device.keys) == ("tcp://10.0.0.1:7000", "/keys")
    assert pickle.loads(pickle.dumps(agents)).devices == [device], "one file for all copies"

    # Its node dies, and no other is free.
    supervisor.step(CONTACT_SECONDS)
    cluster.answer(OwnerLostError("died"))
    cluster.up = []
    supervisor.step(2)
    assert (supervisor.status()[0].state, supervisor.status()[0].address) == ("waiting", None)
    before = manager.asked
    wait_until(lambda: manager.asked > before + 1)
    assert address_in(device.address) == "tcp://10.0.0.1:7000", "it keeps its last address"

    # Neither a status that fails nor a file that cannot be made ends the updates.
    manager.is_lost = True
    cluster.up = [Node("b", "10.0.0.2", {}, {})]
    supervisor.step(2 + CONTACT_SECONDS)
    cluster.answer(7005)
    supervisor.step(2 + CONTACT_SECONDS)
    assert address_in(device.address) == "tcp://10.0.0.1:7000"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "ray", None)  # type: ignore[arg-type]
        assert agents._current_addresses() == {}
        patch.undo()
        patch.setattr(_address_files, "in_memory", _too_many_files)
        manager.is_lost = False
        before = manager.asked
        wait_until(lambda: manager.asked > before + 1)
        assert address_in(device.address) == "tcp://10.0.0.1:7000"
    wait_until(lambda: address_in(device.address) == "tcp://10.0.0.2:7005")
    assert agents.devices == [device]


def test_files_are_updated_until_ray_is_shut_down_or_the_agents_are_garbage() -> None:
    for end in ("shut down", "garbage"):
        manager = Manager(serving(FakeCluster("a")))
        agents = agents_of(manager)
        (device,) = agents.devices
        thread = agents._follower
        assert thread is not None and thread.daemon and thread.is_alive()
        assert agents.devices == [device] and agents._follower is thread
        if end == "shut down":
            Ray.is_up = False
            wait_until(lambda: has_ended(thread))
            Ray.is_up = True
            assert agents.devices == [device] and agents._follower is not thread
            thread = agents._follower
        # The thread has used the object, and is in its pause or about to use it again.
        before = manager.asked
        wait_until(lambda: manager.asked > before)
        del agents
        gc.collect()
        wait_until(lambda: has_ended(thread))
        assert address_in(device.address) == "tcp://10.0.0.1:7000", "loaders still use it"
