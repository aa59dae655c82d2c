"""Claims and volumes of pods, StorageClasses, CSIDrivers, access modes and topology: lookups. Facts 7.

Claims of a class that does not exist are provisioned immediately, as those without a class.
"""

from __future__ import annotations

import hashlib
from itertools import product

from chaos.lab.apiserver.store import Store
from chaos.lab.objects import (
    Object,
    claims_of,
    expression_matches,
    is_deleting,
    is_terminal,
    labels_of,
    namespace_of,
    parse_quantity,
)

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


SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_SHARED = ("ReadWriteMany", "ReadOnlyMany")
_NONE: list[Object] = []


def class_of(store: Store, claim: Object) -> Object | None:
    """StorageClass of a claim, None if it names none or one that does not exist."""
    name = claim["spec"].get("storageClassName")
    return store.get("storageclasses", "", name) if name else None


def waits_for_consumer(store: Store, claim: Object) -> bool:
    """Whether the claim is bound when a pod that uses it is scheduled: volumeBindingMode WaitForFirstConsumer."""
    found = class_of(store, claim)
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def is_attachable(store: Store, volume: str) -> bool:
    """Whether a volume is attached before it is mounted: not with attachRequired false in the driver's CSIDriver.

    pkg/volume/csi/csi_plugin.go CanAttach.
    """
    driver = store.get("csidrivers", "", driver_of(store, volume)[0])
    return driver is None or driver["spec"].get("attachRequired", True) is not False


def may_attach_to_many(store: Store, volume: str) -> bool:
    """Whether a volume may be attached to several nodes, by its access modes. ADU IsMultiAttachAllowed."""
    found = store.get("persistentvolumes", "", volume)
    modes = found["spec"].get("accessModes") if found is not None else None
    return found is not None and (not modes or any(mode in _SHARED for mode in modes))


def claims_used_by(store: Store, pod: Object) -> list[Object]:
    """The pod's claims that exist."""
    found = [store.get("persistentvolumeclaims", namespace_of(pod), name) for name in claims_of(pod)]
    return [claim for claim in found if claim is not None]


def matches_terms(terms: list[Object], node: Object) -> bool:
    """Whether a node matches any of the NodeSelectorTerms of a volume; without terms, any node."""
    labels = labels_of(node)
    return not terms or any(
        all(expression_matches(item, labels) for item in term.get("matchExpressions") or []) for term in terms
    )


def with_volume_affinity(store: Store, pod: Object) -> Object:
    """The pod with the node affinity of its volumes, for the scheduler. VolumeBinding plugin, Filter."""
    terms = [terms for terms in _volume_terms(store, pod) if terms]
    if not terms:
        return pod
    affinity = dict(pod["spec"].get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    own = required.get("nodeSelectorTerms") or [{}]
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [_merge(choice) for choice in product(own, *terms)]
    }
    return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": node_affinity}}}


def _volume_terms(store: Store, pod: Object) -> list[list[Object]]:
    """NodeSelectorTerms of each volume of the pod, and of what its unbound claims may be bound to."""
    found = [store.get("persistentvolumes", "", volume) for volume in volumes_of(store, pod)]
    terms = [terms_of(volume) for volume in found if volume is not None]
    for claim in claims_used_by(store, pod):
        kind = class_of(store, claim)
        if claim["spec"].get("volumeName") or kind is None:
            continue
        if kind.get("provisioner") == NO_PROVISIONER:
            candidates = [terms_of(volume) for volume in matching_volumes(store, claim)]
            terms.append([] if [] in candidates else [term for each in candidates for term in each])
        else:
            terms.append([{"matchExpressions": _expressions(item)} for item in kind.get("allowedTopologies") or []])
    return terms


def lacks_volume(store: Store, claim: Object) -> bool:
    """Whether the claim is unbound, nothing provisions a volume for it, and there is none that it can be bound to."""
    kind = class_of(store, claim)
    is_static = kind is not None and kind.get("provisioner") == NO_PROVISIONER
    return is_static and not claim["spec"].get("volumeName") and not matching_volumes(store, claim)


def matching_volumes(store: Store, claim: Object) -> list[Object]:
    """Volumes that the claim can be bound to, in order of name. pkg/volume/util FindMatchingVolume."""
    spec, found = claim["spec"], []
    for volume in store.list("persistentvolumes"):
        body, reference = volume["spec"], volume["spec"].get("claimRef")
        is_free = reference is None and (volume.get("status") or {}).get("phase") == "Available"
        is_reserved = reference is not None and not reference.get("uid") and _names(reference, claim)
        fits = set(spec["accessModes"]) <= set(body.get("accessModes") or [])
        fits = fits and body.get("storageClassName", "") == (spec.get("storageClassName") or "")
        size, needed = body["capacity"]["storage"], spec["resources"]["requests"]["storage"]
        if (is_free or is_reserved) and fits and parse_quantity(size) >= parse_quantity(needed):
            found.append(volume)
    return found


def terms_of(volume: Object) -> list[Object]:
    """NodeSelectorTerms of the volume's node affinity."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required") or {}
    terms: list[Object] = required.get("nodeSelectorTerms") or _NONE
    return terms


def _names(reference: Object, claim: Object) -> bool:
    metadata = claim["metadata"]
    return (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])


def _expressions(topology: Object) -> list[Object]:
    items = topology.get("matchLabelExpressions") or []
    return [{"key": item["key"], "operator": "In", "values": item["values"]} for item in items]


def _merge(terms: tuple[Object, ...]) -> Object:
    """One term that requires all of ``terms``."""
    merged: Object = {}
    for key in ("matchExpressions", "matchFields"):
        items = [item for term in terms for item in term.get(key) or []]
        if items:
            merged[key] = items
    return merged


def unbound_reason(store: Store, pod: Object) -> str:
    """Reason why the pod's claims make it unschedulable; empty if they do not."""
    for name in claims_of(pod):
        claim = store.get("persistentvolumeclaims", namespace_of(pod), name)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if is_deleting(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if not claim["spec"].get("volumeName") and not waits_for_consumer(store, claim):
            return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def mounted_names(store: Store, pod: Object) -> list[str]:
    """Names in volumesInUse of the pod's volumes that are attached to be mounted."""
    return [unique_name(store, volume) for volume in volumes_of(store, pod) if is_attachable(store, volume)]


def can_mount(store: Store, pod: Object, node: str) -> bool:
    """Whether the kubelet may mount the pod's volumes: all bound, in volumesInUse, and attached."""
    if not claims_of(pod):
        return True
    found = store.get("nodes", "", node)
    status = found["status"] if found is not None else {}
    attached = {item["name"] for item in status.get("volumesAttached") or []}
    is_bound = len(set(volumes_of(store, pod))) == len(set(claims_of(pod)))
    return is_bound and set(mounted_names(store, pod)) <= attached & set(status.get("volumesInUse") or [])
