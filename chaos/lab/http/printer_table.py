"""Printers of workloads, services and events, and the printer of each resource."""

from __future__ import annotations

from typing import Any

from chaos.lab.http.printers import (
    CLUSTER,
    DEFAULT,
    NONE,
    PODS,
    Cells,
    Printer,
    age,
    first_three,
    human_duration,
    labels_text,
    name,
    part,
    printer,
    selector_text,
    since,
)
from chaos.lab.objects import Object, condition_status, controller_of, is_deleting
from chaos.lab.sim import seconds_of


def _containers(obj: Object) -> Cells:
    """Names and images of the template's containers."""
    template = part(part(part(obj, "spec"), "template"), "spec")
    containers = template.get("containers") or []
    return [",".join(item[key] for item in containers) for key in ("name", "image")]


def _counts(obj: Object, *keys: str) -> list[int]:
    status = part(obj, "status")
    return [status.get(key, 0) for key in keys]


def _deployment(obj: Object, now: float) -> Cells:
    spec = part(obj, "spec")
    ready, updated, available = _counts(obj, "readyReplicas", "updatedReplicas", "availableReplicas")
    head = [name(obj), f"{ready}/{spec.get('replicas', 0)}", updated, available, age(obj, now)]
    return [*head, *_containers(obj), selector_text(spec.get("selector"))]


def _replica_set(obj: Object, now: float) -> Cells:
    spec = part(obj, "spec")
    counts = [spec.get("replicas", 0), *_counts(obj, "replicas", "readyReplicas")]
    return [name(obj), *counts, age(obj, now), *_containers(obj), selector_text(spec.get("selector")) or NONE]


def _stateful_set(obj: Object, now: float) -> Cells:
    (ready,) = _counts(obj, "readyReplicas")
    return [name(obj), f"{ready}/{part(obj, 'spec').get('replicas', 0)}", age(obj, now), *_containers(obj)]


def _daemon_set(obj: Object, now: float) -> Cells:
    spec = part(obj, "spec")
    counts = _counts(
        obj,
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    nodes = part(part(spec, "template"), "spec").get("nodeSelector")
    wide = [*_containers(obj), selector_text(spec.get("selector")) or NONE]
    return [name(obj), *counts, labels_text(nodes), age(obj, now), *wide]


def _revision(obj: Object, now: float) -> Cells:
    owner = controller_of(obj)
    text = NONE
    if owner:
        group = owner["apiVersion"].rpartition("/")[0]
        text = f"{owner['kind']}{group and '.'}{group}".lower() + f"/{owner['name']}"
    return [name(obj), text, obj.get("revision", 0), age(obj, now)]


def _job(obj: Object, now: float) -> Cells:
    spec, (succeeded,) = part(obj, "spec"), _counts(obj, "succeeded")
    wanted, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    if wanted is not None:
        completions = f"{succeeded}/{wanted}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    wide = [*_containers(obj), selector_text(spec.get("selector")) or NONE]
    return [name(obj), _job_status(obj), completions, _job_duration(obj, now), age(obj, now), *wide]


def _job_status(obj: Object) -> str:
    for type_, text in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition_status(obj, type_) == "True":
            return text
    if is_deleting(obj):
        return "Terminating"
    for type_, text in (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget")):
        if condition_status(obj, type_) == "True":
            return text
    return "Running"


def _job_duration(obj: Object, now: float) -> str:
    status = part(obj, "status")
    if not status.get("startTime"):
        return ""
    end = seconds_of(status["completionTime"]) if status.get("completionTime") else now
    return human_duration(end - seconds_of(status["startTime"]))


def _budget(obj: Object, now: float) -> Cells:
    spec = part(obj, "spec")
    amounts: list[Any] = [
        "N/A" if spec.get(key) is None else str(spec[key]) for key in ("minAvailable", "maxUnavailable")
    ]
    return [name(obj), *amounts, *_counts(obj, "disruptionsAllowed"), age(obj, now)]


def _service(obj: Object, now: float) -> Cells:
    """Row of a Service; the lab has no load balancers and no external names."""
    spec = part(obj, "spec")
    cluster = (spec.get("clusterIPs") or [NONE])[0]
    external = ",".join(spec.get("externalIPs") or []) or NONE
    ports = ",".join(_service_port(port) for port in spec.get("ports") or []) or NONE
    selector = labels_text(spec.get("selector"))
    return [name(obj), spec.get("type", ""), cluster, external, ports, age(obj, now), selector]


def _service_port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def _endpoint_slice(obj: Object, now: float) -> Cells:
    ports = first_three(str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or [])
    addresses = [address for endpoint in obj.get("endpoints") or [] for address in endpoint["addresses"]]
    return [name(obj), obj.get("addressType", ""), ports, first_three(addresses), age(obj, now)]


def _event(obj: Object, now: float) -> Cells:
    involved, source, series = part(obj, "involvedObject"), part(obj, "source"), obj.get("series")
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = obj.get("count") or 1
    if series:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    kind, target = involved.get("kind", "").lower(), involved.get("name")
    component = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{target}" if target else kind,
        involved.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        obj.get("message", "").strip(),
        first,
        count,
        name(obj),
    ]


_TEMPLATE = "Containers+ Images+ Selector+"
WORKLOADS = {
    "deployments": printer(f"Name Ready Up-to-date Available Age {_TEMPLATE}", _deployment),
    "replicasets": printer(f"Name Desired:integer Current:integer Ready:integer Age {_TEMPLATE}", _replica_set),
    "statefulsets": printer("Name Ready Age Containers+ Images+", _stateful_set),
    "daemonsets": printer(
        "Name Desired:integer Current:integer Ready:integer Up-to-date:integer Available:integer Node_Selector Age "
        + _TEMPLATE,
        _daemon_set,
    ),
    "controllerrevisions": printer("Name Controller Revision Age", _revision),
    "jobs": printer(f"Name Status Completions Duration Age {_TEMPLATE}", _job),
    "poddisruptionbudgets": printer("Name Min_Available Max_Unavailable Allowed_Disruptions:integer Age", _budget),
    "services": printer("Name Type Cluster-IP External-IP Port(s) Age Selector+", _service),
    "endpointslices": printer("Name AddressType Ports Endpoints Age", _endpoint_slice),
    "events": printer(
        "Last_Seen Type Reason Object Subobject+ Source+ Message First_Seen+ Count+ Name+",
        _event,
    ),
}


_PRINTERS: dict[str, Printer] = {**CLUSTER, **WORKLOADS, "pods": PODS}


def printer_of(plural: str) -> Printer:
    """Printer of a resource, or the default printer."""
    return _PRINTERS.get(plural, DEFAULT)
