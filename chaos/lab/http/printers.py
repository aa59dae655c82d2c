"""Columns of tables, and the printers of pods, nodes and other cluster objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from chaos.lab.objects import Object, condition, condition_status, is_deleting, is_ready, is_terminal, labels_of
from chaos.lab.sim import seconds_of

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"
Cells = list[Any]
Summary = Callable[[Object, float], Cells]
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 86400 * 365


@dataclass(frozen=True, slots=True)
class Printer:
    """Printer of a resource; ``cells`` returns the row of an object at a simulated time, one cell per column."""

    columns: tuple[dict[str, Any], ...]
    cells: Summary


def printer(headings: str, cells: Summary) -> Printer:
    """Printer for space-separated headings: ``_`` is a space, ``:type`` a type but string, ``+`` a wide column."""
    return Printer(tuple(_column(heading) for heading in headings.split()), cells)


def _column(heading: str) -> dict[str, Any]:
    wide = heading.endswith("+")
    text, _, type_ = heading.removesuffix("+").partition(":")
    title = text.replace("_", " ")
    format_ = "name" if title == "Name" else ""
    return {"name": title, "type": type_ or "string", "format": format_, "description": "", "priority": int(wide)}


def human_duration(seconds: float) -> str:
    """Duration as of HumanDuration of k8s.io/apimachinery/pkg/util/duration."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 3 * _HOUR:
        return _with_rest(whole, _MINUTE, "m", 1, "s") if whole < 10 * _MINUTE else f"{whole // _MINUTE}m"
    if whole < 2 * _DAY:
        return _with_rest(whole, _HOUR, "h", _MINUTE, "m") if whole < 8 * _HOUR else f"{whole // _HOUR}h"
    if whole < 2 * _YEAR:
        return _with_rest(whole, _DAY, "d", _HOUR, "h") if whole < 8 * _DAY else f"{whole // _DAY}d"
    return _with_rest(whole, _YEAR, "y", _DAY, "d") if whole < 8 * _YEAR else f"{whole // _YEAR}y"


def _with_rest(seconds: int, unit: int, name: str, part: int, part_name: str) -> str:
    rest = seconds % unit // part
    return f"{seconds // unit}{name}" + (f"{rest}{part_name}" if rest else "")


def name(obj: Object) -> str:
    """Name of the object; "" for a bookmark."""
    return str(obj["metadata"].get("name", ""))


def since(timestamp: str | None, now: float) -> str:
    """Time since a timestamp of the API."""
    return human_duration(now - seconds_of(timestamp)) if timestamp else UNKNOWN


def age(obj: Object, now: float) -> str:
    """Time since the creation of the object."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def labels_text(labels: dict[str, str] | None) -> str:
    """Labels as of labels.FormatLabels."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Object | None) -> str:
    """Selector as of labels.Selector.String."""
    wanted = selector or {}
    result = [(key, f"{key}={value}") for key, value in (wanted.get("matchLabels") or {}).items()]
    result += [(item["key"], _expression(item)) for item in wanted.get("matchExpressions") or []]
    return ",".join(text for _, text in sorted(result, key=lambda pair: pair[0]))


def _expression(item: dict[str, Any]) -> str:
    key, operator = item["key"], item["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return key if operator == "Exists" else f"!{key}"
    return f"{key} {operator.lower()} ({','.join(sorted(item.get('values') or []))})"


def first_three(texts: Iterable[str]) -> str:
    """First three texts, and the number of the others, as listWithMoreString."""
    result = list(texts)
    more = f" + {len(result) - 3} more..." if len(result) > 3 else ""
    return ",".join(result[:3]) + more or UNSET


def part(obj: Object, key: str) -> Object:
    """Part of an object such as spec; empty if absent."""
    return obj.get(key) or {}


DEFAULT = printer("Name Created_At", lambda obj, _: [name(obj), obj["metadata"].get("creationTimestamp")])


def _cells(pod: Object, now: float) -> Cells:
    spec, status = part(pod, "spec"), part(pod, "status")
    containers = status.get("containerStatuses") or []
    ready = sum(_runs(container) for container in containers)
    addresses = [item["ip"] for item in status.get("podIPs") or []]
    return [
        name(pod),
        f"{ready}/{len(spec.get('containers') or [])}",
        _status(pod, containers),
        _restarts(containers, now),
        age(pod, now),
        addresses[0] if addresses else NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(pod),
    ]


PODS = printer("Name Ready Status Restarts Age IP+ Node+ Nominated_Node+ Readiness_Gates+", _cells)


def _status(pod: Object, containers: list[Object]) -> str:
    """Status as of printPod, without init containers, which the lab does not simulate."""
    status = part(pod, "status")
    reason = status.get("reason") or status.get("phase", "")
    conditions = status.get("conditions") or []
    if any(item["type"] == "PodScheduled" and item.get("reason") == "SchedulingGated" for item in conditions):
        reason = "SchedulingGated"
    for container in reversed(containers):
        reason = _container_reason(part(container, "state")) or reason
    if reason == "Completed" and any(_runs(container) for container in containers):
        reason = "Running" if is_ready(pod) else "NotReady"
    if is_deleting(pod) and status.get("reason") == "NodeLost":
        return "Unknown"
    return "Terminating" if is_deleting(pod) and not is_terminal(pod) else str(reason)


def _runs(container: Object) -> bool:
    return bool(container.get("ready")) and part(container, "state").get("running") is not None


def _container_reason(state: Object) -> str:
    """Reason why a container does not run; "" to show none."""
    if part(state, "waiting").get("reason"):
        return str(state["waiting"]["reason"])
    ended = state.get("terminated")
    if ended is None:
        return ""
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended['exitCode']}"


def _restarts(containers: list[Object], now: float) -> str:
    count = sum(item.get("restartCount", 0) for item in containers)
    ends = [part(part(item, "lastState"), "terminated").get("finishedAt") for item in containers]
    last = max((end for end in ends if end), default=None)
    return f"{count} ({since(last, now)} ago)" if count and last else str(count)


def _gates(pod: Object) -> str:
    gates = part(pod, "spec").get("readinessGates") or []
    true = sum(condition_status(pod, gate["conditionType"]) == "True" for gate in gates)
    return f"{true}/{len(gates)}" if gates else NONE


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
