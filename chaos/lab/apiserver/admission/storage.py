"""Checks of claims, volumes and StorageClasses. pkg/apis/core/validation, pkg/apis/storage/v1/defaults.go."""

from __future__ import annotations

from chaos.lab.apiserver.admission.defaults import InvalidError
from chaos.lab.objects.accessors import Object
from chaos.lab.objects.quantity import parse_quantity

STORAGE = ("persistentvolumeclaims", "persistentvolumes", "storageclasses", "csidrivers", "volumeattachments")
_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_CLASS = {"reclaimPolicy": ("Delete", "Retain"), "volumeBindingMode": ("Immediate", "WaitForFirstConsumer")}


def admit_storage(plural: str, obj: Object) -> None:
    """Check and default a new object of ``STORAGE`` in place. Raises InvalidError."""
    if plural == "persistentvolumeclaims":
        check_claim(obj.setdefault("spec", {}))
        if obj["spec"].get("volumeName"):
            raise InvalidError("the lab does not simulate spec.volumeName: name the claim in claimRef of the volume")
        metadata = obj["metadata"]
        metadata["finalizers"] = [*metadata.get("finalizers", []), "kubernetes.io/pvc-protection"]
        obj["status"] = {"phase": "Pending"}
    elif plural == "persistentvolumes":
        _check_volume(obj.setdefault("spec", {}))
        obj["status"] = {"phase": "Available"}
    elif plural == "storageclasses":
        _check_class(obj)
    elif plural == "csidrivers":
        obj.setdefault("spec", {}).setdefault("attachRequired", True)
    else:
        raise InvalidError(f"{plural} cannot be created by clients: the lab creates them itself")


def check_claim(spec: Object) -> None:
    """Check the spec of a PersistentVolumeClaim. Raises InvalidError."""
    _check_modes(spec)
    if spec.get("selector") or spec.get("dataSource") or spec.get("volumeMode", "Filesystem") != "Filesystem":
        raise InvalidError("the lab simulates no selector, dataSource and volumeMode of claims")
    _check_storage((spec.get("resources") or {}).get("requests") or {}, "spec.resources.requests.storage")


def _check_volume(spec: Object) -> None:
    """Check and default the spec of a PersistentVolume. Raises InvalidError."""
    csi = spec.get("csi") or {}
    if not csi.get("driver") or not csi.get("volumeHandle"):
        raise InvalidError("the lab simulates no volumes but spec.csi, with driver and volumeHandle")
    _check_modes(spec)
    _check_storage(spec.get("capacity") or {}, "spec.capacity.storage")
    policy = spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    if policy not in _CLASS["reclaimPolicy"]:
        raise InvalidError(f"spec.persistentVolumeReclaimPolicy: Unsupported value: {policy!r}")


def _check_class(obj: Object) -> None:
    """Check and default a StorageClass. Raises InvalidError."""
    if not obj.get("provisioner"):
        raise InvalidError("provisioner: Required value")
    for key, values in _CLASS.items():
        if obj.setdefault(key, values[0]) not in values:
            raise InvalidError(f"{key}: Unsupported value: {obj[key]!r}: supported values: {', '.join(values)}")


def _check_modes(spec: Object) -> None:
    modes = spec.get("accessModes") or []
    if not modes:
        raise InvalidError("spec.accessModes: Required value: at least 1 access mode is required")
    for mode in modes:
        if mode not in _MODES:
            raise InvalidError(f"spec.accessModes: Unsupported value: {mode!r}: supported values: {', '.join(_MODES)}")
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        reason = "may not use ReadWriteOncePod with other access modes"
        raise InvalidError(f"spec.accessModes: Forbidden: {reason}")


def _check_storage(amounts: Object, where: str) -> None:
    try:
        parse_quantity(amounts["storage"])
    except (KeyError, ValueError) as error:
        raise InvalidError(f"{where}: Required value") from error
