"""What the node lifecycle controller keeps of nodes and zones, and the taints that follow.

Zone states and eviction rates of the node lifecycle controller: pure. Facts 5.5.
Taints of the node lifecycle controller. Facts 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from chaos.lab.apiserver.registry import Registry
from chaos.lab.objects import (
    NOT_READY,
    OUT_OF_SERVICE,
    UNREACHABLE,
    Object,
    condition,
    condition_status,
    has_taint,
    labels_of,
    taints_of,
)
from chaos.lab.rules.control_plane import NodeLifecycleRules
from chaos.lab.sim import SimClock


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


def view_of(node: Object, rules: NodeLifecycleRules) -> View:
    """View of a Node."""
    ready = condition(node, "Ready")
    heartbeat = ready.get("lastHeartbeatTime", "") if ready else ""  # missing in a new Node object of that name
    unknown = all(condition_status(node, type_) == "Unknown" for type_ in rules.node_conditions)
    status = str(ready["status"]) if ready else ""
    may_untaint = may_remove_no_execute(node)
    is_settled = status == "True" and not may_untaint
    return View(node, zone_of(node), status, heartbeat, unknown, is_counted(node), may_untaint, is_settled)


ZoneState = Literal["Normal", "PartialDisruption", "FullDisruption"]
_FULL = 1.0 - 1e-9  # tokens are added in many small steps
_EXCLUDED = "node.kubernetes.io/exclude-disruption"


def zone_of(node: Object) -> str:
    """Key of the node's region and zone; empty without labels."""
    labels = labels_of(node)
    region = labels.get("failure-domain.beta.kubernetes.io/region") or labels.get("topology.kubernetes.io/region", "")
    zone = labels.get("failure-domain.beta.kubernetes.io/zone") or labels.get("topology.kubernetes.io/zone", "")
    return f"{region}:\x00:{zone}" if region or zone else ""


def is_counted(node: Object) -> bool:
    """Whether the node counts for the state of its zone."""
    return _EXCLUDED not in labels_of(node)


def zone_state(ready: int, not_ready: int, rules: NodeLifecycleRules) -> ZoneState:
    """State of a zone; partial disruption needs more than two unready nodes. NLC ComputeZoneState."""
    if ready == 0 and not_ready > 0:
        return "FullDisruption"
    is_large = not_ready > rules.partial_disruption_above
    if is_large and not_ready / (ready + not_ready) >= rules.unhealthy_zone_threshold:
        return "PartialDisruption" if rules.slows_in_partial_disruption else "Normal"
    return "Normal"


def zone_rate(state: ZoneState, size: int, rules: NodeLifecycleRules) -> float:
    """Nodes per second that may be tainted NoExecute in a zone of this size."""
    if state != "PartialDisruption":
        return rules.node_eviction_rate
    return rules.secondary_node_eviction_rate if size > rules.large_cluster_size_threshold else 0.0


class Limiter:
    """Token bucket with burst 1. A replacement of an empty bucket starts empty (RLQ SwapLimiter)."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate, self._tokens, self._at = rate, 1.0, now

    def take(self, now: float) -> bool:
        """Take a token. Whether there was one."""
        self._refill(now)
        if self.rate == 0 or self._tokens < _FULL:
            return False
        self._tokens = max(0.0, self._tokens - 1.0)
        return True

    def set_rate(self, rate: float, now: float) -> None:
        if rate == self.rate:
            return
        self._refill(now)
        saturated = self.rate == 0 or self._tokens < _FULL
        self.rate, self._tokens, self._at = rate, 0.0 if saturated else 1.0, now

    def _refill(self, now: float) -> None:
        self._tokens = min(1.0, self._tokens + (now - self._at) * self.rate)
        self._at = now


def desired_no_schedule(node: Object, rules: NodeLifecycleRules) -> set[str]:
    """Keys of the NoSchedule taints for the node's conditions and spec."""
    keys = {key for type_, key in rules.pressure_taints.items() if condition_status(node, type_) == "True"}
    if (ready := condition_status(node, "Ready")) in rules.ready_taints:
        keys.add(rules.ready_taints[ready])
    if node["spec"].get("unschedulable"):
        keys.add(rules.unschedulable_taint)
    return keys


def may_remove_no_execute(node: Object) -> bool:
    """Whether :meth:`NodeTaints.remove_no_execute` changes the node."""
    return "taints" in node["spec"] and (
        not taints_of(node) or has_taint(node, NOT_READY, "NoExecute") or has_taint(node, UNREACHABLE, "NoExecute")
    )


class NodeTaints:
    """Adds and removes taints in separate writes, as SwapNodeControllerTaint."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._store = sim, registry.store
        self._rules = rules = registry.rules.node_lifecycle
        self._owned_keys = {*rules.ready_taints.values(), rules.unschedulable_taint, *rules.pressure_taints.values()}

    def sync_no_schedule(self, name: str, desired: set[str] | None = None) -> None:
        """Sync the NoSchedule taints with the node's conditions, or with ``desired`` from earlier conditions."""
        node = self._store.get("nodes", "", name)
        if node is None:
            return
        desired = desired_no_schedule(node, self._rules) if desired is None else desired
        current = {taint["key"] for taint in taints_of(node) if taint["effect"] == "NoSchedule"} & self._owned_keys
        if self._rules.adds_no_schedule_taints:
            self._add(name, "NoSchedule", sorted(desired - current))
        stale = current - desired if self._rules.removes_no_schedule_taints else set()
        self._sim.after(self._sim.rng.uniform(0.002, 0.01), self._remove, name, "NoSchedule", stale)

    def swap_no_execute(self, name: str, desired: str, other: str) -> None:
        """Add the taint ``desired``, then remove ``other`` if the node has it."""
        self._add(name, "NoExecute", [desired])
        node = self._store.get("nodes", "", name)
        if node is not None and has_taint(node, other, "NoExecute"):
            self._sim.after(self._sim.rng.uniform(0.002, 0.01), self._remove, name, "NoExecute", {other})

    def remove_no_execute(self, name: str) -> None:
        """Remove the NoExecute taints: the node is Ready, or evictions are stopped."""
        if self._rules.removes_no_execute_taints:
            self._remove(name, "NoExecute", {NOT_READY, UNREACHABLE})

    def remove_out_of_service(self, name: str) -> None:
        """Remove the taint of a node that was out of service, if the rules do: no real controller does."""
        for effect in ("NoExecute", "NoSchedule") if self._rules.removes_out_of_service else ():
            self._remove(name, effect, {OUT_OF_SERVICE})

    def _add(self, name: str, effect: str, keys: list[str]) -> None:
        def change(node: Object) -> None:
            taints = node["spec"].setdefault("taints", [])
            for key in keys:
                if not has_taint(node, key, effect):
                    taints.append({"key": key, "effect": effect, "timeAdded": self._sim.timestamp()})

        if keys:
            self._store.patch("nodes", "", name, change)

    def _remove(self, name: str, effect: str, keys: set[str]) -> None:
        node = self._store.get("nodes", "", name)
        if node is None or not keys or "taints" not in node["spec"]:
            return
        remaining = [t for t in taints_of(node) if not (t["effect"] == effect and t["key"] in keys)]
        if remaining and len(remaining) == len(taints_of(node)):
            return

        def change(node: Object) -> None:
            if remaining:
                node["spec"]["taints"] = remaining
            else:
                del node["spec"]["taints"]

        self._store.patch("nodes", "", name, change)
