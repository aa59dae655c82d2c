"""ReplicaSet controller: replaces terminating and terminal pods, but not unready ones. Facts 5.7.

And the replica counts of a Deployment's ReplicaSets in a rolling update. pkg/controller/deployment/rolling.go and util.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor

from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.workload import OwnerIndex, WorkloadController
from chaos.lab.objects import Object, is_active, is_deleting, is_ready, is_terminal, name_of, node_of, uid_of
from chaos.lab.rules.control_plane import WorkloadRules
from chaos.lab.sim import SimClock


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
        if owner["spec"].get("minReadySeconds") or not self._counts_only_active():
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

    def _counts_only_active(self) -> bool:
        rules = self._registry.rules.workloads
        return rules.unready_replicas_count and not rules.terminating_replicas_count

    def _active_pods(self, owner: Object) -> list[Object]:
        if not self._counts_only_active():
            rules = self._registry.rules.workloads
            return [pod for pod in self._list_owned(owner) if _is_counted(pod, rules)]
        return [pod for pod in self._list_owned(owner) if is_active(pod)]


def _is_counted(pod: Object, rules: WorkloadRules) -> bool:
    if rules.terminating_replicas_count and is_deleting(pod):
        return not is_terminal(pod)
    unready = not rules.unready_replicas_count and pod["status"]["phase"] == "Running" and not is_ready(pod)
    return is_active(pod) and not unready


def deletion_rank(pod: Object) -> tuple[bool, bool, str]:
    """Order of deletion: unbound before bound, unready before ready, then the youngest. ActivePodsWithRanks."""
    age = "".join(chr(255 - ord(char)) for char in pod["metadata"]["creationTimestamp"])
    return bool(node_of(pod)), is_ready(pod), age


@dataclass(frozen=True, slots=True)
class Limits:
    """``surge``: allowed pods above ``replicas``; ``unavailable``: allowed available pods below ``replicas``."""

    replicas: int
    surge: int
    unavailable: int


def limits_of(deployment: Object) -> Limits:
    """Limits of a Deployment: maxSurge rounds up, maxUnavailable down; not both are 0. Recreate allows neither."""
    spec = deployment["spec"]
    replicas: int = spec["replicas"]
    rolling = (spec.get("strategy") or {}).get("rollingUpdate")
    if rolling is None:
        return Limits(replicas, 0, 0)
    surge = _amount(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = _amount(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    if surge == unavailable == 0:
        unavailable = 1
    return Limits(replicas, surge, min(unavailable, replicas))


def new_replicas(limits: Limits, new: int, total: int) -> int:
    """Replicas of the new set, which has ``new`` of the ``total`` of all sets. NewRSNewReplicas."""
    if new >= limits.replicas:
        return limits.replicas
    room = limits.replicas + limits.surge - total
    return new + max(0, min(room, limits.replicas - new))


def old_replicas(limits: Limits, new: Object, old: list[Object]) -> dict[str, int]:
    """Replicas of old sets to scale down, by name; unhealthy pods and oldest sets first. reconcileOldReplicaSets."""
    replicas_by_name = {name_of(item): int(item["spec"]["replicas"]) for item in old}
    minimum = limits.replicas - limits.unavailable
    total = new["spec"]["replicas"] + sum(replicas_by_name.values())
    room = total - minimum - (new["spec"]["replicas"] - _available_replicas(new))
    for item in old:
        unhealthy = min(replicas_by_name[name_of(item)] - _available_replicas(item), room)
        if unhealthy > 0:
            replicas_by_name[name_of(item)] -= unhealthy
            room -= unhealthy
    spare = min(sum(_available_replicas(item) for item in (new, *old)) - minimum, room)
    for item in old:
        down = min(replicas_by_name[name_of(item)], spare)
        if down > 0:
            replicas_by_name[name_of(item)] -= down
            spare -= down
    return replicas_by_name


def _available_replicas(item: Object) -> int:
    return int(item["status"].get("availableReplicas", 0))


def _amount(value: int | str, total: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * total / 100
    return ceil(exact) if up else floor(exact)
