"""Nodes of a live run that are targets or have changed since the first step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from chaos.core.api_fact import PseudoFact
from chaos.core.fact import current_fact
from chaos.core.history import Entry
from chaos.core.kube import Node, Pod, node_condition

DELETED = "deleted"
_CORDON = "node.kubernetes.io/unschedulable"  # the taint of a cordon, which is shown as such
_PREFIX = "node.kubernetes.io/"
_LOCK_FACTS = ("inhibitor-kubelet", "inhibitor-holders")
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class NodeRow:
    """A node as last observed. ``changed``: when it last changed after the first step.

    ``ready``: the status of the condition, ``deleted``, or "" before it is seen, in this state since ``since``.
    ``holds_lock``: whether the kubelet delays a shutdown; None if that is not observed. ``power``: on, off or "".
    ``pods``: those on it that have not ended.
    """

    name: str
    ready: str = ""
    since: float | None = None
    taints: tuple[str, ...] = ()
    is_cordoned: bool = False
    holds_lock: bool | None = None
    power: str = ""
    pods: int = 0
    is_target: bool = False
    changed: float | None = None


@dataclass
class NodeRows:
    """All nodes, kept up to date entry by entry; times in seconds since the epoch."""

    count: int = 0
    ready: int = 0
    _rows: dict[str, NodeRow] = field(default_factory=dict)
    _affected: dict[str, NodeRow] = field(default_factory=dict)
    _pods: dict[str, str] = field(default_factory=dict)  # the node of each pod that has not ended, by uid

    def mark_targets(self, names: Iterable[str]) -> None:
        for name in names:
            row = self._affected[name] = self._row(name)
            row.is_target = True

    def affected(self) -> list[NodeRow]:
        """The targets by name, then the other nodes that have changed, the last change first."""
        return sorted(self._affected.values(), key=lambda row: (not row.is_target, -(row.changed or 0.0), row.name))

    def add_node(self, entry: Entry, after_fault: bool) -> None:
        """Take an entry of a Node; ``after_fault``: it is about the time after the first step."""
        node: Node = entry.object
        row = self._row(node.metadata.name)
        before = (row.ready, row.taints, row.is_cordoned)
        ready = DELETED if entry.type == "DELETED" else _ready(node)
        spec = node.spec
        row.is_cordoned = bool(spec and spec.unschedulable)
        row.taints = tuple(
            f"{taint.key.removeprefix(_PREFIX)}:{taint.effect}"
            for taint in (spec and spec.taints) or ()
            if not (row.is_cordoned and taint.key == _CORDON)
        )
        if ready != row.ready:
            self._count(row.ready, -1)
            self._count(ready, 1)
            row.since = entry.t if row.ready else None
            row.ready = ready
        if after_fault and before != (row.ready, row.taints, row.is_cordoned):
            row.changed = entry.t
            self._affected[row.name] = row

    def add_pod(self, entry: Entry) -> None:
        """Take an entry of a Pod."""
        pod: Pod = entry.object
        is_over = entry.type == "DELETED" or bool(pod.status and pod.status.phase in _ENDED)
        node = "" if is_over or not pod.spec else pod.spec.node_name or ""
        before = self._pods.get(pod.metadata.uid, "")
        if node == before:
            return
        if before:
            self._row(before).pods -= 1
            del self._pods[pod.metadata.uid]
        if node:
            self._row(node).pods += 1
            self._pods[pod.metadata.uid] = node

    def add_fact(self, entry: Entry) -> None:
        """Take a fact of a host: its power state, or who holds a delay lock there."""
        fact = current_fact(entry.type)
        if fact == PseudoFact.MACHINE:
            self._row(entry.node).power = str(entry.object)
        elif fact in _LOCK_FACTS:
            value = entry.object
            self._row(entry.node).holds_lock = "kubelet" in value if isinstance(value, list) else bool(value)

    def _count(self, ready: str, change: int) -> None:
        self.count += change * (ready not in ("", DELETED))
        self.ready += change * (ready == "True")

    def _row(self, name: str) -> NodeRow:
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = NodeRow(name)
        return row


def _ready(node: Node) -> str:
    condition = node_condition(node, "Ready")
    return condition.status if condition else "Unknown"
