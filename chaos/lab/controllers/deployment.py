"""Deployments with one ReplicaSet: scaling and status. A changed template is refused by the registry."""

from __future__ import annotations

from typing import Any

from chaos.lab.controllers.workload import WorkloadController
from chaos.lab.objects import (
    Object,
    condition,
    name_of,
    namespace_of,
    owner_reference,
    template_hash,
)
from chaos.lab.registry import ForbiddenError
from chaos.lab.store import clone

_HASH = "pod-template-hash"
_COUNTS = ("replicas", "readyReplicas", "availableReplicas", "terminatingReplicas")


class Deployments(WorkloadController):
    plural, kind, owned, component = "deployments", "Deployment", "replicasets", "deployment-controller"

    def sync(self, owner: Object) -> None:
        sets = self._owned(owner)
        if not sets:
            try:
                sets = [self._create_set(owner)]
            except ForbiddenError:
                return  # the namespace is being terminated: the real controller gives up as well
        for item in sets:
            self._scale(owner, item)
        self._status(owner, sets)

    def _create_set(self, owner: Object) -> Object:
        digest = template_hash(owner["spec"]["template"])
        template: Object = clone(owner["spec"]["template"])
        labels = template["metadata"]["labels"]
        labels[_HASH] = digest
        selector: Object = clone(owner["spec"]["selector"])
        selector["matchLabels"][_HASH] = digest
        created = self._registry.create(
            "replicasets",
            {
                "metadata": {
                    "name": f"{name_of(owner)}-{digest}",
                    "namespace": namespace_of(owner),
                    "labels": dict(labels),
                    "annotations": {"deployment.kubernetes.io/revision": "1"},
                    "ownerReferences": [owner_reference("apps/v1", self.kind, owner)],
                },
                "spec": {"replicas": owner["spec"]["replicas"], "selector": selector, "template": template},
            },
        )
        text = f"Scaled up replica set {name_of(created)} from 0 to {owner['spec']['replicas']}"
        self._recorder.emit(self.kind, owner, "ScalingReplicaSet", text)
        return created

    def _scale(self, owner: Object, item: Object) -> None:
        old, wanted = item["spec"]["replicas"], owner["spec"]["replicas"]
        if old == wanted:
            return
        new: Object = clone(item)
        new["spec"]["replicas"] = wanted
        self._registry.update("replicasets", new)
        way = "up" if wanted > old else "down"
        text = f"Scaled {way} replica set {name_of(item)} from {old} to {wanted}"
        self._recorder.emit(self.kind, owner, "ScalingReplicaSet", text)

    def _status(self, owner: Object, sets: list[Object]) -> None:
        total = {key: sum(item["status"].get(key, 0) for item in sets) for key in _COUNTS}
        wanted = owner["spec"]["replicas"]
        status: dict[str, Any] = {key: value for key, value in total.items() if value}
        status["terminatingReplicas"] = total["terminatingReplicas"]
        if total["replicas"]:
            status["updatedReplicas"] = total["replicas"]
        if missing := max(0, wanted - total["availableReplicas"]):
            status["unavailableReplicas"] = missing
        available = total["availableReplicas"] >= wanted - max_unavailable(owner)
        complete = total["availableReplicas"] >= wanted
        name = name_of(sets[0])
        progressing = condition(owner, "Progressing")
        done = complete or (progressing is not None and progressing["reason"] == "NewReplicaSetAvailable")
        status["conditions"] = [
            self._condition(owner, "Available", available, *_AVAILABLE[available]),
            self._condition(
                owner,
                "Progressing",
                True,
                "NewReplicaSetAvailable",
                f'ReplicaSet "{name}" has successfully progressed.',
            )
            if done
            else self._condition(
                owner, "Progressing", True, "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
            ),
        ]
        self._write_status(owner, status)

    def _condition(self, owner: Object, type_: str, status: bool, reason: str, message: str) -> Object:
        value, now = str(status), self._sim.timestamp()
        old = condition(owner, type_)
        if old is not None and (old["status"], old["reason"]) == (value, reason):
            return old
        moved = old["lastTransitionTime"] if old is not None and old["status"] == value else now
        return {
            "type": type_, "status": value, "lastUpdateTime": now, "lastTransitionTime": moved,
            "reason": reason, "message": message,
        }  # fmt: skip


_AVAILABLE = {
    True: ("MinimumReplicasAvailable", "Deployment has minimum availability."),
    False: ("MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
}


def max_unavailable(owner: Object) -> int:
    """strategy.rollingUpdate.maxUnavailable as a number, percents rounded down; 0 for Recreate."""
    rolling = (owner["spec"].get("strategy") or {}).get("rollingUpdate")
    if rolling is None:
        return 0
    value = rolling.get("maxUnavailable", "25%")
    if isinstance(value, int):
        return value
    return int(owner["spec"]["replicas"] * int(value.removesuffix("%")) / 100)
