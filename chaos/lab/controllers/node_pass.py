"""What the node lifecycle controller keeps of nodes and zones between its passes."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.lab.controllers.node_taints import may_remove_no_execute
from chaos.lab.controllers.zones import Limiter, is_counted, zone_of
from chaos.lab.objects.accessors import Object, condition, condition_status

CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(slots=True)
class Health:
    """``probe_time``: last time of a new observation, by the controller's clock."""

    probe_time: float
    renew_time: str = ""
    heartbeat: str = ""


@dataclass(slots=True)
class Zone:
    """``queue`` in order, as keys; ``known`` includes nodes that were handled (RLQ)."""

    limiter: Limiter
    queue: dict[str, None] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def add(self, name: str) -> None:
        if name not in self.known:
            self.known.add(name)
            self.queue[name] = None

    def remove(self, name: str) -> None:
        self.known.discard(name)
        self.queue.pop(name, None)


@dataclass(frozen=True, slots=True)
class View:
    """What a pass needs of one version of a Node.

    ``is_unknown``: all conditions; ``counts``: for its zone's state; ``is_settled``: Ready, and no taint to remove.
    """

    node: Object
    zone: str
    ready: str
    heartbeat: str
    is_unknown: bool
    counts: bool
    may_untaint: bool
    is_settled: bool


def view_of(node: Object) -> View:
    """View of a Node."""
    ready = condition(node, "Ready")
    heartbeat = ready.get("lastHeartbeatTime", "") if ready else ""  # missing in a new Node object of that name
    unknown = all(condition_status(node, type_) == "Unknown" for type_ in CONDITIONS)
    status = str(ready["status"]) if ready else ""
    may_untaint = may_remove_no_execute(node)
    is_settled = status == "True" and not may_untaint
    return View(node, zone_of(node), status, heartbeat, unknown, is_counted(node), may_untaint, is_settled)
