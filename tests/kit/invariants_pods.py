"""Rules 2, 3, 4, 10, 11 and 12 of facts 16: ends of pods, volumes, replacements, budgets."""

from __future__ import annotations

from typing import Any

from chaos.lab.apiserver.pods import untolerated
from chaos.lab.apiserver.store import Change
from chaos.lab.apiserver.volumes import unique_name, volumes_of
from chaos.lab.controllers.scheduler_plugins import count_intolerable_taints, node_refusal
from chaos.lab.objects import (
    MEMORY_PRESSURE,
    Object,
    condition,
    condition_status,
    controller_of,
    is_active,
    is_deleting,
    is_ready,
    is_terminal,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    requests_of,
    selector_matches,
    taints_of,
    uid_of,
)
from chaos.lab.rules import Rules
from chaos.lab.sim import seconds_of
from tests.kit.invariants_world import OUT_OF_SERVICE, World, ended_now, is_mirror, target

_QUEUE = 1.0  # upper limit for the work queues of the control plane
_CLEANUP = 4.0  # upper limit for a kubelet's DELETE of an ended pod
_FORCE_DETACH = 360.0
_STALE = 120.0

# Rule 2: removal of pods.


def removal(world: World, change: Change) -> None:
    """A pod is removed only by its kubelet after its end, with grace 0, or in a terminal phase."""
    if change.plural != "pods" or change.type != "DELETED":
        return
    pod, host = change.object, world.host_of(change.object)
    grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
    if grace > 0:
        _unlawful(world, pod, f"removed with {grace} s of grace")
        return
    immediate = uid_of(pod) in world.forced or pod["spec"].get("terminationGracePeriodSeconds") == 0
    if is_terminal(pod) or immediate or is_mirror(pod) or not node_of(pod):
        return
    if world.node(node_of(pod)) is None:
        world.violated(1, f"{name_of(pod)}: collected without phase Failed")
    elif host is not None and (host.runs(uid_of(pod)) or not host.machine.kubelet.is_running):
        _unlawful(world, pod, "removed by another client than its kubelet")


def _unlawful(world: World, pod: Object, why: str) -> None:
    world.unlawful.add(uid_of(pod))
    world.violated(2, f"{name_of(pod)}: {why}")


def removal_is_prompt(world: World, change: Change) -> None:
    """A deleted pod is removed soon after its terminal phase if its kubelet is healthy."""
    if (
        change.plural == "pods"
        and change.type == "MODIFIED"
        and is_terminal(change.object)
        and is_deleting(change.object)
    ):
        pod, since = change.object, world.sim.now
        world.persisting(
            2, uid_of(pod), _CLEANUP, f"{name_of(pod)}: ended and not removed", lambda: _lingers(world, pod, since)
        )


def _lingers(world: World, pod: Object, since: float) -> bool:
    found = world.same(pod)
    return found is not None and not found["metadata"].get("finalizers") and world.calm(node_of(pod), since)


# Rule 3: the terminal phase.


def terminal_phase(world: World, change: Change) -> None:
    """No container of a terminal pod runs; it is never Ready, and its phase is final."""
    if change.plural != "pods" or change.type != "MODIFIED":
        return
    pod, host = change.object, world.host_of(change.object)
    if is_terminal(change.before or {}) and not is_terminal(pod) and not is_mirror(pod):
        world.violated(3, f"{name_of(pod)}: no longer terminal")
    if not is_terminal(pod) or world.collected(pod):
        return
    if host is not None and host.runs(uid_of(pod)):
        world.violated(3, f"{name_of(pod)}: terminal while a container runs")
    if is_ready(pod):
        world.violated(3, f"{name_of(pod)}: terminal and Ready")


def kubelets_disruption_target(world: World, change: Change) -> None:
    """DisruptionTarget is in the patch of the terminal phase, and always set for reason Terminated."""
    if change.plural != "pods" or change.type != "MODIFIED":
        return
    pod, by_kubelet = change.object, "TerminationByKubelet"
    if target(change.before) != by_kubelet == target(pod) and not ended_now(change):
        world.violated(3, f"{name_of(pod)}: DisruptionTarget not in the patch of the terminal phase")
    if ended_now(change) and pod["status"].get("reason") == "Terminated" and target(pod) != by_kubelet:
        world.violated(3, f"{name_of(pod)}: Terminated without DisruptionTarget")


# Rule 4: exit codes.


def exit_codes(world: World, change: Change) -> None:
    """Exit codes determine the phase; only Failed has reason and message."""
    if change.plural != "pods" or not ended_now(change) or is_mirror(change.object):
        return
    pod, status = change.object, change.object["status"]
    states = [item["state"].get("terminated") for item in status.get("containerStatuses") or []]
    clean = bool(states) and all(item is not None and item["exitCode"] == 0 for item in states)
    if status["phase"] == "Succeeded" and not clean:
        world.violated(4, f"{name_of(pod)}: Succeeded with another exit code than 0")
    if status["phase"] == "Failed" and status.get("reason") == "Terminated" and clean:
        world.violated(4, f"{name_of(pod)}: Failed with exit code 0")
    if status["phase"] == "Succeeded" and (status.get("reason") or status.get("message")):
        world.violated(4, f"{name_of(pod)}: Succeeded with a reason")


# Rule 10: attach and detach.


def detach(world: World, change: Change) -> None:
    """Needed volumes stay attached; mounted ones for 6 min unless the node is out of service."""
    if change.plural not in ("pods", "nodes", "volumeattachments", "persistentvolumeclaims"):
        return
    unwanted: dict[tuple[str, str], float] = world.memory.setdefault("unwanted", {})
    attached = {_place(item): item for item in world.store.list("volumeattachments")}
    if not attached and not unwanted:
        return
    wanted = _wanted(world)
    for place in [place for place in unwanted if place in wanted or place not in attached]:
        del unwanted[place]
    for place in attached:
        if place not in wanted:
            unwanted.setdefault(place, world.sim.now)
    if (
        change.plural == "volumeattachments"
        and is_deleting(change.object)
        and not is_deleting(change.before or {"metadata": {}})
    ):
        _may_detach(world, _place(change.object), wanted)
    for place in unwanted:
        world.persisting(10, place, _QUEUE, f"{place}: not detached", lambda it=place: _overdue(world, it))  # type: ignore[misc]


def _place(attachment: Object) -> tuple[str, str]:
    return attachment["spec"]["source"]["persistentVolumeName"], attachment["spec"]["nodeName"]


def _wanted(world: World) -> set[tuple[str, str]]:
    """Volumes of pods that are not terminated, or deleted with a container last reported Running. Facts 7."""
    found = set()
    for pod in world.store.list("pods"):
        running = any("running" in item["state"] for item in pod["status"].get("containerStatuses") or [])
        if node_of(pod) and not is_terminal(pod) and (not is_deleting(pod) or running):
            found |= {(volume, node_of(pod)) for volume in volumes_of(world.store, pod)}
    return found


def _state(world: World, place: tuple[str, str]) -> tuple[bool, bool, bool]:
    """Whether the volume is mounted, by the node's last report, and the node Ready and out of service."""
    node = world.node(place[1])
    known: dict[str, list[str]] = world.memory.setdefault("in use", {})
    if node is not None:
        known[place[1]] = node["status"].get("volumesInUse") or []
    out = node is not None and any(taint["key"] == OUT_OF_SERVICE for taint in taints_of(node))
    mounted = place[1] not in known or unique_name(world.store, place[0]) in known[place[1]]
    return mounted, node is not None and is_ready(node), out


def forget_deleted_nodes(world: World) -> None:
    """Reset the records of deleted nodes, as a restart of kube-controller-manager does: attached counts as mounted."""
    known: dict[str, list[str]] = world.memory.get("in use", {})
    world.memory["in use"] = {name: volumes for name, volumes in known.items() if world.node(name) is not None}


def record_in_use(world: World, change: Change) -> None:
    """Record the volumes in use that a node reported, also for the time after its deletion."""
    if change.plural == "nodes" and change.type != "DELETED":
        world.memory.setdefault("in use", {})[name_of(change.object)] = (
            change.object["status"].get("volumesInUse") or []
        )


def _may_detach(world: World, place: tuple[str, str], wanted: set[tuple[str, str]]) -> None:
    mounted, ready, out = _state(world, place)
    if place in wanted:
        world.violated(10, f"{place}: detached while wanted")
    elapsed = world.sim.now - world.memory["unwanted"].get(place, world.sim.now)
    forced = elapsed >= _FORCE_DETACH and not ready and not world.spec.controllers.disable_force_detach_on_timeout
    if mounted and not out and not forced:
        world.violated(10, f"{place}: detached while mounted, {elapsed:.0f} s after it was wanted")


def _overdue(world: World, place: tuple[str, str]) -> bool:
    attachment = next((item for item in world.store.list("volumeattachments") if _place(item) == place), None)
    since = world.memory["unwanted"].get(place)
    if attachment is None or is_deleting(attachment) or since is None:
        return False
    mounted, ready, out = _state(world, place)
    elapsed = world.sim.now - max(since, world.restarted)
    forced = elapsed > _FORCE_DETACH + _QUEUE and not ready
    return not mounted or out or (forced and not world.spec.controllers.disable_force_detach_on_timeout)


# Rule 11: replacements.


def replicasets(world: World, change: Change) -> None:
    """A ReplicaSet replaces terminating and terminal pods at once, and no others."""
    owner = _owner(world, change, "ReplicaSet", "replicasets")
    if owner is None:
        return
    if change.plural == "pods" and change.type == "ADDED" and _missing(world, owner) < 0:
        world.violated(11, f"{name_of(owner)}: more pods than replicas")
    text = f"{name_of(owner)}: a pod is not replaced"
    world.persisting(11, uid_of(owner), 2 * _QUEUE, text, lambda: _lacks(world, owner))


def _owner(world: World, change: Change, kind: str, plural: str) -> Object | None:
    """Owner of this kind that has changed, or whose pod has."""
    if change.plural == plural:
        return world.store.get(plural, namespace_of(change.object), name_of(change.object))
    reference = controller_of(change.object) if change.plural == "pods" else None
    if reference is None or reference["kind"] != kind:
        return None
    return world.store.get(plural, namespace_of(change.object), reference["name"])


def _missing(world: World, owner: Object) -> int:
    pods = world.store.list("pods", namespace_of(owner))
    matching = [pod for pod in pods if (controller_of(pod) or {}).get("uid") == uid_of(owner) and is_active(pod)]
    return int(owner["spec"]["replicas"]) - len(matching)


def _lacks(world: World, owner: Object) -> bool:
    found = world.store.get("replicasets", namespace_of(owner), name_of(owner))
    namespace = world.store.get("namespaces", "", namespace_of(owner))
    if found is None or is_deleting(found) or namespace is None or is_deleting(namespace):
        return False
    return uid_of(found) == uid_of(owner) and _missing(world, found) > 0


def statefulsets(world: World, change: Change) -> None:
    """No second pod of a name while containers of the first run, unless its removal was lawful."""
    if change.plural != "pods" or (controller_of(change.object) or {}).get("kind") != "StatefulSet":
        return
    names: dict[str, str] = world.memory.setdefault("ordinals", {})
    key = f"{namespace_of(change.object)}/{name_of(change.object)}"
    if change.type == "ADDED":
        if names.get(key) in world.unlawful:
            world.violated(11, f"{key}: replaced before its kubelet had ended it")
        names[key] = uid_of(change.object)


def daemonsets(world: World, change: Change) -> None:
    """A DaemonSet creates no pod for a node with a taint that the pod does not tolerate."""
    pod = change.object
    if change.plural != "pods" or change.type != "ADDED" or (controller_of(pod) or {}).get("kind") != "DaemonSet":
        return
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    node = world.node(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
    if node is not None and untolerated(pod, taints_of(node), ("NoSchedule", "NoExecute")):
        world.violated(11, f"{name_of(pod)}: made for {name_of(node)} in spite of its taints")


_RULES = Rules()


def scheduler_respects_taints(world: World, change: Change) -> None:
    """Pods are bound to no node with untolerated taints; with PreferNoSchedule only if there is no other node."""
    pod, before = change.object, change.before
    if change.plural != "pods" or before is None or node_of(before) or not node_of(pod) or not world.node(node_of(pod)):
        return
    chosen = world.node(node_of(pod)) or {}
    if untolerated(pod, taints_of(chosen), ("NoSchedule", "NoExecute")):
        world.violated(11, f"{name_of(pod)}: bound to {node_of(pod)} in spite of its taints")
    free = [
        node
        for node in world.store.list("nodes")
        if not node_refusal(pod, node, _RULES) and not count_intolerable_taints(pod, node, _RULES)
    ]
    if (
        count_intolerable_taints(pod, chosen, _RULES)
        and free
        and not pod["spec"].get("topologySpreadConstraints")
        and _small(pod)
    ):
        world.violated(11, f"{name_of(pod)}: bound to {node_of(pod)}, which it should have avoided")


def _small(pod: Object) -> bool:
    """Whether the pod fits on any node of these tests."""
    return not any(requests_of(pod).values())


def no_memory_pressure_tolerations(world: World, change: Change) -> None:
    """Only pods of DaemonSets get a toleration of memory pressure, from their controller."""
    owner = controller_of(change.object) or {}
    if change.plural != "pods" or change.type != "ADDED" or owner.get("kind") in ("DaemonSet", "Node"):
        return
    if any(item.get("key") == MEMORY_PRESSURE for item in change.object["spec"].get("tolerations") or []):
        world.violated(11, f"{name_of(change.object)}: tolerates memory pressure")


# Rule 12: budgets and stale conditions.


def stale_disruptions_are_reset(world: World, change: Change) -> None:
    """A stale DisruptionTarget is reset after 2 min exactly; not one of the kubelet, nor of a pod that is ending."""
    if change.plural != "pods" or change.type == "DELETED":
        return
    was, now = (_stale_since(obj) if obj else None for obj in (change.before, change.object))
    ends = is_deleting(change.object) or is_terminal(change.object)
    if was is not None and not target(change.object) and not ends and world.sim.now - was < _STALE:
        world.violated(12, f"{name_of(change.object)}: DisruptionTarget reset after {world.sim.now - was:.0f} s")
    if now is not None and now != was:
        world.sim.at(max(now + _STALE + 2.0, world.sim.now), _was_reset, world, change.object, now)


def _stale_since(pod: Object) -> float | None:
    item = condition(pod, "DisruptionTarget")
    if item is None or item["status"] != "True" or item.get("reason") == "TerminationByKubelet":
        return None
    return None if is_deleting(pod) or is_terminal(pod) else seconds_of(item["lastTransitionTime"])


def _was_reset(world: World, pod: Object, since: float) -> None:
    found = world.same(pod)
    if found is not None and _stale_since(found) == since:
        world.violated(12, f"{name_of(pod)}: DisruptionTarget is not reset")


def evictions_take(world: World, change: Change) -> None:
    """An eviction of a healthy pod decrements its budget."""
    reason, before = "EvictionByEvictionAPI", change.before
    if change.plural != "pods" or before is None or not target(before) != reason == target(change.object):
        return
    pod = change.object
    if not is_ready(before) or is_deleting(before) or before["status"]["phase"] != "Running":
        return
    for budget in _budgets(world, pod):
        if (
            name_of(pod) not in (budget["status"].get("disruptedPods") or {})
            or budget["status"]["disruptionsAllowed"] < 0
        ):
            world.violated(12, f"{name_of(pod)}: evicted without a permit of {name_of(budget)}")


def _budgets(world: World, pod: Object) -> list[Object]:
    budgets = world.store.list("poddisruptionbudgets", namespace_of(pod))
    return [item for item in budgets if selector_matches(item["spec"].get("selector"), labels_of(pod))]


def budgets_are_recomputed(world: World, change: Change) -> None:
    """Healthy pods are Ready, not terminating, and not granted to an eviction."""
    if change.plural == "pods":
        budgets = _budgets(world, change.object)
    else:
        budgets = [change.object] if change.plural == "poddisruptionbudgets" and change.type != "DELETED" else []
    for budget in budgets:
        text = f"{name_of(budget)}: currentHealthy is wrong"
        world.persisting(12, uid_of(budget), 0.2, text, lambda it=budget: _miscounts(world, it))  # type: ignore[misc]


def _miscounts(world: World, budget: Object) -> bool:
    found = world.store.get("poddisruptionbudgets", namespace_of(budget), name_of(budget))
    if found is None or (condition(found, "DisruptionAllowed") or {}).get("reason") in (None, "SyncFailed"):
        return False
    status: dict[str, Any] = found["status"]
    fresh = {
        name for name, at in (status.get("disruptedPods") or {}).items() if world.sim.now - seconds_of(at) <= 120.0
    }
    pods = world.store.list("pods", namespace_of(found))
    matching = [pod for pod in pods if selector_matches(found["spec"].get("selector"), labels_of(pod))]
    healthy = sum(
        condition_status(pod, "Ready") == "True" and not is_deleting(pod) and name_of(pod) not in fresh
        for pod in matching
    )
    return bool(status["currentHealthy"] != healthy)
