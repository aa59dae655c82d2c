"""Admission of Services, Secrets and storage.

Admission of Services: defaults and cluster addresses, which only the API server's service proxy can reach.

Admission of Secrets, which nothing in the lab uses. Errors contain no values.

Sources: pkg/apis/core/v1/conversion.go (stringData), pkg/apis/core/validation ValidateSecret, ValidateSecretUpdate.

Checks of claims, volumes and StorageClasses. pkg/apis/core/validation, pkg/apis/storage/v1/defaults.go.
"""

from __future__ import annotations

import base64
import binascii
from itertools import count

from chaos.lab.apiserver.admission.defaults import InvalidError
from chaos.lab.apiserver.store import Store
from chaos.lab.objects.accessors import Object, parse_quantity

_HEADLESS = "None"


def admit_service(service: Object, store: Store) -> None:
    """Check and default a new Service in place: pkg/apis/core/v1/defaults.go. Raises InvalidError."""
    spec = service.setdefault("spec", {})
    if spec.setdefault("type", "ClusterIP") != "ClusterIP":
        raise InvalidError("the lab simulates no type of Services but ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    for index, port in enumerate(spec.get("ports") or []):
        if not port.get("port"):
            raise InvalidError(f"spec.ports[{index}].port: Required value")
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
    if spec.get("clusterIP") != _HEADLESS:
        spec["clusterIP"] = spec.get("clusterIP") or _free_address(store)
    spec["clusterIPs"] = [spec["clusterIP"]]
    service["status"] = {"loadBalancer": {}}


def _free_address(store: Store) -> str:
    """Lowest free address of 10.96.0.0/16; the first one is that of the API server itself."""
    used = {service["spec"].get("clusterIP") for service in store.list("services")}
    addresses = (f"10.96.{number >> 8}.{number & 255}" for number in count(2))
    return next(address for address in addresses if address not in used)


_MAX_BYTES = 1 << 20
_REQUIRED_KEYS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def admit_secret(secret: Object, before: Object | None = None) -> None:
    """Check a Secret and convert its stringData to data in place. Raises InvalidError."""
    written = secret.pop("stringData", None) or {}
    if written:
        texts = {key: base64.b64encode(text.encode()).decode() for key, text in written.items()}
        secret["data"] = {**(secret.get("data") or {}), **texts}
    secret["type"] = secret.get("type") or "Opaque"
    data = secret.get("data") or {}
    if sum(_size(key, value) for key, value in data.items()) > _MAX_BYTES:
        raise InvalidError(f"data: Too long: must have at most {_MAX_BYTES} bytes")
    for key in _REQUIRED_KEYS.get(secret["type"], ()):
        if key not in data:
            raise InvalidError(f"data[{key}]: Required value")
    if before is not None:
        _check_update(secret, before)


def _check_update(secret: Object, before: Object) -> None:
    if secret["type"] != before["type"]:
        raise InvalidError(f'type: Invalid value: "{secret["type"]}": field is immutable')
    if not before.get("immutable"):
        return
    if not secret.get("immutable"):
        raise InvalidError("immutable: Forbidden: field is immutable when `immutable` is set")
    if (secret.get("data") or {}) != (before.get("data") or {}):
        raise InvalidError("data: Forbidden: field is immutable when `immutable` is set")


def _size(key: str, value: str | None) -> int:
    try:
        return len(base64.b64decode(value or "", validate=True))
    except binascii.Error as error:
        raise InvalidError(f'data[{key}]: Invalid value: "": illegal base64 data') from error


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
