"""Node lifecycle controller: status Unknown, condition taints, rate-limited NoExecute by zone. Facts 5.2-5.5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.node_state import (
    Health,
    Limiter,
    NodeTaints,
    View,
    Zone,
    desired_no_schedule,
    view_of,
    zone_of,
    zone_rate,
    zone_state,
)
from chaos.lab.controllers.workload import WorkQueue
from chaos.lab.objects import (
    Object,
    condition,
    condition_status,
    has_taint,
    is_ready,
    name_of,
    namespace_of,
    set_condition,
)
from chaos.lab.sim import Polls, SimClock

_PASS_DURATION = (0.005, 0.03)  # the period starts at the end of a pass


class NodeLifecycle:
    """Sets conditions to Unknown, condition taints, and Ready=False of pods on a silent node.

    ``select_next`` chooses the queued node to taint NoExecute next; arbitrary (facts 5.4), it can be replaced.
    ``evictions``: NoExecute taints by zone. ``zones``: number of Ready and unready nodes at the last pass.
    """

    def __init__(self, sim: SimClock, registry: Registry, polls: Polls) -> None:
        self._sim, self._store, self._rules = sim, registry.store, registry.rules.node_lifecycle
        self._polls = polls
        self._recorder = Recorder(sim, registry.store, "node-controller")
        self._taints = NodeTaints(sim, registry)
        self._health: dict[str, Health] = {}
        self._zones: dict[str, Zone] = {}
        self._views: dict[str, View] = {}
        self._is_full_disruption = False
        self._has_removals = False
        self._nodes_seen_ready: set[str] = set()
        self.evictions: Counter[str] = Counter()
        self.zones: dict[str, tuple[int, int]] = {}
        self.select_next: Callable[[list[str]], str] = sim.rng.choice
        self._no_schedule: WorkQueue[str] = WorkQueue(sim, self._taints.sync_no_schedule, 0.005, 0.15)

    def start(self) -> None:
        self._store.subscribe(self._on_change, "nodes")
        self._sim.after(self._sim.rng.uniform(0.0, self._rules.node_monitor_period), self._monitor)
        self._polls.add(self._drain)

    def restart(self) -> None:
        """Start a new process: every node is registered and observed now; the rate limiters are full."""
        self._health.clear()
        self._zones.clear()
        self.evictions.clear()
        self.zones.clear()
        self._is_full_disruption = False

    def _on_change(self, change: Change) -> None:
        if change.type == "DELETED":
            self._has_removals = True
            return
        name, late = name_of(change.object), self._rules.no_schedule_taint_delay
        if late and name in self._nodes_seen_ready:
            desired = desired_no_schedule(change.object, self._rules)
            self._sim.after(late, self._taints.sync_no_schedule, name, desired)
            return
        self._no_schedule.add(name)
        if late and condition_status(change.object, "Ready") == "True":
            self._nodes_seen_ready.add(name)  # delayed from now on; else all first pods of a new lab go to one node

    def _monitor(self) -> None:
        """Make one monitor pass; the next starts a period after its end."""
        nodes = self._store.list("nodes")
        if self._has_removals:
            self._has_removals = False
            self._forget({name_of(node) for node in nodes})
        if self._rules.zone_states_first:
            self._handle_disruption(nodes)
        for node in nodes:
            if not (self._rules.counts_heartbeats and self._is_settled(node)):
                self._check_node(node)
        if not self._rules.zone_states_first:
            cached = self._store.list("nodes")
            if self._rules.taints_within_pass:
                self._drain()
            self._handle_disruption(cached)
        duration = self._sim.rng.uniform(*_PASS_DURATION)
        self._sim.after(self._rules.node_monitor_period + duration, self._monitor)

    def _forget(self, names: set[str]) -> None:
        for name in [name for name in self._health if name not in names]:
            del self._health[name]
            self._views.pop(name, None)
            for zone in self._zones.values():
                zone.remove(name)
            self._recorder.emit(
                "Node", {"metadata": {"name": name}}, "RemovingNode",
                f"Node {name} event: Removing Node {name} from Controller",
            )  # fmt: skip

    def _view(self, node: Object) -> View:
        """View of the node: that of the last pass if the node has not changed, as most have not."""
        name = name_of(node)
        view = self._views.get(name)
        if view is None or view.node is not node:
            view = self._views[name] = view_of(node, self._rules)
        return view

    def _is_settled(self, node: Object) -> bool:
        """Whether a check would do no more than note a renewed Lease, which this does: true of most nodes.

        Such a node is Ready without a taint to remove, and the same as at the last pass.
        """
        name = node["metadata"]["name"]
        view, health = self._views.get(name), self._health.get(name)
        if view is None or health is None or view.node is not node or not view.is_settled:
            return False
        lease = self._store.get("leases", "kube-node-lease", name)
        if lease is None or view.heartbeat != health.heartbeat:
            return False
        renew_time = lease["spec"]["renewTime"]
        if renew_time > health.renew_time:
            health.renew_time, health.probe_time = renew_time, self._sim.now
            return True
        return self._sim.now <= health.probe_time + self._rules.node_monitor_grace_period

    def _check_node(self, node: Object) -> None:
        name, view = name_of(node), self._view(node)
        if name not in self._health:
            self._health[name] = Health(self._sim.now if condition(node, "Ready") else _creation_time(node))
            message = f"Node {name} event: Registered Node {name} in Controller"
            self._recorder.emit("Node", node, "RegisteredNode", message)
            self._taints.remove_no_execute(name)  # NLC markNodeAsReachable, of every node that a new process sees
        if view.zone not in self._zones:
            self._zones[view.zone] = Zone(Limiter(self._rules.node_eviction_rate, self._sim.now))
        self.evictions[view.zone] += 0  # creates the counter: NLC addPodEvictorForNewZone
        observed = view.ready
        self._probe(name, view)
        if self._is_expired(name, observed) and not view.is_unknown:
            node = self._mark_unknown(node)
            view = self._view(node)
        self._evict(name, view)
        if observed == "True" and view.ready != "True":
            self._recorder.emit("Node", node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            if self._rules.marks_pods_not_ready:
                self._mark_pods(name)
        elif view.ready == "False" and self._rules.pods_unready_on_not_ready:
            self._mark_pods(name)

    def _probe(self, name: str, view: View) -> None:
        """Set the probe time after a newer Lease or another Ready heartbeat, whatever the node's clock.

        NLC tryUpdateNodeHealth. Another heartbeat also discards the Lease, which the next pass then counts as newer.
        """
        health = self._health[name]
        lease = self._store.get("leases", "kube-node-lease", name)
        renew_time = lease["spec"]["renewTime"] if lease else ""
        renewed, reported = renew_time > health.renew_time, view.heartbeat != health.heartbeat
        if (renewed or reported) and self._rules.counts_heartbeats:
            health.probe_time = self._sim.now
        if renewed or reported:
            health.renew_time = renew_time if renewed else ""
        health.heartbeat = view.heartbeat

    def _is_expired(self, name: str, observed: str) -> bool:
        grace = self._rules.node_monitor_grace_period if observed else self._rules.node_startup_grace_period
        return self._rules.marks_unknown and self._sim.now > self._health[name].probe_time + grace

    def _mark_unknown(self, node: Object) -> Object:
        def change(obj: Object) -> None:
            for type_ in self._rules.node_conditions:
                old = condition(obj, type_)
                if old is not None and old["status"] == "Unknown":
                    continue
                reason, message = self._rules.status_never_updated if old is None else self._rules.status_unknown
                first = {"type": type_, "lastHeartbeatTime": node["metadata"]["creationTimestamp"]}
                new = {**(old or first), "status": "Unknown", "reason": reason, "message": message}
                set_condition(obj, new, self._sim.timestamp())

        return self._store.patch_status("nodes", "", name_of(node), change) or node

    def _evict(self, name: str, view: View) -> None:
        """Queue a node for NoExecute, swap its taint, or remove it. NLC processTaintBaseEviction."""
        node, zone = view.node, self._zones[view.zone]
        if view.ready == "True":
            zone.remove(name)
            if view.may_untaint:
                self._taints.remove_no_execute(name)
            self._taints.remove_out_of_service(name)
        elif view.ready in self._rules.ready_taints and not self._is_full_disruption:
            taint, other = self._no_execute_taints(view.ready)
            if has_taint(node, other, "NoExecute"):
                self._taints.swap_no_execute(name, taint, other)
                return
            if not has_taint(node, taint, "NoExecute"):
                zone.remove(name)
            zone.add(name)
            if zone.queue:
                self._polls.wake()

    def _drain(self) -> bool:
        """Taint queued nodes every 100 ms; a token is taken before a node is evaluated."""
        for zone in self._zones.values():
            while zone.queue and (zone.limiter.take(self._sim.now) or not self._rules.limits_evictions):
                name = self.select_next(list(zone.queue)) if len(zone.queue) > 1 else next(iter(zone.queue))
                del zone.queue[name]
                if late := self._rules.no_execute_taint_delay:
                    self._sim.after(late, self._taint, name)
                elif self._rules.adds_no_execute_taints:
                    self._taint(name)
        return any(zone.queue for zone in self._zones.values())

    def _taint(self, name: str) -> None:
        node = self._store.get("nodes", "", name)
        ready = condition_status(node, "Ready") if node else ""
        if node is not None and ready in self._rules.ready_taints:
            taint, other = self._no_execute_taints(ready)
            self._taints.swap_no_execute(name, taint, other)
            self.evictions[zone_of(node)] += 1

    def _no_execute_taints(self, ready: str) -> tuple[str, str]:
        """The taint for a status of Ready, and the other one, which it replaces."""
        taints = self._rules.ready_taints
        return taints[ready], taints["Unknown" if ready == "False" else "False"]

    def _handle_disruption(self, nodes: list[Object]) -> None:
        """Evaluate zone states at the end of a pass, and set rates and taints. NLC handleDisruption.

        ``nodes``: as in the controller's cache. It removes no taint that they do not have there (RemoveTaintOffNode).
        """
        numbers = self._ready_counts(nodes)
        self.zones = dict.fromkeys(self.zones, (0, 0)) | {zone: both for zone, both in numbers.items() if any(both)}
        states = {zone: zone_state(*number, self._rules) for zone, number in numbers.items()}
        all_full = bool(states) and all(state == "FullDisruption" for state in states.values())
        all_full = all_full and self._rules.stops_in_full_disruption
        now = self._sim.now
        if all_full and not self._is_full_disruption:
            for node in nodes:
                if any(has_taint(node, key, "NoExecute") for key in self._rules.ready_taints.values()):
                    self._taints.remove_no_execute(name_of(node))
            for zone in self._zones.values():
                zone.queue.clear()
                zone.known.clear()
                zone.limiter.set_rate(0.0, now)
        elif not all_full:
            if self._is_full_disruption:
                for health in self._health.values():
                    health.probe_time = now
            for key, state in states.items():
                self._zones[key].limiter.set_rate(zone_rate(state, sum(numbers[key]), self._rules), now)
        self._is_full_disruption = all_full

    def _ready_counts(self, nodes: list[Object]) -> dict[str, tuple[int, int]]:
        """Number of Ready and of unready nodes by known zone, without excluded nodes."""
        found: dict[str, tuple[int, int]] = {}
        for view in map(self._view, nodes):
            if view.zone in self._zones:
                ready, unready = found.setdefault(view.zone, (0, 0))
                if view.counts:
                    found[view.zone] = (ready + 1, unready) if view.ready == "True" else (ready, unready + 1)
        return found

    def _mark_pods(self, node: str) -> None:
        """Set Ready=False on the node's pods, one after the other, with unchanged reason and message (facts 5.3)."""
        delay = 0.002
        for pod in [pod for pod in self._store.pods_on(node) if is_ready(pod)]:
            self._sim.after(delay, self._mark_pod, namespace_of(pod), name_of(pod))
            delay += self._sim.rng.uniform(0.002, 0.012)

    def _mark_pod(self, namespace: str, name: str) -> None:
        def change(pod: Object) -> None:
            ready = condition(pod, "Ready")
            if ready is not None:
                set_condition(pod, {**ready, "status": "False"}, self._sim.timestamp())

        pod = self._store.patch_status("pods", namespace, name, change)
        if pod is not None:
            self._recorder.emit("Pod", pod, "NodeNotReady", "Node is not ready", type_="Warning")


def _creation_time(node: Object) -> float:
    return datetime.fromisoformat(node["metadata"]["creationTimestamp"]).timestamp()
