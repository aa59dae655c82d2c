"""Printers of nodes, namespaces, storage and other cluster objects."""

from __future__ import annotations

from chaos.lab.apiserver.http.printers.columns import NONE, UNKNOWN, UNSET, Cells, age, name, part, printer
from chaos.lab.objects.accessors import Object, condition, is_deleting, labels_of

_ROLE = "node-role.kubernetes.io/"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _node(obj: Object, now: float) -> Cells:
    status = part(obj, "status")
    info = part(status, "nodeInfo")
    software = [info.get(key) or UNKNOWN for key in ("osImage", "kernelVersion", "containerRuntimeVersion")]
    addresses = [_address(status, type_) for type_ in ("InternalIP", "ExternalIP")]
    head = [name(obj), _node_status(obj), _roles(obj), age(obj, now), info.get("kubeletVersion", "")]
    return [*head, *addresses, *software]


def _node_status(obj: Object) -> str:
    ready = condition(obj, "Ready")
    text = "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
    return text + (",SchedulingDisabled" if part(obj, "spec").get("unschedulable") else "")


def _roles(obj: Object) -> str:
    labels = labels_of(obj)
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {
        labels.get("kubernetes.io/role", "")
    }
    return ",".join(sorted(roles - {""})) or NONE


def _address(status: Object, type_: str) -> str:
    result = [item["address"] for item in status.get("addresses") or [] if item["type"] == type_]
    return result[0] if result else NONE


def _namespace(obj: Object, now: float) -> Cells:
    return [name(obj), part(obj, "status").get("phase", ""), age(obj, now)]


def _config_map(obj: Object, now: float) -> Cells:
    return [name(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), age(obj, now)]


def _secret(obj: Object, now: float) -> Cells:
    return [name(obj), obj.get("type", ""), len(part(obj, "data")), age(obj, now)]


def _service_account(obj: Object, now: float) -> Cells:
    return [name(obj), len(obj.get("secrets") or []), age(obj, now)]


def _lease(obj: Object, now: float) -> Cells:
    return [name(obj), part(obj, "spec").get("holderIdentity") or "", age(obj, now)]


def _priority_class(obj: Object, now: float) -> Cells:
    policy = obj.get("preemptionPolicy", "")
    return [name(obj), obj.get("value", 0), bool(obj.get("globalDefault")), age(obj, now), policy]


def _attachment(obj: Object, now: float) -> Cells:
    spec = part(obj, "spec")
    volume = part(spec, "source").get("persistentVolumeName") or ""
    attached = bool(part(obj, "status").get("attached"))
    return [name(obj), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, age(obj, now)]


def _claim(obj: Object, now: float) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    volume = spec.get("volumeName", "")
    size = part(status, "capacity").get("storage", "0") if volume else ""
    modes = _modes(status) if volume else ""
    classes = [spec.get("storageClassName") or "", spec.get("volumeAttributesClassName") or UNSET]
    return [name(obj), _phase(obj), volume, size, modes, *classes, age(obj, now), spec.get("volumeMode") or UNSET]


def _volume(obj: Object, now: float) -> Cells:
    spec, claim = part(obj, "spec"), part(part(obj, "spec"), "claimRef")
    size = part(spec, "capacity").get("storage", "0")
    bound = f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    classes = [spec.get("storageClassName") or "", spec.get("volumeAttributesClassName") or UNSET]
    cells = [name(obj), size, _modes(spec), policy, _phase(obj), bound, *classes]
    return [*cells, part(obj, "status").get("reason", ""), age(obj, now), spec.get("volumeMode") or UNSET]


def _phase(obj: Object) -> str:
    return "Terminating" if is_deleting(obj) else part(obj, "status").get("phase", "")


def _modes(source: Object) -> str:
    modes = source.get("accessModes") or []
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


CLUSTER = {
    "nodes": printer(
        "Name Status Roles Age Version Internal-IP+ External-IP+ OS-Image+ Kernel-Version+ Container-Runtime+", _node
    ),
    "namespaces": printer("Name Status Age", _namespace),
    "configmaps": printer("Name Data Age", _config_map),
    "secrets": printer("Name Type Data:integer Age", _secret),
    "serviceaccounts": printer("Name Secrets Age", _service_account),
    "leases": printer("Name Holder Age", _lease),
    "priorityclasses": printer("Name Value:integer Global-Default:boolean Age PreemptionPolicy", _priority_class),
    "volumeattachments": printer("Name Attacher PV Node Attached:boolean Age", _attachment),
    "persistentvolumeclaims": printer(
        "Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age VolumeMode+", _claim
    ),
    "persistentvolumes": printer(
        "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass VolumeAttributesClass Reason Age "
        "VolumeMode+",
        _volume,
    ),
}
