"""Admission of what is no workload, pod or node.

Admission of Services: defaults and cluster addresses, which only the API server's service proxy can reach.
Admission of Secrets, which nothing in the lab uses. Errors contain no values.
Sources: pkg/apis/core/v1/conversion.go (stringData), pkg/apis/core/validation ValidateSecret, ValidateSecretUpdate.
Checks of claims, volumes and StorageClasses. pkg/apis/core/validation, pkg/apis/storage/v1/defaults.go.
Admission of what deployments bring along: CronJobs, NetworkPolicies and RBAC. Checked and stored, without an effect.
Sources: pkg/apis/batch/validation/validation.go, pkg/apis/networking/validation/validation.go and v1/defaults.go,
pkg/apis/rbac/validation/validation.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from chaos.lab.apiserver.admission import InvalidError, check_claim, check_modes, check_storage
from chaos.lab.apiserver.admission_workloads import check_job
from chaos.lab.apiserver.store import Store
from chaos.lab.objects import Object, name_of

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


def _check_volume(spec: Object) -> None:
    """Check and default the spec of a PersistentVolume. Raises InvalidError."""
    csi = spec.get("csi") or {}
    if not csi.get("driver") or not csi.get("volumeHandle"):
        raise InvalidError("the lab simulates no volumes but spec.csi, with driver and volumeHandle")
    check_modes(spec)
    check_storage(spec.get("capacity") or {}, "spec.capacity.storage")
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


_MAX_CRON_JOB_NAME = 52
# As robfig/cron/v3 parses it, which knows neither # nor L.
_CRON_FIELD = re.compile(r"[0-9A-Za-z*?,/-]+")
_POLICIES = ("Allow", "Forbid", "Replace")
_DIRECTIONS = ("Ingress", "Egress")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_RBAC_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("User", "Group", "ServiceAccount")
# The other kinds that are stored; their status is empty.
STORED = ("cronjobs", "networkpolicies", "clusterroles", "clusterrolebindings", "roles", "rolebindings")


def admit_stored(plural: str, obj: Object, before: Object | None = None) -> None:
    """Check and default an object of ``STORED`` in place. ``before``: what it replaces. Raises InvalidError."""
    if plural == "cronjobs":
        _admit_cron_job(obj)
    elif plural == "networkpolicies":
        _admit_policy(obj.setdefault("spec", {}))
    elif plural in ("roles", "clusterroles"):
        _check_rules(obj.get("rules") or [], namespaced=plural == "roles")
    else:
        _check_binding(obj, namespaced=plural == "rolebindings")
        if before is not None and before["roleRef"] != obj["roleRef"]:
            raise InvalidError("roleRef: Invalid value: cannot change roleRef")


def _admit_cron_job(obj: Object) -> None:
    spec: dict[str, Any] = obj.get("spec") or {}
    if len(name_of(obj)) > _MAX_CRON_JOB_NAME:
        raise InvalidError("metadata.name: Invalid value: must be no more than 52 characters")
    schedule = str(spec.get("schedule") or "")
    fields = schedule.split()
    if len(fields) != 5 or not all(_CRON_FIELD.fullmatch(field) for field in fields) or _has_last(fields):
        raise InvalidError(f"spec.schedule: Invalid value: {schedule!r}: expected five fields of cron")
    if zone := spec.get("timeZone"):
        _check_zone(zone)
    for key, value in {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3}.items():
        spec.setdefault(key, value)
    spec.setdefault("failedJobsHistoryLimit", 1)
    if spec["concurrencyPolicy"] not in _POLICIES:
        raise InvalidError(f"spec.concurrencyPolicy: Unsupported value: {spec['concurrencyPolicy']!r}")
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is not None and (not isinstance(deadline, int) or deadline < 0):
        raise InvalidError(f"spec.startingDeadlineSeconds: Invalid value: {deadline!r}")
    check_job((spec.get("jobTemplate") or {}).get("spec") or {})
    obj.setdefault("status", {})


def _has_last(fields: list[str]) -> bool:
    return bool(re.search(r"\bL[W]?\b|[0-9]L", f"{fields[2]} {fields[4]}", re.IGNORECASE))


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError) as error:
        raise InvalidError(f"spec.timeZone: Invalid value: {zone!r}: unknown time zone {zone}") from error


def _admit_policy(spec: dict[str, Any]) -> None:
    spec.setdefault("podSelector", {})
    types = spec.setdefault("policyTypes", [*_DIRECTIONS] if spec.get("egress") else ["Ingress"])
    if any(each not in _DIRECTIONS for each in types):
        raise InvalidError(f"spec.policyTypes: Unsupported value: {types!r}")
    for rule in [*(spec.get("ingress") or []), *(spec.get("egress") or [])]:
        for port in rule.get("ports") or []:
            number, protocol = port.get("port"), port.setdefault("protocol", "TCP")
            if protocol not in _PROTOCOLS:
                raise InvalidError(f"spec.egress.ports.protocol: Unsupported value: {protocol!r}")
            if isinstance(number, int) and not 1 <= number <= 65535:
                raise InvalidError(f"spec.egress.ports.port: Invalid value: {number}: must be between 1 and 65535")


def _check_rules(rules: list[dict[str, Any]], *, namespaced: bool) -> None:
    for index, rule in enumerate(rules):
        where = f"rules[{index}]"
        if not rule.get("verbs"):
            raise InvalidError(f"{where}.verbs: Required value: verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if namespaced:
                raise InvalidError(f"{where}.nonResourceURLs: namespaced rules cannot apply to non-resource URLs")
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                raise InvalidError(f"{where}.nonResourceURLs: rules cannot apply to both resources and URLs")
        elif not rule.get("apiGroups") or not rule.get("resources"):
            raise InvalidError(
                f"{where}: Required value: resource rules must supply at least one api group and resource"
            )


def _check_binding(obj: Object, *, namespaced: bool) -> None:
    reference = obj.get("roleRef") or {}
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if reference.get("apiGroup") != _RBAC_GROUP or reference.get("kind") not in kinds or not reference.get("name"):
        raise InvalidError(f"roleRef: Invalid value: {reference!r}")
    for index, subject in enumerate(obj.get("subjects") or []):
        kind = subject.get("kind")
        if kind not in _SUBJECTS or not subject.get("name"):
            raise InvalidError(f"subjects[{index}]: Invalid value: {subject!r}")
        if kind == "ServiceAccount":
            if not subject.get("namespace"):
                raise InvalidError(f"subjects[{index}].namespace: Required value")
        else:
            subject.setdefault("apiGroup", _RBAC_GROUP)
