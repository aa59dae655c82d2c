"""Rules 1, 8 and 9 of facts 16: writers of node fields, limiter and zones, countdowns of taint eviction."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.node_state import zone_of
from chaos.lab.controllers.taint_eviction import toleration_seconds
from chaos.lab.objects import (
    Object,
    condition,
    condition_status,
    is_deleting,
    is_ready,
    name_of,
    node_of,
    taints_of,
    uid_of,
)
from tests.kit.invariants_world import NO_EXECUTE, World, target, turned

_PASS = 0.05  # upper limit for a monitor pass
_HANDLED = 0.02  # upper limit for the queues of taint eviction
_STARTUP_GRACE = 60.0
_GC_ENDS = 81.0  # pod GC has checked a deleted node twice
_QUEUE = 1.0  # upper limit for the work queues of the control plane
_BY_CONDITION = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
}
_CAUSES = ("container runtime is down", "PLEG is not healthy", "node is shutting down")
_PREFIX = "node.kubernetes.io/"
_OWNED = {_PREFIX + key for key in (*_BY_CONDITION.values(), "unschedulable")}


def _period(world: World) -> float:
    return world.spec.controllers.node_monitor_period + _PASS


# Rule 1: one writer per field.


def kubelet_writes_ready(world: World, change: Change) -> None:
    """Only a running kubelet writes Ready True or False."""
    if change.plural != "nodes" or change.type != "MODIFIED":
        return
    before, after = turned(change, "Ready")
    host = world.hosts.get(name_of(change.object))
    if host is None or after not in ("True", "False") or before == after:
        return
    if not host.machine.kubelet.is_running or host.machine.kubelet.is_frozen:
        world.violated(1, f"{name_of(change.object)}: Ready={after} without a kubelet")


def kubelets_register_what_they_have(world: World, change: Change) -> None:
    """A Node that a kubelet registers has its machine's capacity and the taints of its configuration."""
    host = world.hosts.get(name_of(change.object)) if change.plural == "nodes" and change.type == "ADDED" else None
    if host is None or not change.object["spec"].get("providerID", "").startswith("lab://"):
        return  # created by a client
    missing = {taint.key for taint in host.machine.spec.taints} - {taint["key"] for taint in taints_of(change.object)}
    if missing or not change.object["status"].get("capacity"):
        world.violated(1, f"{name_of(change.object)}: registered without capacity, or without {missing}")


def ready_false_has_a_cause(world: World, change: Change) -> None:
    """A kubelet that ran before writes Ready=False only with a cause, not because of its start."""
    if change.plural != "nodes" or change.type != "MODIFIED" or turned(change, "Ready")[1] != "False":
        return
    message = (condition(change.object, "Ready") or {}).get("message", "")
    if turned(change, "Ready")[0] != "False" and not any(word in message for word in _CAUSES):
        world.violated(1, f"{name_of(change.object)}: Ready=False: {message}")


def unknown_in_its_window(world: World, change: Change) -> None:
    """Ready is Unknown soon after the grace period since the last heartbeat, and never before.

    A node without the condition has another grace period (facts 5.2, --node-startup-grace-period).
    """
    if change.plural not in ("nodes", "leases"):
        return
    name, now, grace = name_of(change.object), world.sim.now, world.spec.controllers.node_monitor_grace_period
    heartbeats: dict[str, float] = world.memory.setdefault("heartbeats", {})
    if change.plural == "nodes":
        down = not any(is_ready(node) for node in world.store.list("nodes"))
        if down or world.memory.get("is down"):  # earlier observations do not count
            world.memory["all down"] = now + _period(world)
        world.memory["is down"] = down
        before, after = turned(change, "Ready")
        if before in ("True", "False") and after == "Unknown" and now - heartbeats.get(name, now - grace) < grace:
            world.violated(1, f"{name}: Unknown {now - heartbeats[name]:.1f} s after a heartbeat")
        if change.type == "ADDED":
            heartbeats[name] = now  # another Node object: heartbeats of the first do not count
        if change.type == "DELETED" or not _reported(change):
            return
    heartbeats[name] = now
    node = world.node(name)
    patience = grace if node is None or condition_status(node, "Ready") else _STARTUP_GRACE
    passes = 3 if change.plural == "nodes" else 2  # after a report the controller counts the last lease again
    world.sim.after(patience + passes * _period(world) + 0.1, _must_be_unknown, world, name, now)


def _reported(change: Change) -> bool:
    """Whether the kubelet has written the node's status."""
    old = {
        item["type"]: item.get("lastHeartbeatTime")
        for item in (change.before or {}).get("status", {}).get("conditions", [])
    }
    ready = [item for item in change.object["status"].get("conditions", []) if item["type"] == "Ready"]
    return bool(ready) and ready[0]["status"] != "Unknown" and ready[0].get("lastHeartbeatTime") != old.get("Ready")


def _must_be_unknown(world: World, name: str, heartbeat: float) -> None:
    node = world.node(name)
    reset = max(world.restarted, world.memory.get("all down", 0.0))
    if node is None or world.memory["heartbeats"][name] != heartbeat or reset >= heartbeat:
        return
    if condition_status(node, "Ready") != "Unknown":
        world.violated(1, f"{name}: silent and not Unknown")


def pods_follow_unknown_only(world: World, change: Change) -> None:
    """The control plane sets pods' Ready=False only when their node changes from True to Unknown."""
    lost: dict[str, float] = world.memory.setdefault("lost nodes", {})
    seen: dict[str, float] = world.memory.setdefault("unready pods", {})
    if change.plural == "nodes" and turned(change, "Ready") == ("True", "Unknown") and change.type == "MODIFIED":
        lost[name_of(change.object)] = world.sim.now
        for pod in list(world.store.list("pods")):
            if node_of(pod) == name_of(change.object) and is_ready(pod):
                world.sim.after(2.0, _was_marked, world, pod, world.sim.now)
    elif change.plural == "pods" and change.type == "MODIFIED" and turned(change, "Ready") == ("True", "False"):
        pod = change.object
        seen[uid_of(pod)] = world.sim.now
        by_controller = condition_status(pod, "ContainersReady") == "True"
        if by_controller and world.sim.now - lost.get(node_of(pod), float("-inf")) > 2.0:
            world.violated(1, f"{name_of(pod)}: Ready=False by the control plane, its node did not turn Unknown")


def _was_marked(world: World, pod: Object, since: float) -> None:
    if world.same(pod) is not None and world.memory["unready pods"].get(uid_of(pod), 0.0) < since:
        world.violated(1, f"{name_of(pod)}: keeps Ready=True on a lost node")


def no_schedule_taints_follow_conditions(world: World, change: Change) -> None:
    if change.plural != "nodes":
        return
    name = name_of(change.object)
    world.persisting(
        1, ("taints", name), _QUEUE, f"{name}: NoSchedule taints unlike conditions", lambda: _differs(world, name)
    )


def _differs(world: World, name: str) -> bool:
    node = world.node(name)
    if node is None:
        return False
    wanted = {
        _PREFIX + key for (type_, status), key in _BY_CONDITION.items() if condition_status(node, type_) == status
    }
    wanted |= {_PREFIX + "unschedulable"} if node["spec"].get("unschedulable") else set()
    return wanted != {taint["key"] for taint in taints_of(node) if taint["effect"] == "NoSchedule"} & _OWNED


def taint_eviction_sets_the_condition_first(world: World, change: Change) -> None:
    """Taint eviction emits its event, sets DisruptionTarget, then deletes; a client may also delete."""
    if change.plural == "events" and change.object["reason"] == "TaintManagerEviction":
        about = change.object["involvedObject"]
        pod = world.store.get("pods", about.get("namespace", ""), about["name"])
        if change.object["message"].startswith("Marking") and pod is not None and uid_of(pod) == about.get("uid"):
            world.sim.after(0.1, _was_disrupted, world, pod)
    elif change.plural == "pods" and change.type == "MODIFIED":
        deleted: dict[str, float] = world.memory.setdefault("deleted", {})
        if is_deleting(change.object) and not is_deleting(change.before or {"metadata": {}}):
            deleted[uid_of(change.object)] = world.sim.now
        if target(change.before) != "DeletionByTaintManager" == target(change.object):
            at = deleted.get(uid_of(change.object), float("-inf"))
            if world.sim.now - at < 0.02 and world.sim.now - world.touched > 0.1:
                world.violated(1, f"{name_of(change.object)}: DisruptionTarget after DELETE")


def _was_disrupted(world: World, pod: Object) -> None:
    now = world.same(pod)
    if now is not None and not _is_evicted(now):
        world.violated(1, f"{name_of(pod)}: evicted without DisruptionTarget")


def _is_evicted(pod: Object) -> bool:
    """Whether taint eviction ended the pod, or its kubelet, which overwrites the reason of a pod being stopped."""
    ended = is_deleting(pod) and target(pod) == "TerminationByKubelet"
    return ended or target(pod) == "DeletionByTaintManager"


def pod_gc_keeps_quarantine(world: World, change: Change) -> None:
    """Pods of a deleted node remain for 40 s and at most three loops of 20 s, even if the node was back in between."""
    gone: dict[str, list[float]] = world.memory.setdefault("gone nodes", {})
    name, now = name_of(change.object), world.sim.now
    if change.plural == "nodes" and change.type == "DELETED":
        gone[name] = [*(at for at in gone.get(name, []) if now - at < _GC_ENDS), now]
        bound = [pod for pod in world.store.list("pods") if node_of(pod) == name]
        world.sim.after(_GC_ENDS, _were_collected, world, name, bound, now)
    elif change.plural == "nodes" and change.type == "ADDED":
        world.memory["back", name] = now
    elif change.plural == "pods" and target(change.before) != "DeletionByPodGC" == target(change.object):
        elapsed = now - min(gone.get(node_of(change.object), [float("-inf")]))
        if elapsed < 40.0:
            world.violated(1, f"{name}: collected {elapsed:.0f} s after its node")


def _were_collected(world: World, node: str, bound: list[Object], since: float) -> None:
    if max(world.memory.get(("back", node), 0.0), world.restarted) >= since:
        return
    for pod in bound:
        if (left := world.same(pod)) is not None and not left["metadata"].get("finalizers"):
            world.violated(1, f"{name_of(pod)}: still there 81 s after its node")


# Rule 8: limiter and zones.


@dataclass(slots=True)
class _Zone:
    added: float = float("-inf")  # time of the last NoExecute taint that was no swap
    reported: float = float("-inf")  # last relevant change by a kubelet or a client


def _members(world: World, zone: str) -> list[Object]:
    return [node for node in world.store.list("nodes") if zone_of(node) == zone]


def _rate(world: World, zone: str) -> float:
    """Rate of the zone by its nodes' conditions. Facts 5.5."""
    settings, every = world.spec.controllers, list(world.store.list("nodes"))
    if not any(is_ready(node) for node in every):
        return 0.0
    members = _members(world, zone)
    down = sum(not is_ready(node) for node in members)
    if down <= 2 or down == len(members) or down / len(members) < settings.unhealthy_zone_threshold:
        return settings.node_eviction_rate
    large = len(members) > settings.large_cluster_size_threshold
    return settings.secondary_node_eviction_rate if large else 0.0


def limiter(world: World, change: Change) -> None:
    """NoExecute taints are added one by one in a zone, and not at all in full disruption."""
    if change.plural != "nodes":
        return
    node, now = change.object, world.sim.now
    name, key = name_of(node), zone_of(node)
    zone: _Zone = world.memory.setdefault(("zone", key), _Zone())
    before, after = turned(change, "Ready")
    if change.type != "MODIFIED" or (after not in (before, "Unknown")):
        for other in {zone_of(item) for item in world.store.list("nodes")} | {key}:
            world.memory.setdefault(("zone", other), _Zone()).reported = now
    if change.type == "MODIFIED" and _tainted(node) and not _tainted(change.before or {}):
        rate, settled = _rate(world, key), now - zone.reported > _period(world) + 0.1
        if settled and rate == 0.0:
            world.violated(8, f"{name}: NoExecute in a disrupted zone")
        fastest = max(world.spec.controllers.node_eviction_rate, world.spec.controllers.secondary_node_eviction_rate)
        if zone.added > world.restarted and now - zone.added < 1 / fastest - 0.2:
            world.violated(8, f"{name}: NoExecute {now - zone.added:.1f} s after another")
        zone.added = now
    _expect_taints(world, key)


def _tainted(node: Object) -> bool:
    return any(taint["effect"] == "NoExecute" and taint["key"] in NO_EXECUTE for taint in taints_of(node))


def _waiting(world: World, zone: str) -> list[str]:
    """Nodes that are due for a NoExecute taint."""
    return [
        name_of(node)
        for node in _members(world, zone)
        if condition_status(node, "Ready") in ("False", "Unknown") and not _tainted(node)
    ]


def _expect_taints(world: World, zone: str) -> None:
    """One of the queued nodes is tainted within one interval of the limiter, or two if it was drained."""
    state = tuple(_waiting(world, zone))
    since: dict[str, tuple[tuple[str, ...], float]] = world.memory.setdefault("waiting", {})
    if since.get(zone, ((), 0.0))[0] != state:
        since[zone] = (state, world.sim.now)
    rate, settings = _rate(world, zone), world.spec.controllers
    if not state or rate == 0.0:
        world.memory[("idle", zone)] = world.sim.now
        return
    patience = 2 / settings.node_eviction_rate + 2 * _period(world) + 1.0
    if rate == settings.node_eviction_rate and world.memory.get(("due", zone)) != since[zone]:
        world.memory["due", zone] = since[zone]
        world.sim.after(patience, _one_was_tainted, world, zone, since[zone])


def _one_was_tainted(world: World, zone: str, waited: tuple[tuple[str, ...], float]) -> None:
    reset = max(world.restarted, world.memory.get(("idle", zone), 0.0), world.memory.get("all down", 0.0))
    if world.memory["waiting"][zone] == waited and reset < waited[1]:
        world.violated(8, f"{', '.join(waited[0])}: no NoExecute taint")


# Rule 9: the countdown of tolerations.


@dataclass(slots=True)
class _Count:
    """``unsure``: the node or a taint was removed before the controller must have handled it."""

    began: float
    due: float
    unsure: bool = False


def countdown(world: World, change: Change) -> None:
    """A countdown starts with the taint, survives a swap, ends with the taint, restarts with the controller."""
    counts: dict[str, _Count] = world.memory.setdefault("counts", {})
    if change.plural == "nodes" and change.type != "DELETED":
        if _no_execute(change.object) != _no_execute(change.before or {}) or change.before is None:
            for pod in [pod for pod in world.store.list("pods") if node_of(pod) == name_of(change.object)]:
                _count(world, pod, change.object)
    elif change.plural == "nodes":
        _node_went(world, name_of(change.object))
    elif change.plural == "pods" and change.type == "DELETED":
        counts.pop(uid_of(change.object), None)
    elif change.plural == "pods":
        pod, before = change.object, change.before
        if target(before) != "DeletionByTaintManager" == target(pod):
            _was_due(world, pod, counts.pop(uid_of(pod), None))
        same = before is not None and node_of(before) == node_of(pod)
        if node_of(pod) and not (
            same and before and before["spec"].get("tolerations") == pod["spec"].get("tolerations")
        ):
            node = world.node(node_of(pod))
            if node is not None:
                _count(world, pod, node)


def _node_went(world: World, name: str) -> None:
    for pod in world.store.list("pods"):
        count = world.memory["counts"].get(uid_of(pod)) if node_of(pod) == name else None
        if count is not None and world.sim.now - count.began < _HANDLED:
            count.unsure = True


def restart_countdowns(world: World) -> None:
    """Restart the countdowns with kube-controller-manager."""
    world.memory["counts"] = {}
    for pod in list(world.store.list("pods")):
        node = world.node(node_of(pod)) if node_of(pod) else None
        if node is not None:
            _count(world, pod, node)


def _no_execute(node: Object) -> list[Object]:
    return [taint for taint in taints_of(node) if taint["effect"] == "NoExecute"]


def _count(world: World, pod: Object, node: Object) -> None:
    counts, now = world.memory["counts"], world.sim.now
    taints = _no_execute(node)
    limit = toleration_seconds(pod, taints) if taints else None
    old = counts.get(uid_of(pod))
    if limit is None:
        if old is not None:  # the controller may not have handled the change
            world.memory["ended", uid_of(pod)] = (now, counts.pop(uid_of(pod)))
        return
    began = old.began if old is not None and limit > 0 else now
    due = max(now, began + limit)
    if old is not None and due > old.due and now - old.began < _HANDLED:
        old.unsure = True
    due = due if old is None else min(old.due, due)
    if old is None or due != old.due:
        counts[uid_of(pod)] = _Count(began, due)
        world.sim.at(due + 0.5, _was_evicted, world, pod, counts[uid_of(pod)])


def _was_due(world: World, pod: Object, count: _Count | None) -> None:
    ended, last = world.memory.get(("ended", uid_of(pod)), (float("-inf"), None))
    if count is None and world.sim.now - ended < _HANDLED:
        count = last
    if count is None:
        world.violated(9, f"{name_of(pod)}: evicted without a NoExecute taint")
    elif not count.unsure and not -0.001 <= world.sim.now - count.due <= 0.2:
        world.violated(9, f"{name_of(pod)}: evicted {world.sim.now - count.due:+.1f} s from its toleration's end")


def _was_evicted(world: World, pod: Object, count: _Count) -> None:
    found, counts = world.same(pod), world.memory["counts"]
    if found is None or count.unsure or counts.get(uid_of(pod)) is not count:
        return
    if _is_evicted(found):  # a second time
        del counts[uid_of(pod)]
    else:
        world.violated(9, f"{name_of(pod)}: not evicted")
