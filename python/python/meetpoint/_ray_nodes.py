"""Nodes of a Ray cluster, and selecting them by labels and custom resources; imports no Ray."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

from ._arguments import text
from .errors import SettingError

Label = Union[str, Mapping[str, str], None]
"""Labels that a node must have: ``"storage=nvme,zone=a"``, or a mapping."""

# A value of Ray's label selectors: VALUE, !VALUE, in(VALUE, …) or !in(VALUE, …).
_VALUE = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_SELECTOR = re.compile(rf"(!?)(?:in\(({_VALUE}(?:, ?{_VALUE})*)\)|({_VALUE}))")


@dataclass(frozen=True)
class Node:
    """A live node."""

    id: str
    address: str
    """Its IP address."""
    labels: Mapping[str, str]
    resources: Mapping[str, float]


def selector(label: Label) -> Dict[str, str]:
    """A label selector in the form that Ray accepts.

    :raises SettingError: the label is invalid.
    """
    remedy = 'set label to "KEY=VALUE" or {"KEY": "VALUE"}; VALUE may be !A, in(A, B) or !in(A, B)'
    if label is None:
        return {}
    if isinstance(label, str):
        pairs = [part.partition("=") for part in re.split(r",(?![^(]*\))", text("label", label))]
        if not all(key.strip() and equals for key, equals, _ in pairs):
            raise SettingError(f"label is {label!r}", remedy=remedy)
        label = {key.strip(): value.strip() for key, _, value in pairs}
    if not isinstance(label, Mapping):
        raise SettingError(f"label is {label!r}", remedy=remedy)
    for key, value in label.items():
        if not (isinstance(key, str) and isinstance(value, str) and _SELECTOR.fullmatch(value)):
            raise SettingError(f"label has {key!r}: {value!r}", remedy=remedy)
    return dict(label)


def has_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a node has the labels of a selector, by Ray's rules."""
    for key, value in wanted.items():
        match = _SELECTOR.fullmatch(value)
        assert match is not None
        negated, several, one = match.groups()
        values = re.split(", ?", several) if several else [one]
        if (labels.get(key) in values) == bool(negated):
            return False
    return True


def fitting(
    table: Iterable[Mapping[str, Any]],
    wanted: Mapping[str, str],
    resources: Optional[Mapping[str, float]] = None,
) -> List[Node]:
    """The live nodes of ``ray.nodes()`` with these labels and resources, by address."""
    nodes: List[Node] = []
    for row in table:
        node = Node(
            str(row["NodeID"]),
            str(row["NodeManagerAddress"]),
            dict(row.get("Labels") or {}),
            dict(row.get("Resources") or {}),
        )
        has = all(node.resources.get(name, 0) >= it for name, it in (resources or {}).items())
        if row["Alive"] and has and has_labels(node.labels, wanted):
            nodes.append(node)
    return sorted(nodes, key=lambda node: (node.address, node.id))
