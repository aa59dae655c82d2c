"""Owners of a StatefulSet's claims: persistentVolumeClaimRetentionPolicy.

pkg/controller/statefulset/stateful_set_utils.go updateClaimOwnerRefForSetAndPod; the garbage collector deletes the
claims with their owner.
"""

from __future__ import annotations

from functools import partial

from chaos.lab.apiserver.store import Store
from chaos.lab.objects.accessors import Object, name_of, namespace_of, uid_of


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
