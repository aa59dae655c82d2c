"""Claims and volumes of pods: lookups for controllers, scheduler and kubelets. Facts 7.

Access modes, classes and topology: module storage.
"""

from __future__ import annotations

import hashlib

from chaos.lab.apiserver.store.store import Store
from chaos.lab.objects.accessors import Object, claims_of, is_deleting, is_terminal, namespace_of

DRIVER = "csi.lab.nodefall.dev"


def volumes_of(store: Store, pod: Object) -> list[str]:
    """Names of the PersistentVolumes that the pod's claims are bound to."""
    found = [store.get("persistentvolumeclaims", namespace_of(pod), name) for name in claims_of(pod)]
    return [claim["spec"]["volumeName"] for claim in found if claim is not None and claim["spec"].get("volumeName")]


def driver_of(store: Store, volume: str) -> tuple[str, str]:
    """CSI driver and volume handle of a PersistentVolume."""
    found = store.get("persistentvolumes", "", volume)
    csi = found["spec"].get("csi") if found is not None else None
    return (csi["driver"], csi["volumeHandle"]) if csi else (DRIVER, volume)


def unique_name(store: Store, volume: str) -> str:
    """Name of the volume in volumesInUse and volumesAttached of a Node."""
    return "kubernetes.io/csi/{}^{}".format(*driver_of(store, volume))


def attachment_name(store: Store, volume: str, node: str) -> str:
    """Name of the VolumeAttachment. pkg/volume/csi/csi_attacher.go getAttachmentName."""
    driver, handle = driver_of(store, volume)
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def needs_volumes(pod: Object) -> bool:
    """Whether the pod keeps its volumes attached, until it is terminated (volume/util IsPodTerminated).

    A terminating pod does while its containers run by its last status, even if its node is dead.
    """
    if is_terminal(pod):
        return False
    statuses = pod.get("status", {}).get("containerStatuses") or []
    return not is_deleting(pod) or any("running" in item["state"] for item in statuses)
