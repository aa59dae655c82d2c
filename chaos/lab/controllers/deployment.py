"""Deployment controller: a ReplicaSet per template, rolling updates, Recreate, pauses, status.

Scaling during a roll-out is not proportional over the sets: the roll-out scales each of them, after a pause if it is
paused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from chaos.lab.apiserver.deletion import is_protected
from chaos.lab.apiserver.registry import ForbiddenError
from chaos.lab.apiserver.store import Change, clone
from chaos.lab.controllers.replicaset import limits_of, new_replicas, old_replicas
from chaos.lab.controllers.workload import WorkloadController
from chaos.lab.objects import (
    Object,
    condition,
    controller_of,
    is_terminal,
    name_of,
    namespace_of,
    owner_reference,
    template_hash,
    uid_of,
)
from chaos.lab.sim import seconds_of

_HASH, _REVISION = "pod-template-hash", "deployment.kubernetes.io/revision"
_DONE, _TIMED_OUT = "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
_PAUSED, _RESUMED = "DeploymentPaused", "DeploymentResumed"
_COUNTS = ("replicas", "readyReplicas", "availableReplicas")


class Deployments(WorkloadController):
    plural, kind, owned, component = "deployments", "Deployment", "replicasets", "deployment-controller"

    def start(self) -> None:
        super().start()
        self._store.subscribe(self._on_pod_change, "pods", owner="ReplicaSet")

    def _on_pod_change(self, change: Change) -> None:
        """Queue a Deployment with Recreate when a pod is gone. pkg/controller/deployment deletePod."""
        owner = controller_of(change.object) if change.type == "DELETED" else None
        found = self._store.get("replicasets", change.key[0], owner["name"]) if owner else None
        parent = controller_of(found) if found else None
        deployment = self._store.get(self.plural, change.key[0], parent["name"]) if parent else None
        if deployment is not None and deployment["spec"]["strategy"]["type"] == "Recreate":
            self._queue.add((change.key[0], name_of(deployment)))

    def sync(self, owner: Object) -> None:
        sets = sorted(self._list_owned(owner), key=_revision)
        new = next((item for item in sets if _template(item) == owner["spec"]["template"]), None)
        old = [item for item in sets if item is not new]
        if owner["spec"].get("paused"):
            self._scale_paused(owner, sets)
        elif owner["spec"]["strategy"]["type"] == "Recreate" and not self._scale_down_old(owner, old):
            new = None
        else:
            try:
                new = self._roll_out(owner, new, old)
            except ForbiddenError:
                return  # the namespace is being terminated: the real controller stops as well
        self._clean_up_history(owner, new, old)
        self._status(owner, new, self._list_owned(owner))

    def _scale_paused(self, owner: Object, sets: list[Object]) -> None:
        """Scale the active set, or the last one, to spec.replicas without a roll-out. FindActiveOrLatest."""
        active = [item for item in sets if item["spec"]["replicas"]] or sets[-1:]
        if len(active) == 1:
            self._scale(owner, active[0], owner["spec"]["replicas"])

    def _scale_down_old(self, owner: Object, old: list[Object]) -> bool:
        """Scale old sets to 0 (Recreate). Whether their last pods have ended."""
        for item in old:
            self._scale(owner, item, 0)
        return not any(item["status"].get("replicas") or self._has_pods(item) for item in old)

    def _has_pods(self, item: Object) -> bool:
        """Whether a pod of the set has not ended, terminating ones included. oldPodsRunning."""
        return any(not is_terminal(pod) for pod in self._store.list_controlled("pods", uid_of(item)))

    def _roll_out(self, owner: Object, new: Object | None, old: list[Object]) -> Object:
        """Make one step of a rolling update; the new statuses of the sets trigger the next."""
        limits = limits_of(owner)
        total = sum(item["spec"]["replicas"] for item in old)
        if new is None:
            return self._create_set(owner, new_replicas(limits, 0, total), old)
        if _revision(new) < max((_revision(item) for item in old), default=0):
            new = self._reuse_set(new, old)
        if new["spec"].get("minReadySeconds") != owner["spec"].get("minReadySeconds"):
            changed: Object = clone(new)
            changed["spec"].pop("minReadySeconds", None)
            changed["spec"] |= _min_ready(owner)
            new = self._registry.update("replicasets", changed)
        desired = new_replicas(limits, new["spec"]["replicas"], total + new["spec"]["replicas"])
        if self._scale(owner, new, desired):
            return new
        if self.kind in self._registry.rules.workloads.rollouts_heed_budgets and self._is_protected(old):
            return new
        for name, replicas in old_replicas(limits, new, old).items():
            self._scale(owner, next(item for item in old if name_of(item) == name), replicas)
        return new

    def _is_protected(self, sets: list[Object]) -> bool:
        pods = (pod for item in sets for pod in self._store.list_controlled("pods", uid_of(item)))
        return any(is_protected(self._store, pod) for pod in pods)

    def _create_set(self, owner: Object, replicas: int, old: list[Object]) -> Object:
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
                    "annotations": {_REVISION: str(max(map(_revision, old), default=0) + 1)},
                    "ownerReferences": [owner_reference("apps/v1", self.kind, owner)],
                },
                "spec": {"replicas": replicas, "selector": selector, "template": template, **_min_ready(owner)},
            },
        )
        self._report_scaling(owner, created, "up", f"from 0 to {replicas}", f"to {replicas}")
        return created

    def _reuse_set(self, item: Object, old: list[Object]) -> Object:
        """Make the set of a template that was used before the newest again."""
        changed: Object = clone(item)
        changed["metadata"].setdefault("annotations", {})[_REVISION] = str(max(map(_revision, old)) + 1)
        return self._registry.update("replicasets", changed)

    def _scale(self, owner: Object, item: Object, desired: int) -> bool:
        """Scale a set. Whether its replicas differed."""
        old = item["spec"]["replicas"]
        if old == desired:
            return False
        new: Object = clone(item)
        new["spec"]["replicas"] = desired
        self._registry.update("replicasets", new)
        way = "up" if desired > old else "down"
        self._report_scaling(owner, item, way, f"from {old} to {desired}", f"to {desired} from {old}")
        return True

    def _report_scaling(self, owner: Object, item: Object, way: str, change: str, change_before: str) -> None:
        """Emit the event with ``change``, or with ``change_before`` in v1.31."""
        text = change if self._registry.spec.has_feature("scaling-from-to") else change_before
        self._recorder.emit(self.kind, owner, "ScalingReplicaSet", f"Scaled {way} replica set {name_of(item)} {text}")

    def _clean_up_history(self, owner: Object, new: Object | None, old: list[Object]) -> None:
        """Delete old sets without pods beyond revisionHistoryLimit."""
        surplus = len(old) - owner["spec"]["revisionHistoryLimit"]
        empty = [item for item in old if not item["spec"]["replicas"] and not item["status"].get("replicas")]
        for item in empty[: max(0, surplus)] if new is not None else []:
            self._registry.delete("replicasets", namespace_of(item), name_of(item))

    def _status(self, owner: Object, new: Object | None, sets: list[Object]) -> None:
        total = {key: sum(item["status"].get(key, 0) for item in sets) for key in _COUNTS}
        desired = owner["spec"]["replicas"]
        status: dict[str, Any] = {key: value for key, value in total.items() if value}
        if self._registry.spec.has_feature("terminating-replicas"):
            status["terminatingReplicas"] = sum(item["status"].get("terminatingReplicas", 0) for item in sets)
        current = next((item for item in sets if new is not None and name_of(item) == name_of(new)), None)
        updated = current["status"].get("replicas", 0) if current is not None else 0
        if updated:
            status["updatedReplicas"] = updated
        if missing := max(0, desired - total["availableReplicas"]):
            status["unavailableReplicas"] = missing
        available = total["availableReplicas"] >= desired - limits_of(owner).unavailable
        complete = total["availableReplicas"] >= desired and updated == total["replicas"] == desired
        status["conditions"] = [
            self._condition(owner, "Available", available, *_AVAILABLE[available]),
            self._progress(owner, current, complete, status),
        ]
        self._write_status(owner, status)

    def _progress(self, owner: Object, new: Object | None, complete: bool, status: Object) -> Object:
        """Condition Progressing; a complete Deployment stays complete until its next roll-out. syncRolloutStatus."""
        before = condition(owner, "Progressing")
        reason = before["reason"] if before is not None else ""
        name = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(owner)}"'
        build = partial(self._condition, owner, "Progressing")
        if owner["spec"].get("paused"):
            return build("Unknown", _PAUSED, "Deployment is paused")
        if reason == _PAUSED:
            return build("Unknown", _RESUMED, "Deployment is resumed")
        one_set = status.get("updatedReplicas", 0) == status.get("replicas", 0)
        if complete or (reason == _DONE and one_set):
            return build(True, _DONE, f"{name} has successfully progressed.")
        if before is None or reason in (_DONE, _RESUMED) or _has_progressed(owner["status"], status):
            return build(True, "ReplicaSetUpdated", f"{name} is progressing.", renew=True)
        remaining = seconds_of(before["lastUpdateTime"]) + owner["spec"]["progressDeadlineSeconds"] - self._sim.now
        if remaining < 0 or reason == _TIMED_OUT:
            return build(False, _TIMED_OUT, f"{name} has timed out progressing.")
        self._queue.add_after((namespace_of(owner), name_of(owner)), remaining + 1.0)
        return before

    def _condition(
        self, owner: Object, type_: str, status: bool | str, reason: str, message: str, renew: bool = False
    ) -> Object:
        """Condition with its times. ``renew``: change lastUpdateTime even if nothing else differs."""
        value, now = str(status), self._sim.timestamp()
        old = condition(owner, type_)
        if old is not None and (old["status"], old["reason"]) == (value, reason) and not renew:
            return old
        transition = (old.get("lastTransitionTime") if old and old["status"] == value else None) or now
        return {
            "type": type_, "status": value, "lastUpdateTime": now, "lastTransitionTime": transition,
            "reason": reason, "message": message,
        }  # fmt: skip


def _has_progressed(before: Object, after: Object) -> bool:
    """Whether there are more updated, ready or available pods, or fewer old ones. DeploymentProgressing."""
    keys = ("updatedReplicas", "readyReplicas", "availableReplicas")
    if any(after.get(key, 0) > before.get(key, 0) for key in keys):
        return True
    old = [status.get("replicas", 0) - status.get("updatedReplicas", 0) for status in (before, after)]
    return bool(old[1] < old[0])


def _min_ready(owner: Object) -> dict[str, int]:
    seconds = owner["spec"].get("minReadySeconds")
    return {"minReadySeconds": seconds} if seconds else {}


_AVAILABLE = {
    True: ("MinimumReplicasAvailable", "Deployment has minimum availability."),
    False: ("MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
}


def _revision(item: Object) -> int:
    return int((item["metadata"].get("annotations") or {}).get(_REVISION, 0))


def _template(item: Object) -> Object:
    """Template of the Deployment that a set was created from. EqualIgnoreHash."""
    template: Object = clone(item["spec"]["template"])
    template["metadata"]["labels"].pop(_HASH, None)
    return template
