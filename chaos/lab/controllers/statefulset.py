"""Owners of a StatefulSet's claims: persistentVolumeClaimRetentionPolicy.

pkg/controller/statefulset/stateful_set_utils.go updateClaimOwnerRefForSetAndPod; the garbage collector deletes the
claims with their owner.
StatefulSet controller: at most one pod per ordinal, Parallel and OrderedReady, roll-outs. Facts 5.7.
pkg/controller/statefulset/stateful_set_control.go
"""

from __future__ import annotations

from functools import partial

from chaos.lab.apiserver.deletion import is_protected
from chaos.lab.apiserver.registry import ForbiddenError, Registry
from chaos.lab.apiserver.store import Store, clone
from chaos.lab.controllers.workload import LABEL, Revisions, WorkloadController, revision_of, template_of
from chaos.lab.objects import Object, is_deleting, is_ready, is_terminal, name_of, namespace_of, uid_of
from chaos.lab.sim import SimClock


def sync_claim_owners(store: Store, owner: Object, ordinal: int, pod: Object) -> None:
    """Make the set, the pod or neither the owner of the pod's claims."""
    wanted = _owner(owner, ordinal, pod)
    ours = {uid_of(owner), uid_of(pod)}
    for template in owner["spec"].get("volumeClaimTemplates") or []:
        name = claim_name(owner, template, ordinal)
        claim = store.get("persistentvolumeclaims", namespace_of(owner), name)
        if claim is None:
            continue
        before = claim["metadata"].get("ownerReferences") or []
        after = [item for item in before if item["uid"] not in ours] + ([wanted] if wanted else [])
        if before != after:
            store.patch("persistentvolumeclaims", namespace_of(owner), name, partial(_set_owners, after))


def _set_owners(owners: list[Object], claim: Object) -> None:
    claim["metadata"]["ownerReferences"] = owners


def claim_name(owner: Object, template: Object, ordinal: int) -> str:
    """Name of the claim of an ordinal."""
    return f"{template['metadata']['name']}-{name_of(owner)}-{ordinal}"


def _owner(owner: Object, ordinal: int, pod: Object) -> Object | None:
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    if ordinal >= owner["spec"]["replicas"] and policy.get("whenScaled") == "Delete":
        return {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)}
    if policy.get("whenDeleted") == "Delete":
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name_of(owner), "uid": uid_of(owner)}
    return None


class StatefulSets(WorkloadController):
    plural, kind, owned, component = "statefulsets", "StatefulSet", "pods", "statefulset-controller"

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        super().__init__(sim, registry)
        self._revisions = Revisions(registry, self.kind)
        self._made: set[tuple[str, int]] = set()  # ordinals by uid of the set

    def sync(self, owner: Object) -> None:
        try:
            update = self._revisions.newest(owner)
        except ForbiddenError:
            return  # the namespace is being terminated
        named = {name_of(item): item for item in self._revisions.all(owner)}
        current = named.get(owner["status"].get("currentRevision", ""), update)
        pods = {int(name_of(pod).rsplit("-", 1)[1]): pod for pod in self._list_owned(owner)}
        for ordinal, pod in pods.items():
            sync_claim_owners(self._store, owner, ordinal, pod)
        if self._process_replicas(owner, pods, current, update):
            self._roll_out(owner, pods, name_of(update))
        remaining = self._list_owned(owner)
        self._revisions.trim(owner, {name_of(current), name_of(update), *map(revision_of, remaining)})
        self._status(owner, remaining, name_of(current), name_of(update))

    def _process_replicas(self, owner: Object, pods: dict[int, Object], current: Object, update: Object) -> bool:
        """Create a pod for every ordinal, delete surplus pods. Whether a roll-out may continue."""
        ordered = owner["spec"]["podManagementPolicy"] == "OrderedReady"
        replicas = owner["spec"]["replicas"]
        rules = self._registry.rules.workloads
        for ordinal in range(rules.ordinals_start, rules.ordinals_start + replicas):
            if ordinal == rules.missing_ordinal:
                continue
            revision = current if ordinal < _partition(owner) else update
            is_stable = self._process_replica(owner, ordinal, pods.get(ordinal), revision)
            if ordered and not is_stable:
                return False
        surplus = [pods[key] for key in sorted(pods, reverse=True) if key >= rules.ordinals_start + replicas]
        self._scale_down(owner, ordered, surplus)
        return not (ordered and surplus)

    def _process_replica(self, owner: Object, ordinal: int, pod: Object | None, revision: Object) -> bool:
        """Create or replace the pod of an ordinal. Whether it is available and not terminating. STS processReplica."""
        if pod is None:
            key = uid_of(owner), ordinal
            if key in self._made and not self._registry.rules.workloads.replaces_stateful_pods:
                return False
            self._made.add(key)
            self._create_claims(owner, ordinal)
            self._create_pod(
                owner,
                self._ordinal_pod(owner, ordinal, revision),
                f"Create Pod {{}} in StatefulSet {name_of(owner)} successful",
            )
            return False
        if is_terminal(pod) and not is_deleting(pod):
            self._delete(owner, pod)
            return False
        if is_deleting(pod) and self._registry.rules.workloads.stateful_set_force_deletes:
            self._registry.delete("pods", namespace_of(pod), name_of(pod), 0)
        return self._is_available(owner, pod) and not is_deleting(pod)

    def _roll_out(self, owner: Object, pods: dict[int, Object], update: str) -> None:
        """Delete one pod of another revision, from the last ordinal to the partition, if all behind it are healthy."""
        if owner["spec"]["updateStrategy"]["type"] == "OnDelete":
            return
        for ordinal in range(owner["spec"]["replicas"] - 1, _partition(owner) - 1, -1):
            pod = pods.get(ordinal)
            if pod is not None and revision_of(pod) != update and not is_deleting(pod):
                heeding = self._registry.rules.workloads.rollouts_heed_budgets
                if not (self.kind in heeding and is_protected(self._store, pod)):
                    self._delete(owner, pod)
                return
            if pod is None or is_deleting(pod) or not self._is_available(owner, pod):
                return

    def _delete(self, owner: Object, pod: Object) -> None:
        self._delete_pod(owner, pod, f"Delete Pod {{}} in StatefulSet {name_of(owner)} successful")

    def _scale_down(self, owner: Object, ordered: bool, surplus: list[Object]) -> None:
        for pod in surplus:
            if not is_deleting(pod):
                self._delete(owner, pod)
            if ordered:
                return

    def _create_claims(self, owner: Object, ordinal: int) -> None:
        """Create the claims of an ordinal, which by default outlive its pods."""
        for template in owner["spec"].get("volumeClaimTemplates") or []:
            name = claim_name(owner, template, ordinal)
            if self._store.get("persistentvolumeclaims", namespace_of(owner), name) is None:
                labels = dict(owner["spec"]["selector"]["matchLabels"])
                metadata = {"name": name, "namespace": namespace_of(owner), "labels": labels}
                claim = {"metadata": metadata, "spec": clone(template["spec"])}
                self._registry.create("persistentvolumeclaims", claim)

    def _ordinal_pod(self, owner: Object, ordinal: int, revision: Object) -> Object:
        name = f"{name_of(owner)}-{ordinal}"
        labels = {
            "apps.kubernetes.io/pod-index": str(ordinal),
            LABEL: name_of(revision),
            "statefulset.kubernetes.io/pod-name": name,
        }
        pod = self._new_pod(owner, labels, template_of(revision))
        pod["metadata"]["name"] = name
        pod["spec"].update(hostname=name, subdomain=owner["spec"]["serviceName"])
        for template in owner["spec"].get("volumeClaimTemplates") or []:
            claim = {"claimName": claim_name(owner, template, ordinal)}
            volume = {"name": template["metadata"]["name"], "persistentVolumeClaim": claim}
            pod["spec"].setdefault("volumes", []).append(volume)
        return pod

    def _status(self, owner: Object, pods: list[Object], current: str, update: str) -> None:
        """Write the status. computeReplicaStatus and completeRollingUpdate."""
        ready = [pod for pod in pods if is_ready(pod) and not is_terminal(pod)]
        number = sum(not is_terminal(pod) for pod in pods)
        revisions = [revision_of(pod) for pod in pods if not is_deleting(pod)]
        updated, desired = revisions.count(update), owner["spec"]["replicas"]
        rolling = owner["spec"]["updateStrategy"]["type"] == "RollingUpdate"
        if rolling and updated == len(ready) == number == desired:
            current = update
        available = sum(self._is_available(owner, pod) for pod in ready)
        status: Object = {"replicas": number, "availableReplicas": available, "collisionCount": 0}
        status |= {"currentRevision": current, "updateRevision": update}
        optional = {"readyReplicas": len(ready), "updatedReplicas": updated}
        optional["currentReplicas"] = revisions.count(current)
        self._write_status(owner, status | {key: value for key, value in optional.items() if value})


def _partition(owner: Object) -> int:
    """Partition of a rolling update: lower ordinals stay at the current revision; 0 for OnDelete."""
    return int((owner["spec"]["updateStrategy"].get("rollingUpdate") or {}).get("partition", 0))
