"""Decides which node runs which agent, and when one is started again; imports no Ray.

Each agent has a generation, which increases whenever it is started. Answers of earlier generations
are ignored, so an owner that was declared lost but still answers has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Protocol

from ._agent_process import Contact, address_of
from ._ray_nodes import Node

CONTACT_SECONDS = 1.0
"""Time between two contacts with an owner."""
START_SECONDS_MAX = 90.0
"""Longest time from the request for an owner until its agent serves."""
SILENCE_SECONDS_MAX = 20.0
"""Longest time that an owner may take to answer a contact."""
FAILURES_MAX = 3
"""Consecutive failures after which waiting for the agent ends with its error; starts continue."""
_RETRY_SECONDS_MAX = 30.0


class OwnerLostError(Exception):
    """The process or the node of an owner died."""


class AgentFailedError(Exception):
    """The owner answered with an error."""


class Cluster(Protocol):
    """The operations of a cluster that the supervisor uses. They do not block."""

    def nodes(self) -> List[Node]:
        """The live nodes that may run agents."""
        ...

    def place(self, node: Node) -> Any:
        """Requests an owner on a node."""
        ...

    def start(self, owner: Any, generation: int, node: Node, port: int) -> Any:
        """Starts an agent; the result of the call is its port."""
        ...

    def contact(self, owner: Any, generation: int) -> Any:
        """Contacts an owner; the result of the call is a :class:`Contact`."""
        ...

    def stop(self, owner: Any, generation: int) -> Any:
        """Drains and ends an agent; the result of the call is its summary or ``None``."""
        ...

    def result(self, call: Any) -> "Optional[List[Any]]":
        """The result of a call in a list; ``None`` while it runs.

        :raises OwnerLostError: the owner died.
        :raises AgentFailedError: the owner raised an error.
        """
        ...

    def release(self, owner: Any) -> None:
        """Kills an owner and, with it, its agent."""
        ...


@dataclass(frozen=True)
class AgentStatus:
    """An agent of a cluster."""

    index: int
    state: str
    """``"serving"``; ``"starting"``, for the first time or again; ``"waiting"`` for a node; or
    ``"failed"`` several times in a row, and retried."""
    generation: int
    """Number of starts."""
    address: Optional[str]
    """``tcp://HOST:PORT`` where it serves, or last served."""
    node: Optional[str]
    """Id of the Ray node."""
    error: Optional[str]
    """Why it last failed."""


@dataclass
class _Slot:
    """One agent and its owner."""

    index: int
    generation: int = 0
    node: Optional[Node] = None
    owner: Any = None
    call: Any = None
    is_start: bool = False
    since: float = 0.0
    """Time of the call, or of the last answer."""
    port: int = 0
    is_serving: bool = False
    is_waiting: bool = False
    """No node was free at the last attempt to start."""
    avoids_node: bool = False
    """Its node did not answer, so another one is preferred."""
    failures: int = 0
    error: Optional[str] = None
    retry_at: float = 0.0

    def state(self) -> str:
        if self.is_serving:
            return "serving"
        if self.failures >= FAILURES_MAX:
            return "failed"
        return "waiting" if self.is_waiting else "starting"


@dataclass
class Supervisor:
    """Supervises a number of agents, each on a different node."""

    cluster: Cluster
    count: int
    _slots: List[_Slot] = field(init=False)

    def __post_init__(self) -> None:
        self._slots = [_Slot(index) for index in range(self.count)]

    def step(self, now: float) -> None:
        """Processes the answers that arrived, and makes the calls that are due."""
        for slot in self._slots:
            if slot.call is not None:
                self._answer(slot, now)
            if slot.call is None and now >= slot.retry_at:
                self._call(slot, now)

    def status(self) -> List[AgentStatus]:
        """The agents, by index."""
        return [
            AgentStatus(
                it.index,
                it.state(),
                it.generation,
                address_of(it.node.address, it.port) if it.node and it.port else None,
                it.node.id if it.node else None,
                it.error,
            )
            for it in self._slots
        ]

    def stop(self) -> Dict[int, Any]:
        """Drains and ends every agent; returns the calls by index. Do not step afterwards."""
        return {
            it.index: self.cluster.stop(it.owner, it.generation)
            for it in self._slots
            if it.owner is not None
        }

    def release(self) -> None:
        """Kills all owners."""
        for slot in self._slots:
            if slot.owner is not None:
                self.cluster.release(slot.owner)
                slot.owner = None

    def _answer(self, slot: _Slot, now: float) -> None:
        try:
            result = self.cluster.result(slot.call)
        except OwnerLostError as error:
            self._lose(slot, str(error), now)
            return
        except AgentFailedError as error:
            slot.call = None
            self._fail(slot, str(error), now)
            return
        if result is None:
            limit = START_SECONDS_MAX if slot.is_start else SILENCE_SECONDS_MAX
            if now - slot.since > limit:
                slot.avoids_node = True
                self._lose(slot, f"its owner did not answer for {limit:.0f} s", now)
            return
        slot.call = None
        slot.since = now
        if slot.is_start:
            slot.port, slot.is_serving = int(result[0]), True
            return
        contact: Contact = result[0]
        if contact.is_serving:
            slot.failures, slot.error, slot.avoids_node = 0, None, False
        else:
            ended = "ended" if contact.exit_code is None else f"ended with {contact.exit_code}"
            self._fail(slot, f"the agent {ended}", now)

    def _call(self, slot: _Slot, now: float) -> None:
        if slot.is_serving:
            if now - slot.since >= CONTACT_SECONDS:
                slot.call = self.cluster.contact(slot.owner, slot.generation)
                slot.since, slot.is_start = now, False
            return
        if slot.owner is None:
            slot.node = self._node_for(slot)
            slot.is_waiting = slot.node is None
            if slot.node is None:
                slot.retry_at = now + CONTACT_SECONDS
                return
            slot.owner = self.cluster.place(slot.node)
        assert slot.node is not None
        slot.generation += 1
        slot.call = self.cluster.start(slot.owner, slot.generation, slot.node, slot.port)
        slot.since, slot.is_start = now, True

    def _node_for(self, slot: _Slot) -> Optional[Node]:
        """The previous node, so that the address is unchanged; otherwise one without an agent.

        After silence or several failures on the previous node, another one is preferred.
        """
        used = {it.node.id for it in self._slots if it.node and it is not slot}
        free = [node for node in self.cluster.nodes() if node.id not in used]
        same = [node for node in free if slot.node and node.id == slot.node.id]
        others = [node for node in free if node not in same]
        is_unfit = slot.avoids_node or slot.failures >= FAILURES_MAX
        node = next(iter([*others, *same] if is_unfit else [*same, *others]), None)
        if node not in same:
            slot.port = 0
        return node

    def _lose(self, slot: _Slot, error: str, now: float) -> None:
        """Declares an owner lost. If it still runs, its answers are ignored."""
        self.cluster.release(slot.owner)
        slot.owner = slot.call = None
        self._fail(slot, error, now)

    def _fail(self, slot: _Slot, error: str, now: float) -> None:
        slot.is_serving = False
        slot.error = error
        # The first restart is immediate.
        wait = 0.0 if slot.failures == 0 else 0.5 * 2.0 ** min(slot.failures, 10)
        slot.retry_at = now + min(wait, _RETRY_SECONDS_MAX)
        slot.failures += 1
        if slot.owner is not None and slot.failures % FAILURES_MAX == 0:
            self.cluster.release(slot.owner)
            slot.owner = None
