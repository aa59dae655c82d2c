"""DaemonSets: a pod per fitting node, finished ones deleted, failed ones with back-off; roll-outs. Facts 5.7, 18."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.lab.controllers.daemon_fit import Fits
from chaos.lab.controllers.daemon_rollout import limit, next_to_go
from chaos.lab.controllers.revisions import LABEL, Revisions, revision_of
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
    labels_of,
    name_of,
    namespace_of,
    node_of,
    taints_of,
    uid_of,
)
from chaos.lab.registry import ForbiddenError, Registry
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
ByTarget = dict[str, list[Object]]  # by name of the node


class DaemonSets(WorkloadController):
    plural, kind, owned, component = "daemonsets", "DaemonSet", "pods", "daemonset-controller"

    def __init__(self, sim: Sim, registry: Registry) -> None:
        super().__init__(sim, registry)
        self._failures: dict[tuple[str, str], tuple[float, float]] = {}
        self._revisions = Revisions(registry, self.kind)
        self._fits: dict[str, Fits] = {}  # by uid of the owner
        self._found: tuple[tuple[str, int], ByTarget] = (("", 0), {})

    def start(self) -> None:
        super().start()
        self._store.subscribe(self._node_changed, "nodes")

    def _changed(self, change: Change) -> None:
        super()._changed(change)
        if change.plural == self.plural and change.type == "DELETED":
            self._fits.pop(uid_of(change.object), None)

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
        try:
            revision = self._revisions.newest(owner)
        except ForbiddenError:
            return  # the namespace is being terminated
        nodes = self._store.list("nodes")
        fits = self._fits_of(owner, self._prototype(owner, revision))
        pods = self._by_target(owner)
        for node in nodes:
            self._sync_node(owner, fits, node, pods.get(name_of(node), []))
        pods = self._by_target(owner)
        if owner["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            self._roll(owner, fits, nodes, pods)
            pods = self._by_target(owner)
        self._revisions.trim(owner, {name_of(revision), *(revision_of(pod) for some in pods.values() for pod in some)})
        self._status(owner, fits, nodes, pods)

    def _fits_of(self, owner: Object, prototype: Object) -> Fits:
        known = self._fits.get(uid_of(owner))
        if known is None or known.prototype != prototype:
            known = self._fits[uid_of(owner)] = Fits(prototype)
        return known

    def _by_target(self, owner: Object) -> ByTarget:
        """The owner's pods by node; those found last if nothing was written since."""
        key = (uid_of(owner), self._store.version)
        if key != self._found[0]:
            found: ByTarget = {}
            for pod in self._owned(owner):
                found.setdefault(_target(pod), []).append(pod)
            self._found = (key, found)
        return self._found[1]

    def _roll(self, owner: Object, fits: Fits, nodes: Sequence[Object], pods: ByTarget) -> None:
        desired = sum(fits.of(node).runs for node in nodes)
        for pod in next_to_go(
            [pods[key] for key in sorted(pods)],
            revision_of(fits.prototype),
            limit(owner, desired),
            lambda pod: self._is_available(owner, pod),
        ):
            self._delete_pod(owner, pod)

    def _sync_node(self, owner: Object, fits: Fits, node: Object, pods: list[Object]) -> None:
        """DS podsShouldBeOnNode."""
        fit, prototype = fits.of(node), fits.prototype
        if not pods:
            careless = self._registry.spec.broken("daemonset-ignores-taints") and matches_node(prototype, node)
            if fit.runs or careless:
                self._create_pod(owner, _node_pod(prototype, node))
            return
        living = [pod for pod in pods if not is_deleting(pod)]
        if not fit.stays:
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

    def _prototype(self, owner: Object, revision: Object) -> Object:
        """The pod that a node would get, with the tolerations that every daemon pod has. daemonset_util.go."""
        labels = {LABEL: labels_of(revision)[LABEL], "pod-template-generation": str(revision["revision"])}
        pod = self._new_pod(owner, labels)
        tolerations = pod["spec"].setdefault("tolerations", [])
        for key, effect in _TOLERATIONS:
            tolerations.append({"key": key, "operator": "Exists", "effect": effect})
        if pod["spec"].get("hostNetwork"):
            tolerations.append({"key": _NETWORK, "operator": "Exists", "effect": "NoSchedule"})
        return pod

    def _status(self, owner: Object, fits: Fits, nodes: list[Object], pods: ByTarget) -> None:
        """DS updateDaemonSetStatus: the oldest pod of a node stands for it."""
        newest = revision_of(fits.prototype)
        desired = current = ready = updated = available = misplaced = 0
        for node in nodes:
            mine = [pod for pod in pods.get(name_of(node), ()) if not is_deleting(pod)]
            fit = fits.of(node)
            if fit.runs:
                desired += 1
                current += bool(mine)
                ready += any(is_ready(pod) for pod in mine)
                available += any(self._is_available(owner, pod) for pod in mine)
                updated += any(revision_of(pod) == newest for pod in mine)
            elif mine and not fit.stays:
                misplaced += 1
        status = {
            "currentNumberScheduled": current,
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
        }
        optional = {"updatedNumberScheduled": updated, "numberAvailable": available}
        optional["numberUnavailable"] = desired - available
        self._write_status(owner, status | {key: value for key, value in optional.items() if value})


def _node_pod(prototype: Object, node: Object) -> Object:
    pod: Object = clone(prototype)
    field = {"key": "metadata.name", "operator": "In", "values": [name_of(node)]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod


def _target(pod: Object) -> str:
    """The node that a daemon pod is bound to or made for."""
    if node_of(pod):
        return node_of(pod)
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def _shape(node: Object) -> tuple[object, ...]:
    return taints_of(node), node["metadata"].get("labels"), node["spec"].get("unschedulable")
