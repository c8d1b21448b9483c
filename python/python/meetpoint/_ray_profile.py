"""Profiles of a recipe on the nodes of a Ray cluster: see :func:`meetpoint.ray.profile`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Union

from . import _plan
from ._arguments import compose, whole, whole_or_none
from ._arguments import path as given_path
from ._plan import Profile
from ._ray_import import imported, plain
from ._ray_nodes import Label, Node, fitting, selector
from .errors import SettingError

_NODES_MAX = 2**16


@dataclass(frozen=True)
class NodeProfile:
    """The profile that a node measured."""

    node: str
    """Id of the Ray node."""
    address: str
    """Its IP address."""
    profile: Profile


def _measure(recipe: str, dataset: str, options: Dict[str, Any]) -> Profile:
    """Measures on this node, as a task."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "recipe.toml")
        with open(file, "w", encoding="utf-8") as written:
            written.write(recipe)
        return _plan.profile(file, dataset, **options)


def profile(
    recipe: Any,
    dataset: Union[str, "os.PathLike[str]"],
    *,
    label: Label = None,
    resources: Optional[Dict[str, float]] = None,
    count: Optional[int] = 1,
    **options: Any,
) -> List[NodeProfile]:
    """Measures a recipe as :func:`meetpoint.profile` does, on nodes of the cluster.

    Each node measures all strategies itself, because times of different machines cannot be
    compared. A measurement uses all CPUs of its node, so it starts when no other task runs there.
    Nodes measure one after another, because they may share storage.

    :param label: labels of the nodes (``ray start --labels``), as for :func:`agents`.
    :param resources: custom resources of the nodes.
    :param count: number of nodes to measure; ``None`` for all that have the label.
    :param options: options of :func:`meetpoint.profile`. ``threads`` is by default the number of
        CPUs of the node. Files, such as ``csv``, are written by the node.
    :raises SettingError: there are too few nodes, several nodes would write the same file, or for
        the reasons of :func:`meetpoint.profile`.
    """
    ray = imported("ray")
    wanted = selector(label)
    number = whole_or_none("count", count, _NODES_MAX, least=1)
    for name in ("csv", "plot"):
        if number != 1 and options.get(name) is not None:
            raise SettingError(
                f"{name} is set, but several nodes would write that file", remedy="set count to 1"
            )
    text, of = compose(recipe).to_toml(), os.path.abspath(given_path("dataset", dataset))
    if not ray.is_initialized():
        ray.init()
    nodes = fitting(ray.nodes(), wanted, {**(resources or {}), "CPU": 1})
    if len(nodes) < (number or 1):
        raise SettingError(
            f"{len(nodes)} live nodes have label={label!r}, resources={resources!r} and a CPU",
            remedy="set a lower count, or start nodes with `ray start --labels`",
        )
    return [_on(ray, node, (text, of), resources, options) for node in nodes[:number]]


def _on(
    ray: Any,
    node: Node,
    of: "tuple[str, str]",
    resources: Optional[Dict[str, float]],
    options: Dict[str, Any],
) -> NodeProfile:
    strategies = imported("ray.util.scheduling_strategies")
    cpus = whole("CPU", int(node.resources["CPU"]))
    task = ray.remote(_measure).options(
        num_cpus=cpus,
        resources=resources,
        scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(node.id, soft=False),
    )
    found: Profile = plain(ray, task.remote(*of, {"threads": (cpus,), **options}))
    return NodeProfile(node.id, node.address, found)
