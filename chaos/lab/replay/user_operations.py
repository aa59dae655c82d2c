"""Operations of users through the API, repeated in the lab."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.apiserver.eviction import ATTEMPTS, BudgetBusy, EvictionRefused
from chaos.lab.apiserver.registry import CLUSTER_WIDE
from chaos.lab.apiserver.store import clone
from chaos.lab.objects.accessors import Object, is_active, labels_of, name_of, namespace_of, node_of
from chaos.lab.replay.build import add_behaviour
from chaos.lab.replay.external_writes import user_taints
from chaos.lab.replay.recording import Operation
from chaos.lab.replay.session import ReplaySession
from chaos.lab.replay.states import owner_of
from chaos.lab.replay.templates import with_template


def apply_user_fields(session: ReplaySession, obj: Object) -> None:
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


def _create(session: ReplaySession, operation: Operation) -> None:
    cluster, plural = session.cluster, operation.params["plural"]
    obj = with_template(plural, operation.params["object"], session.recording)
    if obj is None:
        return  # it never had pods
    new = add_behaviour(plural, obj, session.recording)
    if plural not in CLUSTER_WIDE and cluster.store.get("namespaces", "", namespace_of(obj)) is None:
        cluster.create_object("namespaces", {"metadata": {"name": namespace_of(obj)}})
    if cluster.store.get(plural, namespace_of(obj), name_of(obj)) is None:
        cluster.create_object(plural, new)


def _update(session: ReplaySession, operation: Operation) -> None:
    plural = operation.params["plural"]
    obj = with_template(plural, operation.params["object"], session.recording)
    if obj is None:
        return
    current = session.cluster.store.get(plural, namespace_of(obj), name_of(obj))
    if current is not None:
        new = {**clone(current), "spec": add_behaviour(plural, obj, session.recording)["spec"]}
        session.cluster.update_object(plural, new)


def _delete(session: ReplaySession, operation: Operation) -> None:
    """Delete with the recorded grace period; the comparison reports an object that the lab lacks."""
    plural = operation.params["plural"]
    current = _counterpart(session, operation)
    if current is not None:
        session.cluster.delete_object(plural, namespace_of(current), name_of(current), operation.params.get("grace"))


def _evict(session: ReplaySession, operation: Operation, attempt: int = 1) -> None:
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


def _set_finalizers(session: ReplaySession, operation: Operation) -> None:
    current = _counterpart(session, operation)
    if current is not None:
        new: Object = clone(current)
        new["metadata"]["finalizers"] = list(operation.params["object"]["metadata"].get("finalizers") or [])
        session.cluster.update_object("pods", new)


def _counterpart(session: ReplaySession, operation: Operation) -> Object | None:
    """Object of the same name; for a pod with a generated name, else an active pod of its owner on its node."""
    plural, obj, store = operation.params["plural"], operation.params["object"], session.cluster.store
    current = store.get(plural, namespace_of(obj), name_of(obj))
    if current is not None or plural != "pods":
        return current
    candidates = [pod for pod in store.list("pods", namespace_of(obj)) if owner_of(pod) == owner_of(obj)]
    return next((pod for pod in candidates if node_of(pod) == node_of(obj) and is_active(pod)), None)


USER_OPERATIONS: dict[str, Callable[[ReplaySession, Operation], None]] = {
    "user-create": _create,
    "user-update": _update,
    "user-delete": _delete,
    "user-force-delete": _delete,
    "user-evict": _evict,
    "user-finalizers": _set_finalizers,
    "user-node": lambda session, operation: apply_user_fields(session, operation.params["object"]),
}
