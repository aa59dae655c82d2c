"""Conditions of a deletion: preconditions, the propagation policy, and for evictions budgets."""

from __future__ import annotations

from chaos.lab.apiserver.store import ConflictError, Store
from chaos.lab.objects import Object, labels_of, selector_matches

FINALIZERS = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}  # propagationPolicy to finalizer


class EvictionRefused(RuntimeError):
    """Error 429, 500 or 504. ``retry_after`` in seconds, 0 for no such header; ``cause`` empty for none."""

    def __init__(self, code: int, message: str, cause: str = "", retry_after: int = 0) -> None:
        super().__init__(message)
        self.code, self.cause, self.retry_after = code, cause, retry_after


def budgets_of(store: Store, pod: Object, *, heeds_selectors: bool = True) -> list[Object]:
    """Budgets that select the pod; without ``heeds_selectors`` all of its namespace."""
    return [
        budget
        for budget in store.list("poddisruptionbudgets", pod["metadata"]["namespace"])
        if not heeds_selectors or selector_matches(budget["spec"].get("selector"), labels_of(pod))
    ]


def is_protected(store: Store, pod: Object) -> bool:
    """Whether a budget allows no disruption of the pod: for who heeds budgets, as only the eviction API does."""
    return any(budget["status"]["disruptionsAllowed"] <= 0 for budget in budgets_of(store, pod))


def check_preconditions(obj: Object, preconditions: Object) -> None:
    """Compare uid and resourceVersion with a client's preconditions. Raises ConflictError."""
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        value, found = preconditions.get(field), obj["metadata"].get(field)
        if value is not None and value != found:
            raise ConflictError(
                f"the {label} in the precondition ({value}) does not match the {label} in record ({found})"
            )


def with_policy(obj: Object, propagation: str) -> Object:
    """The object with the finalizer for its propagation policy. deletionFinalizersForGarbageCollection."""
    before = obj["metadata"].get("finalizers") or []
    after = [item for item in before if item not in FINALIZERS.values()]
    if propagation in FINALIZERS:
        after.append(FINALIZERS[propagation])
    return obj if after == before else {**obj, "metadata": {**obj["metadata"], "finalizers": after}}
