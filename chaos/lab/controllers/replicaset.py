"""ReplicaSets: a replacement as soon as a pod is terminating or terminal, not when it turns unready. Facts 5.7."""

from __future__ import annotations

from chaos.lab.controllers.workload import WorkloadController
from chaos.lab.objects import Object, is_active, is_deleting, is_ready, is_terminal, is_terminating, node_of


class ReplicaSets(WorkloadController):
    plural, kind, owned, component = "replicasets", "ReplicaSet", "pods", "replicaset-controller"

    def sync(self, owner: Object) -> None:
        pods = self._owned(owner)
        waits = self._registry.spec.broken("replicaset-waits-for-removal")
        replaces = self._registry.spec.broken("replicaset-replaces-unready")
        active = [pod for pod in pods if is_active(pod)]
        if waits or replaces:
            active = [pod for pod in pods if _counts(pod, waits, replaces)]
        missing = owner["spec"]["replicas"] - len(active)
        new = self._new_pod(owner, {}) if missing > 0 else {}
        for _ in range(missing):
            self._create_pod(owner, new)
        for pod in sorted(active, key=deletion_rank)[:-missing] if missing < 0 else []:
            self._delete_pod(owner, pod)
        ready = sum(is_ready(pod) for pod in active)
        terminating = sum(map(is_terminating, pods))
        status = {"replicas": len(active), "terminatingReplicas": terminating}
        if active:
            status["fullyLabeledReplicas"] = len(active)
        available = sum(self._is_available(owner, pod) for pod in active)
        optional = {"readyReplicas": ready, "availableReplicas": available}
        status |= {key: value for key, value in optional.items() if value}
        self._write_status(owner, status)


def _counts(pod: Object, waits_for_removal: bool, replaces_unready: bool) -> bool:
    if waits_for_removal and is_deleting(pod):
        return not is_terminal(pod)
    unready = replaces_unready and pod["status"]["phase"] == "Running" and not is_ready(pod)
    return is_active(pod) and not unready


def deletion_rank(pod: Object) -> tuple[bool, bool, str]:
    """Unbound before bound, unready before ready, then the youngest. controller_utils.go ActivePodsWithRanks."""
    age = "".join(chr(255 - ord(char)) for char in pod["metadata"]["creationTimestamp"])
    return bool(node_of(pod)), is_ready(pod), age
