"""ReplicaSet controller: replaces terminating and terminal pods, but not unready ones. Facts 5.7."""

from __future__ import annotations

from dataclasses import replace

from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.owner_index import OwnerIndex
from chaos.lab.controllers.workload import WorkloadController
from chaos.lab.objects.accessors import Object, is_active, is_deleting, is_ready, is_terminal, node_of, uid_of
from chaos.lab.sim.clock import SimClock


class ReplicaSets(WorkloadController):
    plural, kind, owned, component = "replicasets", "ReplicaSet", "pods", "replicaset-controller"

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        super().__init__(sim, registry)
        self._owner_index = OwnerIndex(self.kind)

    def _on_owned_change(self, change: Change) -> None:
        super()._on_owned_change(change)
        self._owner_index.on_change(change)

    def sync(self, owner: Object) -> None:
        counts = replace(self._owner_index.of(uid_of(owner)))
        available = counts.ready
        if owner["spec"].get("minReadySeconds") or self._has_counting_breakage():
            active = self._active_pods(owner)
            counts.active, counts.ready = len(active), sum(map(is_ready, active))
            available = sum(self._is_available(owner, pod) for pod in active)
        self._scale(owner, owner["spec"]["replicas"] - counts.active)
        status = {"replicas": counts.active}
        if self._registry.spec.has_feature("terminating-replicas"):
            status["terminatingReplicas"] = counts.terminating
        optional = {
            "fullyLabeledReplicas": counts.active,
            "readyReplicas": counts.ready,
            "availableReplicas": available,
        }
        self._write_status(owner, status | {key: value for key, value in optional.items() if value})

    def _scale(self, owner: Object, missing: int) -> None:
        new = self._new_pod(owner, {}) if missing > 0 else {}
        for _ in range(missing):
            self._create_pod(owner, new)
        if missing < 0:
            for pod in sorted(self._active_pods(owner), key=deletion_rank)[:-missing]:
                self._delete_pod(owner, pod)

    def _has_counting_breakage(self) -> bool:
        return any(
            map(self._registry.spec.has_breakage, ("replicaset-waits-for-removal", "replicaset-replaces-unready"))
        )

    def _active_pods(self, owner: Object) -> list[Object]:
        waits = self._registry.spec.has_breakage("replicaset-waits-for-removal")
        replaces = self._registry.spec.has_breakage("replicaset-replaces-unready")
        if waits or replaces:
            return [pod for pod in self._list_owned(owner) if _is_counted(pod, waits, replaces)]
        return [pod for pod in self._list_owned(owner) if is_active(pod)]


def _is_counted(pod: Object, waits_for_removal: bool, replaces_unready: bool) -> bool:
    if waits_for_removal and is_deleting(pod):
        return not is_terminal(pod)
    unready = replaces_unready and pod["status"]["phase"] == "Running" and not is_ready(pod)
    return is_active(pod) and not unready


def deletion_rank(pod: Object) -> tuple[bool, bool, str]:
    """Order of deletion: unbound before bound, unready before ready, then the youngest. ActivePodsWithRanks."""
    age = "".join(chr(255 - ord(char)) for char in pod["metadata"]["creationTimestamp"])
    return bool(node_of(pod)), is_ready(pod), age
