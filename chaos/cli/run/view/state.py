"""What the live view shows: nodes, workloads, events, and what the keys have changed. Each update reads only news."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chaos.cli.run.lines import Line, ProgressState
from chaos.core.api_fact import PseudoFact
from chaos.core.fact import current_fact
from chaos.core.history import Entry
from chaos.core.kube import Node, Pod, Workload, node_condition
from chaos.core.recording import EntryKind
from chaos.core.text import printable
from chaos.core.timeline import Timeline

DELETED = "deleted"
_CORDON = "node.kubernetes.io/unschedulable"  # the taint of a cordon, which is shown as such
_PREFIX = "node.kubernetes.io/"
_LOCK_FACTS = ("inhibitor-kubelet", "inhibitor-holders")
_ENDED = ("Succeeded", "Failed")
_SINGULAR = {
    "deployments": "deployment",
    "statefulsets": "statefulset",
    "daemonsets": "daemonset",
    "replicasets": "replicaset",
}
WORKLOADS = frozenset(_SINGULAR)
_CHANGES = 400  # of the ready pods that a workload's sparkline knows
Key = tuple[str, str, str]
EVENTS = 1000  # lines that are kept to be printed at the end


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


@dataclass(slots=True)
class WorkloadRow:
    """A workload as last observed. ``changes``: from when on how many of its pods were ready."""

    kind: str
    namespace: str
    name: str
    ready: int = 0
    desired: int = 0
    is_own: bool = False
    changed: float | None = None
    changes: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_CHANGES))

    def samples(self, start: float, end: float, count: int) -> list[float | None]:
        """The least number of ready pods in each of ``count`` equal parts of the time; None before it is known."""
        step = (end - start) / count
        values: list[float | None] = []
        changes, place, value = list(self.changes), 0, None
        for index in range(count):
            least = value
            while place < len(changes) and changes[place][0] <= start + step * (index + 1):
                value = float(changes[place][1])
                is_before = changes[place][0] <= start + step * index
                least = value if least is None or is_before else min(least, value)
                place += 1
            values.append(least)
        return values


@dataclass
class WorkloadRows:
    """All workloads, kept up to date entry by entry. ``namespace``: that of the run's own."""

    namespace: str = ""
    _rows: dict[Key, WorkloadRow] = field(default_factory=dict)
    _affected: dict[Key, WorkloadRow] = field(default_factory=dict)

    def affected(self) -> list[WorkloadRow]:
        """Those that lack pods first, then the run's own, then by name."""
        return sorted(
            self._affected.values(), key=lambda row: (row.ready >= row.desired, not row.is_own, row.namespace, row.name)
        )

    def add(self, entry: Entry, after_fault: bool) -> None:
        """Take an entry of a workload. A ReplicaSet of a Deployment is not one by itself."""
        workload: Workload = entry.object
        if entry.kind == "replicasets" and workload.metadata.owner_references:
            return
        metadata = workload.metadata
        key = (entry.kind, metadata.namespace, metadata.name)
        if entry.type == "DELETED":
            self._rows.pop(key, None)
            self._affected.pop(key, None)
            return
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = WorkloadRow(_SINGULAR[entry.kind], metadata.namespace, metadata.name)
            row.is_own = bool(self.namespace) and metadata.namespace == self.namespace
            if row.is_own:
                self._affected[key] = row
        ready, desired = _counts(workload)
        if (ready, desired) == (row.ready, row.desired) and row.changes:
            return
        row.ready, row.desired = ready, desired
        row.changes.append((entry.t, ready))
        if after_fault:
            row.changed = entry.t
            self._affected[key] = row


def _counts(workload: Workload) -> tuple[int, int]:
    """Ready and desired pods. A DaemonSet's are in its status alone."""
    status = workload.status
    replicas = workload.spec.replicas if workload.spec else None
    if status is None:
        return 0, replicas or 0
    ready = status.number_ready if status.number_ready is not None else status.ready_replicas
    desired = status.desired_number_scheduled if status.desired_number_scheduled is not None else replicas
    return ready or 0, desired or 0


@dataclass
class ClusterState:
    """Nodes and workloads as last observed; ``experiment``: its name."""

    experiment: str = ""
    is_simulated: bool = False
    nodes: NodeRows = field(default_factory=NodeRows)
    workloads: WorkloadRows = field(default_factory=WorkloadRows)
    _read: int = 0  # entries of the timeline

    def update(self, timeline: Timeline) -> None:
        """Take the entries that are new. Call it from the thread that lets the timeline grow."""
        meta = timeline.meta
        if not self.experiment and meta:
            self.experiment = printable(str(meta.get("experiment", "")))
            self.is_simulated = bool(meta.get("simulated"))
            self.workloads.namespace = str(meta.get("workload", ""))
            self.nodes.mark_targets(meta.get("targets", {}))
        first_step = timeline.actions[0][0].seq if timeline.actions else len(timeline.entries)
        for entry in timeline.entries[self._read :]:
            if entry.kind == "pods":
                self.nodes.add_pod(entry)
            elif entry.kind == "nodes":
                self.nodes.add_node(entry, entry.seq > first_step)
            elif entry.kind in WORKLOADS:
                self.workloads.add(entry, entry.seq > first_step)
            elif entry.kind == EntryKind.HOST:
                self.nodes.add_fact(entry)
        self._read = len(timeline.entries)


@dataclass
class ViewState:
    """All that a frame shows.

    ``silent``: wall seconds since the run was last heard of, as while it waits for a host.
    """

    progress: ProgressState = field(default_factory=ProgressState)
    cluster: ClusterState = field(default_factory=ClusterState)
    events: deque[Line] = field(default_factory=lambda: deque(maxlen=EVENTS))
    has_keys: bool = False
    is_stopping: bool = False
    opens_report: bool = False
    silent: float = 0.0
    dropped: int = 0  # events that are no longer kept
    _frozen: tuple[Line, ...] | None = None  # the events when scrolling was paused
    _news: int = 0

    def add(self, lines: Sequence[Line]) -> None:
        self.dropped += max(0, len(self.events) + len(lines) - EVENTS)
        self.events.extend(lines)
        self._news += len(lines)

    def toggle_pause(self) -> None:
        """Let the events stand still, or continue with the last ones."""
        self._frozen = tuple(self.events) if self._frozen is None else None
        self._news = 0

    @property
    def is_paused(self) -> bool:
        return self._frozen is not None

    @property
    def news(self) -> int:
        """Events that came while scrolling was paused."""
        return self._news if self.is_paused else 0

    def last_events(self, count: int) -> list[Line]:
        """The last events that are shown, oldest first."""
        shown = self.events if self._frozen is None else self._frozen
        return list(shown)[-count:] if count > 0 else []
