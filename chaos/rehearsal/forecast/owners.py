"""Names of workloads that are the same in every run: of what a person has created, without generated parts."""

from __future__ import annotations

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
