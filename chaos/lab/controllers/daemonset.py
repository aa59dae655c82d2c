"""DaemonSets: a pod per fitting node, finished ones deleted, failed ones with back-off. Facts 5.7 and 18."""

from __future__ import annotations

from collections import defaultdict

from chaos.lab.controllers.scheduling import matches_node
from chaos.lab.controllers.workload import WorkloadController
from chaos.lab.objects import (
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    Object,
    is_deleting,
    is_ready,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    taints_of,
    template_hash,
    uid_of,
    untolerated,
)
from chaos.lab.registry import Registry
from chaos.lab.sim import Sim
from chaos.lab.store import Change, clone

_BACKOFF, _BACKOFF_MAX = 1.0, 900.0
_TOLERATIONS = (
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    (UNSCHEDULABLE, "NoSchedule"),
)
_NETWORK = "node.kubernetes.io/network-unavailable"


class DaemonSets(WorkloadController):
    plural, kind, owned, component = "daemonsets", "DaemonSet", "pods", "daemonset-controller"

    def __init__(self, sim: Sim, registry: Registry) -> None:
        super().__init__(sim, registry)
        self._failures: dict[tuple[str, str], tuple[float, float]] = {}

    def start(self) -> None:
        super().start()
        self._store.subscribe(self._node_changed, "nodes")

    def restart(self) -> None:
        """A new process: no back-off is remembered."""
        self._failures.clear()

    def remember(self, owner: str, node: str, times: list[float]) -> None:
        """That failed pods of this owner (uid) were deleted on this node at these times: the back-off goes on."""
        delay = 0.0
        for before, at in zip([float("-inf"), *times], times, strict=False):
            expired = at - before > 2 * _BACKOFF_MAX
            delay = _BACKOFF if expired else min(delay * 2, _BACKOFF_MAX)
        if times:
            self._failures[owner, node] = (times[-1], delay)

    def _node_changed(self, change: Change) -> None:
        before = change.before
        same = before is not None and change.type == "MODIFIED" and _shape(before) == _shape(change.object)
        if not same:
            for owner in self._store.list(self.plural):
                self._queue.add((namespace_of(owner), name_of(owner)))

    def sync(self, owner: Object) -> None:
        pods = self._owned(owner)
        nodes = self._store.list("nodes")
        prototype = self._prototype(owner)
        mine = _by_target(pods)
        for node in nodes:
            self._sync_node(owner, prototype, node, mine[name_of(node)])
        self._status(owner, prototype, nodes)

    def _sync_node(self, owner: Object, prototype: Object, node: Object, pods: list[Object]) -> None:
        """DS podsShouldBeOnNode."""
        taints = taints_of(node)
        fits = matches_node(prototype, node)
        may_run = fits and not untolerated(prototype, taints, ("NoSchedule", "NoExecute"))
        may_run = may_run or (fits and self._registry.spec.broken("daemonset-ignores-taints"))
        may_stay = fits and not untolerated(prototype, taints, ("NoExecute",))
        living = [pod for pod in pods if not is_deleting(pod)]
        if may_run and not pods:
            self._create_pod(owner, self._node_pod(owner, node))
        elif not may_stay:
            for pod in living:
                self._delete_pod(owner, pod)
        else:
            for pod in [pod for pod in living if is_terminal(pod)]:
                self._replace(owner, node, pod)

    def _replace(self, owner: Object, node: Object, pod: Object) -> None:
        """Delete a finished pod; a failed one not before its back-off is over."""
        where = f"{namespace_of(pod)}/{name_of(pod)} on node {name_of(node)}"
        if pod["status"]["phase"] == "Succeeded":
            text = f"Found succeeded daemon pod {where}, will try to delete it"
            self._recorder.emit(self.kind, owner, "SucceededDaemonPod", text)
        else:
            wait = self._backoff(owner, node)
            if wait > 0:
                self._queue.add_after((namespace_of(owner), name_of(owner)), wait)
                return
            text = f"Found failed daemon pod {where}, will try to kill it"
            self._recorder.emit(self.kind, owner, "FailedDaemonPod", text, type_="Warning")
        self._delete_pod(owner, pod)

    def _backoff(self, owner: Object, node: Object) -> float:
        """Seconds to wait; 0 doubles the next wait. client-go flowcontrol.Backoff, per owner and node."""
        key = (uid_of(owner), name_of(node))
        now = self._sim.now
        at, delay = self._failures.get(key, (0.0, 0.0))
        if delay and now - at < delay:
            return at + delay - now
        expired = now - at > 2 * _BACKOFF_MAX
        self._failures[key] = (now, _BACKOFF if expired or not delay else min(delay * 2, _BACKOFF_MAX))
        return 0.0

    def _prototype(self, owner: Object) -> Object:
        """The pod that a node would get, with the tolerations that every daemon pod has. daemonset_util.go."""
        pod = self._new_pod(owner, {"controller-revision-hash": template_hash(owner["spec"]["template"])})
        pod["metadata"]["labels"]["pod-template-generation"] = "1"
        tolerations = pod["spec"].setdefault("tolerations", [])
        for key, effect in _TOLERATIONS:
            tolerations.append({"key": key, "operator": "Exists", "effect": effect})
        if pod["spec"].get("hostNetwork"):
            tolerations.append({"key": _NETWORK, "operator": "Exists", "effect": "NoSchedule"})
        return pod

    def _node_pod(self, owner: Object, node: Object) -> Object:
        pod: Object = clone(self._prototype(owner))
        field = {"key": "metadata.name", "operator": "In", "values": [name_of(node)]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        return pod

    def _status(self, owner: Object, prototype: Object, nodes: list[Object]) -> None:
        """DS updateDaemonSetStatus: the oldest pod of a node stands for it."""
        pods = _by_target([pod for pod in self._owned(owner) if not is_deleting(pod)])
        desired = current = ready = misplaced = 0
        for node in nodes:
            mine = pods[name_of(node)]
            fits = matches_node(prototype, node)
            if fits and not untolerated(prototype, taints_of(node), ("NoSchedule", "NoExecute")):
                desired += 1
                current += bool(mine)
                ready += any(is_ready(pod) for pod in mine)
            elif mine and not (fits and not untolerated(prototype, taints_of(node), ("NoExecute",))):
                misplaced += 1
        status = {
            "currentNumberScheduled": current,
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
        }
        optional = {"updatedNumberScheduled": current, "numberAvailable": ready, "numberUnavailable": desired - ready}
        self._write_status(owner, status | {key: value for key, value in optional.items() if value})


def _by_target(pods: list[Object]) -> defaultdict[str, list[Object]]:
    found = defaultdict(list)
    for pod in pods:
        found[_target(pod)].append(pod)
    return found


def _target(pod: Object) -> str:
    """The node that a daemon pod is bound to or made for."""
    if node_of(pod):
        return node_of(pod)
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def _shape(node: Object) -> tuple[object, ...]:
    return taints_of(node), node["metadata"].get("labels"), node["spec"].get("unschedulable")
