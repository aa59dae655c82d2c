"""Claims and volumes of pods: lookups for controllers, scheduler and kubelets. Facts 7.

Volumes are provisioned by the lab, single-attach (ReadWriteOnce) and bound at once.
"""

from __future__ import annotations

from chaos.lab.apiserver.store.store import Store
from chaos.lab.objects.accessors import Object, claims_of, is_deleting, is_terminal, namespace_of

DRIVER = "csi.lab.nodefall.dev"


def volumes_of(store: Store, pod: Object) -> list[str]:
    """Names of the PersistentVolumes that the pod's claims are bound to."""
    found = [store.get("persistentvolumeclaims", namespace_of(pod), name) for name in claims_of(pod)]
    return [claim["spec"]["volumeName"] for claim in found if claim is not None and claim["spec"].get("volumeName")]


def unbound_reason(store: Store, pod: Object) -> str:
    """Reason why the pod's claims make it unschedulable; empty if they do not."""
    for name in claims_of(pod):
        claim = store.get("persistentvolumeclaims", namespace_of(pod), name)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if is_deleting(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if not claim["spec"].get("volumeName"):
            return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def unique_name(volume: str) -> str:
    """Name of the volume in volumesInUse and volumesAttached of a Node."""
    return f"kubernetes.io/csi/{DRIVER}^{volume}"


def needs_volumes(pod: Object) -> bool:
    """Whether the pod keeps its volumes attached, until it is terminated (volume/util IsPodTerminated).

    A terminating pod does while its containers run by its last status, even if its node is dead.
    """
    if is_terminal(pod):
        return False
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return not is_deleting(pod) or any("running" in item["state"] for item in statuses)


def can_mount(store: Store, pod: Object, node: str) -> bool:
    """Whether the kubelet may mount the pod's volumes: in volumesInUse, and attached."""
    required = {unique_name(volume) for volume in volumes_of(store, pod)}
    if not claims_of(pod):
        return True
    found = store.get("nodes", "", node)
    status = found["status"] if found is not None else {}
    attached = {item["name"] for item in status.get("volumesAttached") or []}
    return len(required) == len(set(claims_of(pod))) and required <= attached & set(status.get("volumesInUse") or [])
