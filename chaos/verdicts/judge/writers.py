"""Who changed an object: by the managers of its fields, and by the Events about it."""

from __future__ import annotations

from chaos.core.kube import Event, Node, last_manager
from chaos.core.timeline import Timeline

_EVENT_SECONDS = 60.0  # before a change, in which the Event of its author may have been written
_EVENT_LATE = 5.0  # seconds after it
# Components that report or repair what others have caused; what ends with "-monitor" is node-problem-detector.
_REPORTERS = frozenset(
    {
        "",
        "nodefall",
        *("kubelet", "kube-proxy", "default-scheduler", "controllermanager"),
        *(f"{name}-controller" for name in ("node", "taint-eviction", "attachdetach", "persistentvolume", "job")),
        *(f"{name}-controller" for name in ("deployment", "replicaset", "statefulset", "daemonset")),
    }
)
# Parts of Kubernetes: what they write by themselves is no fault.
_KUBERNETES = ("kubelet", "kube-controller-manager", "cloud-controller-manager", "kube-apiserver", "kube-scheduler")


def field_owner(node: Node, field: str) -> str:
    """Manager that last set ``unschedulable`` or ``taints``; "" if unknown, as of a removed field, or Kubernetes."""
    manager = last_manager(node, field)
    return "" if manager.endswith(_KUBERNETES) else manager


def describe_manager(manager: str) -> str:
    """``kubectl (field manager)``, or ""."""
    return f"{manager} (field manager)" if manager else ""


def event_author(timeline: Timeline, kind: str, name: str, t: float, namespace: str = "") -> str:
    """``karpenter (Event DisruptionTerminating)``: the last author of an Event about the object near ``t``, or ""."""
    for entry, event in reversed(timeline.events.about(name)):
        about = event.involved_object
        if entry.t < t - _EVENT_SECONDS or about is None:
            continue
        same = (about.kind, about.name) == (kind, name) and about.namespace in ("", namespace)
        author = component(event)
        if same and entry.t <= t + _EVENT_LATE and author not in _REPORTERS and not author.endswith("-monitor"):
            return f"{author} (Event {event.reason})"
    return ""


def component(event: Event) -> str:
    """Component that wrote an Event, "" if unknown."""
    return (event.source.component if event.source else None) or event.reporting_component or ""
