"""What users did through the API, done again in the lab."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.apiserver.eviction import ATTEMPTS, BudgetBusy, EvictionRefused
from chaos.lab.apiserver.registry import CLUSTER_WIDE
from chaos.lab.apiserver.store.store import clone
from chaos.lab.objects.accessors import Object, is_active, labels_of, name_of, namespace_of, node_of
from chaos.lab.replay.build import add_behaviour
from chaos.lab.replay.external_writes import user_taints
from chaos.lab.replay.recording import Operation
from chaos.lab.replay.session import ReplaySession
from chaos.lab.replay.states import owner_of


def apply_user_fields(stage: ReplaySession, obj: Object) -> None:
    """Give the lab's Node the taints, labels and unschedulable that users gave the recorded one."""
    found = stage.cluster.store.get("nodes", "", name_of(obj))
    if found is None:
        return
    new: Object = clone(found)
    own = [taint for taint in new["spec"].get("taints") or [] if taint not in user_taints(new)]
    new["spec"]["taints"] = [*own, *clone(user_taints(obj))]
    new["spec"].pop("unschedulable", None)
    if obj["spec"].get("unschedulable"):
        new["spec"]["unschedulable"] = True
    new["metadata"]["labels"] = dict(labels_of(obj))
    stage.cluster.update_object("nodes", new)


def _create(stage: ReplaySession, deed: Operation) -> None:
    cluster, plural, obj = stage.cluster, deed.params["plural"], deed.params["object"]
    made = add_behaviour(plural, obj, stage.recording)
    if plural not in CLUSTER_WIDE and cluster.store.get("namespaces", "", namespace_of(obj)) is None:
        cluster.create_object("namespaces", {"metadata": {"name": namespace_of(obj)}})
    if cluster.store.get(plural, namespace_of(obj), name_of(obj)) is None:
        cluster.create_object(plural, made)


def _update(stage: ReplaySession, deed: Operation) -> None:
    plural, obj = deed.params["plural"], deed.params["object"]
    found = stage.cluster.store.get(plural, namespace_of(obj), name_of(obj))
    if found is not None:
        new = {**clone(found), "spec": add_behaviour(plural, obj, stage.recording)["spec"]}
        stage.cluster.update_object(plural, new)


def _delete(stage: ReplaySession, deed: Operation) -> None:
    """As it was asked for then; what is not there any more in the lab is a difference that the comparison tells."""
    plural = deed.params["plural"]
    found = _counterpart(stage, deed)
    if found is not None:
        stage.cluster.delete_object(plural, namespace_of(found), name_of(found), deed.params.get("grace"))


def _evict(stage: ReplaySession, deed: Operation, attempt: int = 1) -> None:
    """A refusal is the lab's answer: that it went through then is a difference that the comparison tells."""
    found = _counterpart(stage, deed)
    if found is None:
        return
    try:
        stage.cluster.evict_pod(namespace_of(found), name_of(found))
    except BudgetBusy as busy:
        if attempt < ATTEMPTS:
            stage.cluster.sim.after(busy.retry_delay, _evict, stage, deed, attempt + 1)
    except EvictionRefused:
        return


def _set_finalizers(stage: ReplaySession, deed: Operation) -> None:
    found = _counterpart(stage, deed)
    if found is not None:
        new: Object = clone(found)
        new["metadata"]["finalizers"] = list(deed.params["object"]["metadata"].get("finalizers") or [])
        stage.cluster.update_object("pods", new)


def _counterpart(stage: ReplaySession, deed: Operation) -> Object | None:
    """The object of this name, or for a pod whose name was generated one like it: of its owner, on its node."""
    plural, obj, store = deed.params["plural"], deed.params["object"], stage.cluster.store
    found = store.get(plural, namespace_of(obj), name_of(obj))
    if found is not None or plural != "pods":
        return found
    like = [pod for pod in store.list("pods", namespace_of(obj)) if owner_of(pod) == owner_of(obj)]
    return next((pod for pod in like if node_of(pod) == node_of(obj) and is_active(pod)), None)


USER_OPERATIONS: dict[str, Callable[[ReplaySession, Operation], None]] = {
    "user-create": _create,
    "user-update": _update,
    "user-delete": _delete,
    "user-force-delete": _delete,
    "user-evict": _evict,
    "user-finalizers": _set_finalizers,
    "user-node": lambda stage, deed: apply_user_fields(stage, deed.params["object"]),
}
