"""One-line descriptions of timeline entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct, to_builtins

from chaos.core.kube import (
    AttachmentSpec,
    ContainerStatus,
    Event,
    Job,
    Lease,
    Node,
    Pod,
    PodDisruptionBudget,
    VolumeAttachment,
    Workload,
    full_name,
    node_condition,
    phase,
    pod_condition,
)
from chaos.core.recording import ActionRecord, BlindWindow, EntryKind, ProbeResult
from chaos.core.text import on_node, printable
from chaos.core.timeline import Entry

_MAX_LENGTH = 400
_ENCODER = json.JSONEncoder(sort_keys=True, default=str, ensure_ascii=False)  # made once: a run has many readings


def describe(entry: Entry) -> str:
    """Describe ``entry`` on one printable line."""
    formatter = _FORMATTERS.get(type(entry.object))
    text = formatter(entry) if formatter else _describe_other(entry)
    deleted = " was deleted" if entry.type == "DELETED" else ""
    note = f" ({entry.note})" if entry.note else ""
    return printable(f"{text}{deleted}{note}", _MAX_LENGTH)


def node_state(node: Node) -> str:
    """Return ``ready``, ``notready`` or ``unknown``, from the Ready condition."""
    ready = node_condition(node, "Ready")
    return {"True": "ready", "False": "notready"}.get(ready.status if ready else "", "unknown")


def node_text(node: Node) -> str:
    """Describe the Ready condition."""
    ready = node_condition(node, "Ready")
    if ready is None:
        return "no Ready condition"
    reason = ": ".join(part for part in (ready.reason, ready.message) if part)
    return f"Ready={ready.status}" + (f" ({reason})" if reason and ready.status != "True" else "")


def taints(node: Node) -> tuple[str, ...]:
    """Taints of the node as ``key:Effect``, sorted."""
    return tuple(sorted(f"{t.key}:{t.effect}" for t in (node.spec.taints if node.spec else None) or ()))


def pod_state(pod: Pod) -> str:
    """Return ``succeeded``, ``failed``, ``terminating``, ``ready``, ``running`` (not ready) or ``pending``."""
    current = phase(pod)
    if current in ("Succeeded", "Failed"):
        return current.lower()
    if pod.metadata.deletion_timestamp:
        return "terminating"
    ready = pod_condition(pod, "Ready")
    if ready and ready.status == "True":
        return "ready"
    return "running" if current == "Running" else "pending"


def pod_text(pod: Pod) -> str:
    """Describe phase, reason, readiness, disruption and exit codes."""
    status = pod.status
    parts = [phase(pod) or "no phase"]
    if status and status.reason:
        parts[0] += f" ({status.reason})"
    if pod.metadata.deletion_timestamp:
        parts.append("terminating")
    ready = pod_condition(pod, "Ready")
    if phase(pod) == "Running":
        parts.append("ready" if ready and ready.status == "True" else "not ready")
    disrupted = disruption(pod)
    if disrupted:
        parts.append(f"DisruptionTarget {disrupted}")
    codes = [_exit_text(c) for c in (status.container_statuses if status else None) or ()]
    return ", ".join([*parts, *(code for code in codes if code)])


def disruption(pod: Pod) -> str:
    """Reason of the pod's DisruptionTarget condition, "" without one."""
    found = pod_condition(pod, "DisruptionTarget")
    return (found.reason or "without reason") if found and found.status == "True" else ""


def _exit_text(container: ContainerStatus) -> str:
    terminated = container.state.terminated if container.state else None
    return f"{container.name} exit {terminated.exit_code}" if terminated else ""


def _describe_node(entry: Entry) -> str:
    node: Node = entry.object
    found = taints(node)
    cordoned = ", cordoned" if node.spec and node.spec.unschedulable else ""
    return f"{node.metadata.name}: {node_text(node)}{cordoned}" + (f", taints {', '.join(found)}" if found else "")


def _describe_pod(entry: Entry) -> str:
    pod: Pod = entry.object
    where = pod.spec.node_name if pod.spec else None
    return f"{full_name(pod.metadata)}{f' on {where}' if where else ''}: {pod_text(pod)}"


def _describe_lease(entry: Entry) -> str:
    lease: Lease = entry.object
    return f"lease {lease.metadata.name} renewed at {lease.spec.renew_time if lease.spec else None}"


def _describe_event(entry: Entry) -> str:
    event: Event = entry.object
    about = event.involved_object
    what = f"{about.kind} {about.namespace + '/' if about.namespace else ''}{about.name}" if about else "nothing"
    return f"{event.reason} of {what}: {event.message}"


def _describe_workload(entry: Entry) -> str:
    workload: Workload = entry.object
    status = workload.status
    desired = workload.spec.replicas if workload.spec else None
    if desired is None and status:
        desired = status.desired_number_scheduled
    ready = (status.ready_replicas or status.number_ready or 0) if status else 0
    available = (status.available_replicas or status.number_available or 0) if status else 0
    return f"{entry.kind} {full_name(workload.metadata)}: {ready} ready, {available} available of {desired}"


def _describe_action(entry: Entry) -> str:
    record: ActionRecord = entry.object
    parts = [f"{on_node(entry.type, entry.node)}: {record.phase}"]
    if record.command:
        parts.append(record.command)
    if record.delivery:
        parts.append(record.delivery + (f" with {record.exit}" if record.exit is not None else ""))
    if record.evidence:
        parts.append(_json(record.evidence))
    return ", ".join(parts) + (f" (step {record.step})" if record.step else "")


def _describe_blind(entry: Entry) -> str:
    blind: BlindWindow = entry.object
    duration = f"for {blind.end - blind.start:.1f} s" if blind.end is not None else "from here on"
    return f"{blind.source or entry.type} could not be observed {duration}: {blind.reason}"


def _describe_other(entry: Entry) -> str:
    if entry.kind == EntryKind.METRICS:
        return f"metrics of {entry.node}: {_json(entry.object) if entry.object else entry.type}"
    if entry.kind == EntryKind.HOST and entry.type == "containers":
        return f"running containers on {entry.node}: {_describe_containers(entry.object)}"
    if entry.kind == EntryKind.HOST:
        return f"{entry.type} on {entry.node} = {_json(entry.object)}"
    return f"{entry.kind} {entry.type}{f' on {entry.node}' if entry.node else ''}: {_json(entry.object)}"


def _describe_containers(value: Any) -> str:
    running = value.get("running", ()) if isinstance(value, dict) else ()
    return ", ".join(sorted(f"{c['namespace']}/{c['pod']}/{c['container']}" for c in running)) or "none"


def _describe_probe(entry: Entry) -> str:
    answer: ProbeResult = entry.object
    status = f" (HTTP {answer.status})" if answer.status is not None else ""
    return f"probe {entry.type}: {'ok' + status if answer.ok else answer.error}"


def _describe_budget(entry: Entry) -> str:
    status = entry.object.status
    counts = (
        f"allows {status.disruptions_allowed}, {status.current_healthy} of {status.expected_pods} healthy,"
        f" {status.desired_healthy} desired"
        if status
        else "has no status"
    )
    return f"poddisruptionbudget {full_name(entry.object.metadata)} {counts}"


def _describe_attachment(entry: Entry) -> str:
    found: VolumeAttachment = entry.object
    spec = found.spec or AttachmentSpec()
    volume = spec.source.persistent_volume_name if spec.source else None
    state = "attached" if found.status and found.status.attached else "not attached"
    deleting = ", being deleted" if found.metadata.deletion_timestamp else ""
    return f"volume {volume or '?'} and {spec.node_name}: {state}{deleting}"


def _describe_job(entry: Entry) -> str:
    status = entry.object.status
    counts = [(name, getattr(status, name)) for name in ("active", "succeeded", "failed")] if status else []
    pods = ", ".join(f"{count} {name}" for name, count in counts if count) or "no pods"
    return f"job {full_name(entry.object.metadata)}: {pods}"


def _json(value: Any) -> str:
    plain = to_builtins(value, str_keys=True) if isinstance(value, Struct) else value
    return plain if isinstance(plain, str) else _ENCODER.encode(plain)


_FORMATTERS: dict[type[Any], Callable[[Entry], str]] = {
    Node: _describe_node,
    Pod: _describe_pod,
    Lease: _describe_lease,
    Event: _describe_event,
    Workload: _describe_workload,
    ActionRecord: _describe_action,
    BlindWindow: _describe_blind,
    ProbeResult: _describe_probe,
    PodDisruptionBudget: _describe_budget,
    VolumeAttachment: _describe_attachment,
    Job: _describe_job,
}
