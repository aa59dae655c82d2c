"""Workloads of a live run: those that it applied, and those whose ready pods have changed since the first step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from chaos.core.history import Entry
from chaos.core.kube import Workload

_SINGULAR = {
    "deployments": "deployment",
    "statefulsets": "statefulset",
    "daemonsets": "daemonset",
    "replicasets": "replicaset",
}
WORKLOADS = frozenset(_SINGULAR)
_CHANGES = 400  # of the ready pods that a workload's sparkline knows
Key = tuple[str, str, str]


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
