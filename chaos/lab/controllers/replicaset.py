"""ReplicaSets: a replacement as soon as a pod is terminating or terminal, not when it turns unready. Facts 5.7."""

from __future__ import annotations

from chaos.lab.controllers.workload import WorkloadController
from chaos.lab.objects import Object, is_active, is_deleting, is_ready, is_terminal, is_terminating, node_of


class ReplicaSets(WorkloadController):
    plural, kind, owned, component = "replicasets", "ReplicaSet", "pods", "replicaset-controller"

    def sync(self, owner: Object) -> None:
        pods = self._owned(owner)
        active = [pod for pod in pods if self._counts(pod)]
        missing = owner["spec"]["replicas"] - len(active)
        for _ in range(missing):
            self._create_pod(owner, self._new_pod(owner, {}))
        for pod in sorted(active, key=deletion_rank)[:-missing] if missing < 0 else []:
            self._delete_pod(owner, pod)
        ready = sum(is_ready(pod) for pod in active)
        terminating = sum(map(is_terminating, pods))
        status = {"replicas": len(active), "terminatingReplicas": terminating}
        if active:
            status["fullyLabeledReplicas"] = len(active)
        if ready:
            status |= {"readyReplicas": ready, "availableReplicas": ready}
        self._write_status(owner, status)

    def _counts(self, pod: Object) -> bool:
        spec = self._registry.spec
        if is_deleting(pod) and spec.broken("replicaset-waits-for-removal"):
            return not is_terminal(pod)
        unready = pod["status"]["phase"] == "Running" and not is_ready(pod)
        return is_active(pod) and not (unready and spec.broken("replicaset-replaces-unready"))


def deletion_rank(pod: Object) -> tuple[bool, bool, str]:
    """Unbound before bound, unready before ready, then the youngest. controller_utils.go ActivePodsWithRanks."""
    age = "".join(chr(255 - ord(char)) for char in pod["metadata"]["creationTimestamp"])
    return bool(node_of(pod)), is_ready(pod), age
