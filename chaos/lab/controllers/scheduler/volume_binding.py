"""The scheduler's plugins VolumeBinding and VolumeRestrictions.

pkg/scheduler/framework/plugins/volumebinding, volumerestrictions. Claims with delayed binding are bound after a node
was selected for their pod, and before the pod is bound to it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from chaos.lab.apiserver.store import Store
from chaos.lab.apiserver.volumes import (
    SELECTED_NODE,
    claims_used_by,
    lacks_volume,
    unbound_reason,
    with_volume_affinity,
)
from chaos.lab.objects.accessors import Object, is_terminal, name_of, namespace_of, node_of, uid_of

_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"  # binder.go ErrReasonNodeConflict, since #129887
_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"  # ErrReasonBindConflict
_ONE_POD = (  # volume_restrictions.go ErrReasonReadWriteOncePodConflict, since kubernetes/kubernetes#129145
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class VolumeBinding:
    """What the volumes of a pod mean for the choice of its node."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._assumed: dict[str, str] = {}  # node by uid of a pod whose claims are being bound

    def refusal(self, pod: Object, nodes: int) -> str:
        """Reason why no node fits the pod, empty if some may."""
        if reason := unbound_reason(self._store, pod):
            return reason
        for claim in claims_used_by(self._store, pod):
            if claim["spec"]["accessModes"] == ["ReadWriteOncePod"] and self._is_used(claim, pod):
                return f"{nodes} {_ONE_POD}"
            if lacks_volume(self._store, claim):
                return f"{nodes} {_NO_VOLUME}"
        return ""

    def is_binding(self, pod: Object) -> bool:
        """Whether a node is selected for claims of the pod that are not bound yet."""
        claims = claims_used_by(self._store, pod)
        return any(_selected_node(claim) and not claim["spec"].get("volumeName") for claim in claims)

    def with_affinity(self, pod: Object) -> Object:
        """The pod with the node affinity of its volumes."""
        return with_volume_affinity(self._store, pod)

    def assumed_node(self, pod: Object) -> str:
        """Node for which the pod's claims were bound, empty if there is none."""
        return self._assumed.get(uid_of(pod), "")

    def explain(self, rejected: Counter[str], total: int) -> Counter[str]:
        """The reasons of a failure by number of nodes, with those that only the volumes do not fit."""
        left = total - rejected.total()
        return rejected + Counter({_CONFLICT: left})

    def select_node(self, pod: Object, node: str) -> bool:
        """Ask for the volumes of the pod's unbound claims on the node. Whether there are any."""
        unbound = [item for item in claims_used_by(self._store, pod) if not item["spec"].get("volumeName")]
        if not unbound:
            self._assumed.pop(uid_of(pod), None)
            return False
        self._assumed[uid_of(pod)] = node
        for claim in unbound:
            self._store.patch(
                "persistentvolumeclaims",
                namespace_of(claim),
                name_of(claim),
                partial(_annotate, node),
            )
        return True

    def _is_used(self, claim: Object, pod: Object) -> bool:
        others = self._store.pods_using(namespace_of(claim), name_of(claim))
        return any(node_of(other) and not is_terminal(other) and uid_of(other) != uid_of(pod) for other in others)


def _annotate(node: str, claim: Object) -> None:
    claim["metadata"]["annotations"] = {**(claim["metadata"].get("annotations") or {}), SELECTED_NODE: node}


def _selected_node(claim: Object) -> str:
    return str((claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) or "")
