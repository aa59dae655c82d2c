"""Printer of pods."""

from __future__ import annotations

from chaos.lab.apiserver.http.printers.columns import NONE, Cells, age, name, part, printer, since
from chaos.lab.objects.accessors import Object, condition_status, is_deleting, is_ready, is_terminal


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
