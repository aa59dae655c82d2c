"""Data and findings of the recognition of foreign faults, and who changed an object, according to its field managers
and the Events about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from chaos.core.kube import Event, Node, last_manager
from chaos.core.result import ForeignFault
from chaos.core.timeline import Timeline, Version
from chaos.verdicts.judge.own_changes import OwnChanges

_DELIVERY_SECONDS = 1.0  # after the end of a blind window, in which a list shows what changed in it
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


class ForeignKind(StrEnum):
    """Kinds of foreign faults."""

    CORDON = "cordon"
    UNCORDON = "uncordon"
    TAINT = "taint"
    UNTAINT = "untaint"
    DELETION = "deletion"
    REBOOT = "reboot"
    POWER_OFF = "power-off"
    SHUTDOWN = "shutdown"
    SILENCE = "silence"
    UPGRADE = "upgrade"
    EVICTION = "eviction"
    CONTROLLER_RESTART = "controller-restart"


@dataclass(frozen=True, slots=True)
class Case:
    """One timeline, and what the run itself changed."""

    timeline: Timeline
    own: OwnChanges

    def earliest(self, source: str, before: Version[Any], after: Version[Any]) -> float:
        """From when a change that ``after`` shows, and ``before`` does not, may have had effect."""
        blind = self.timeline.blind_windows_in([source], before.t, after.t)
        hiding = [window for window in blind if window.end is None or window.end >= after.t - _DELIVERY_SECONDS]
        return min([after.t, after.earliest, *(max(window.start, before.t) for window in hiding)])


def fault(node: str, kind: ForeignKind, what: str, by: str, at: float, since: float, *evidence: int) -> ForeignFault:
    """A foreign fault. ``what``, for example ``was cordoned``; ``by``: who did it, or ""."""
    text = f"{node} {what} by {by}" if by else f"{node} {what} (who did it is unknown)"
    return ForeignFault(node, kind, text, by or "unknown", at, since, evidence)


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
