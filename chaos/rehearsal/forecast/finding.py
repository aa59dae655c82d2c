"""One thing that went wrong in a run, under names that are the same in every run on a copy of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from chaos.core.kube import Metadata, Pod, controller_of
from chaos.core.timeline import Timeline

OWN = "workload"  # namespace of the workload that an experiment brings; its name has the run's ID
_PLURALS = {"ReplicaSet": "replicasets", "Job": "jobs"}


class Owners:
    """``KIND NAMESPACE/NAME`` of what controls a pod: of a Deployment, not of its ReplicaSet."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._own = str(timeline.meta.get("workload") or "")

    def of(self, pod: Pod) -> tuple[str, str]:
        """Kind and ``NAMESPACE/NAME``; of a pod without a controller, "Pod" and its name."""
        owner, namespace = controller_of(pod), pod.metadata.namespace
        if owner is None:
            return "Pod", self.name(namespace, pod.metadata.name)
        history = self._timeline.workloads.get((_PLURALS.get(owner.kind, ""), namespace, owner.name))
        above = _controller(history.last.object.metadata) if history else None
        kind, name = above or (owner.kind, owner.name)
        return kind, self.name(namespace, name)

    def name(self, namespace: str, name: str) -> str:
        """``NAMESPACE/NAME``."""
        return f"{OWN if namespace == self._own else namespace}/{name}"


def _controller(metadata: Metadata) -> tuple[str, str] | None:
    return next(((owner.kind, owner.name) for owner in metadata.owner_references or () if owner.controller), None)


Windows = Mapping[str, tuple[tuple[float, float], ...]]


class FindingKind(StrEnum):
    """In the order of reports."""

    NO_REPLICA_LEFT = "no-replica-left"
    SINGLE_REPLICA = "single-replica"
    POD_LOST = "pod-lost"
    NO_ROOM = "no-room"
    BUDGET_OVERDRAWN = "budget-overdrawn"
    STUCK_TERMINATING = "stuck-terminating"
    VOLUME_WAIT = "volume-wait"
    EVICTION_DELAYED = "eviction-delayed"


TITLES = {
    FindingKind.NO_REPLICA_LEFT: "All replicas lost at once",
    FindingKind.SINGLE_REPLICA: "Single replica lost",
    FindingKind.POD_LOST: "Pods that nothing replaces",
    FindingKind.NO_ROOM: "No room",
    FindingKind.BUDGET_OVERDRAWN: "Disruption budget overdrawn",
    FindingKind.STUCK_TERMINATING: "StatefulSet pods stuck Terminating",
    FindingKind.VOLUME_WAIT: "Waiting for a volume",
    FindingKind.EVICTION_DELAYED: "Evictions delayed or withheld",
}


class Finding(Struct, frozen=True):
    """``subject``: a workload, budget or node. ``seconds``: how long it lasted, or None for what has no length.

    ``count``: pods; of a budget, by how many it was overdrawn. ``lasts``: whether it was so at the end of the run.
    """

    kind: FindingKind
    subject: str
    count: int
    seconds: float | None
    lasts: bool
    detail: str


@dataclass
class Case:
    """A run. ``fault``: when its first step began, ``down``: when machines were off or unreachable, by node."""

    timeline: Timeline
    fault: float
    down: Windows

    @property
    def end(self) -> float:
        """The end of the observation."""
        return self.timeline.end

    @cached_property
    def owners(self) -> Owners:
        """Names of workloads."""
        return Owners(self.timeline)


def seconds_between(begin: float, end: float) -> float:
    """Rounded, so that it is the same in every process."""
    return round(end - begin, 3)
