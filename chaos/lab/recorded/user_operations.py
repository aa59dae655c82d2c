"""Operations of users through the API, repeated in the lab.

``kubectl drain`` and ``kubectl uncordon`` in process, on simulated time. Facts 8.3; delays from recording 08.
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.apiserver.deletion import EvictionRefused
from chaos.lab.apiserver.eviction import ATTEMPTS, BudgetBusy
from chaos.lab.apiserver.registry import CLUSTER_WIDE
from chaos.lab.apiserver.store import NotFoundError, clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects import (
    Object,
    controller_of,
    is_active,
    is_terminal,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from chaos.lab.recorded.build import Session, add_behaviour
from chaos.lab.recorded.external_writes import user_taints
from chaos.lab.recorded.recording import Operation
from chaos.lab.recorded.templates import with_template
from chaos.lab.snapshot.restored import owner_of


def apply_user_fields(session: Session, obj: Object) -> None:
    """Copy the fields that users set, taints, labels and unschedulable, to the lab's Node."""
    current = session.cluster.store.get("nodes", "", name_of(obj))
    if current is None:
        return
    new: Object = clone(current)
    controller_taints = [taint for taint in new["spec"].get("taints") or [] if taint not in user_taints(new)]
    new["spec"]["taints"] = [*controller_taints, *clone(user_taints(obj))]
    new["spec"].pop("unschedulable", None)
    if obj["spec"].get("unschedulable"):
        new["spec"]["unschedulable"] = True
    new["metadata"]["labels"] = dict(labels_of(obj))
    session.cluster.update_object("nodes", new)


def _create(session: Session, operation: Operation) -> None:
    cluster, plural = session.cluster, operation.params["plural"]
    obj = with_template(plural, operation.params["object"], session.recording)
    if obj is None:
        return  # it never had pods
    new = add_behaviour(plural, obj, session.recording)
    if plural not in CLUSTER_WIDE and cluster.store.get("namespaces", "", namespace_of(obj)) is None:
        cluster.create_object("namespaces", {"metadata": {"name": namespace_of(obj)}})
    if cluster.store.get(plural, namespace_of(obj), name_of(obj)) is None:
        cluster.create_object(plural, new)


def _update(session: Session, operation: Operation) -> None:
    plural = operation.params["plural"]
    obj = with_template(plural, operation.params["object"], session.recording)
    if obj is None:
        return
    current = session.cluster.store.get(plural, namespace_of(obj), name_of(obj))
    if current is not None:
        new = {**clone(current), "spec": add_behaviour(plural, obj, session.recording)["spec"]}
        session.cluster.update_object(plural, new)


def _delete(session: Session, operation: Operation) -> None:
    """Delete with the recorded grace period; the comparison reports an object that the lab lacks."""
    plural = operation.params["plural"]
    current = _counterpart(session, operation)
    if current is not None:
        session.cluster.delete_object(plural, namespace_of(current), name_of(current), operation.params.get("grace"))


def _evict(session: Session, operation: Operation, attempt: int = 1) -> None:
    """Evict; the comparison reports a refusal by the lab, as the recorded eviction succeeded."""
    current = _counterpart(session, operation)
    if current is None:
        return
    try:
        session.cluster.evict_pod(namespace_of(current), name_of(current))
    except BudgetBusy as busy:
        if attempt < ATTEMPTS:
            session.cluster.sim.after(busy.retry_delay, _evict, session, operation, attempt + 1)
    except EvictionRefused:
        return


def _set_finalizers(session: Session, operation: Operation) -> None:
    current = _counterpart(session, operation)
    if current is not None:
        new: Object = clone(current)
        new["metadata"]["finalizers"] = list(operation.params["object"]["metadata"].get("finalizers") or [])
        session.cluster.update_object("pods", new)


def _counterpart(session: Session, operation: Operation) -> Object | None:
    """Object of the same name; for a pod with a generated name, else an active pod of its owner on its node."""
    plural, obj, store = operation.params["plural"], operation.params["object"], session.cluster.store
    current = store.get(plural, namespace_of(obj), name_of(obj))
    if current is not None or plural != "pods":
        return current
    candidates = [pod for pod in store.list("pods", namespace_of(obj)) if owner_of(pod) == owner_of(obj)]
    return next((pod for pod in candidates if node_of(pod) == node_of(obj) and is_active(pod)), None)


USER_OPERATIONS: dict[str, Callable[[Session, Operation], None]] = {
    "user-create": _create,
    "user-update": _update,
    "user-delete": _delete,
    "user-force-delete": _delete,
    "user-evict": _evict,
    "user-finalizers": _set_finalizers,
    "user-node": lambda session, operation: apply_user_fields(session, operation.params["object"]),
}


_START = (0.06, 0.1)  # start of the program, cordon, list
_RETRY = 5.0  # after a 429
_POLL = 1.0
_NEXT = 0.002  # seconds between evictions in a given order


def cordon(cluster: Cluster, node: str, unschedulable: bool = True) -> None:
    """Set or clear spec.unschedulable. Raises NotFoundError."""
    found = cluster.store.get("nodes", "", node)
    if found is None:
        raise NotFoundError("nodes", node)
    changed: Object = clone(found)
    if unschedulable:
        changed["spec"]["unschedulable"] = True
    else:
        changed["spec"].pop("unschedulable", None)
    cluster.update_object("nodes", changed)


class Drain:
    """A drain with --ignore-daemonsets and --delete-emptydir-data. ``timeout`` in seconds, 0 for none.

    ``order``: in which a replay evicts the pods, which is chance otherwise.
    ``result`` is None while the drain runs, then the reason of the failure, empty for success.
    """

    def __init__(self, cluster: Cluster, node: str, timeout: float = 0.0, force: bool = False) -> None:
        self.order: Callable[[Object], float] | None = None
        self._cluster, self._node, self._force = cluster, node, force
        self._sim, self._store = cluster.sim, cluster.store
        self._deadline = self._sim.now + timeout if timeout else float("inf")
        self._pending_pods: set[str] = set()
        self.result: str | None = None
        self._sim.after(self._sim.rng.uniform(*_START), self._start)
        if timeout:
            self._sim.at(self._deadline, self._fail, f"drain did not complete within {timeout:g}s")

    def _start(self) -> None:
        cordon(self._cluster, self._node)
        pods = [pod for pod in self._store.pods_on(self._node) if _is_evictable(pod)]
        bare = [pod for pod in pods if controller_of(pod) is None and not is_terminal(pod)]
        if bare and not self._force:
            names = ", ".join(f"{namespace_of(pod)}/{name_of(pod)}" for pod in bare)
            self._fail(f"cannot delete Pods that declare no controller (use --force to override): {names}")
            return
        self._pending_pods = {uid_of(pod) for pod in pods}
        for number, pod in enumerate(sorted(pods, key=self.order) if self.order else []):
            self._sim.after(_NEXT * (number + 1), self._evict, pod, 0)
        for pod in [] if self.order else pods:
            self._after_jitter(0.002, 0.02, self._evict, pod, 0)
        self._check()

    def _evict(self, pod: Object, conflicts: int) -> None:
        if self.result is not None:
            return
        try:
            self._cluster.evict_pod(namespace_of(pod), name_of(pod))
        except NotFoundError:
            self._on_pod_removal(pod)
        except BudgetBusy as busy:
            if conflicts + 1 == ATTEMPTS:
                self._fail(str(busy))
            else:
                self._sim.after(busy.retry_delay, self._evict, pod, conflicts + 1)
        except EvictionRefused as refused:
            if refused.code == 429:
                self._sim.after(_RETRY, self._evict, pod, 0)
            else:
                self._fail(str(refused))
        else:
            self._wait(pod)

    def _wait(self, pod: Object) -> None:
        now = self._store.get("pods", namespace_of(pod), name_of(pod))
        if now is None or uid_of(now) != uid_of(pod):
            self._on_pod_removal(pod)
        elif self.result is None:
            self._sim.after(_POLL, self._wait, pod)

    def _on_pod_removal(self, pod: Object) -> None:
        self._pending_pods.discard(uid_of(pod))
        self._check()

    def _check(self) -> None:
        if not self._pending_pods and self.result is None:
            self.result = ""

    def _fail(self, reason: str) -> None:
        if self.result is None:
            self.result = reason

    def _after_jitter(self, low: float, high: float, call: Callable[..., object], *args: object) -> None:
        self._sim.after(self._sim.rng.uniform(low, high), call, *args)


def _is_evictable(pod: Object) -> bool:
    """Whether drain evicts the pod: no mirror pod, and no pod of a DaemonSet unless it has finished."""
    owner = controller_of(pod)
    if "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {}):
        return False
    return is_terminal(pod) or not owner or owner["kind"] != "DaemonSet"
