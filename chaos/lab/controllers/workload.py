"""Base class of the workload controllers."""

from __future__ import annotations

from abc import ABC, abstractmethod

from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.registry import ForbiddenError, Registry
from chaos.lab.apiserver.store import Change, ConflictError, NotFoundError, clone
from chaos.lab.controllers.workqueue import WorkQueue
from chaos.lab.objects.accessors import (
    Object,
    condition,
    controller_of,
    is_deleting,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from chaos.lab.sim.clock import SimClock, seconds_of

Key = tuple[str, str]


class WorkloadController(ABC):
    """Syncs owners of one kind when they or their dependents change."""

    plural: str
    kind: str
    owned: str
    component: str
    api_version = "apps/v1"

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._registry, self._store = sim, registry, registry.store
        self._recorder = Recorder(sim, registry.store, self.component)
        self._queue: WorkQueue[Key] = WorkQueue(sim, self._run)

    def start(self) -> None:
        self._store.subscribe(self._on_change, self.plural)
        self._store.subscribe(self._on_owned_change, self.owned, owner=self.kind)

    @abstractmethod
    def sync(self, owner: Object) -> None:
        """Move the dependents towards the owner's spec, then write its status."""

    def _on_change(self, change: Change) -> None:
        if change.type != "DELETED":
            self._queue.add(change.key)

    def _on_owned_change(self, change: Change) -> None:
        """Queue the controller of a dependent."""
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == self.kind:
            late = self._registry.spec.shift("replacement") if self.owned == "pods" else 0.0
            self._queue.add((change.key[0], owner["name"]), late)

    def _run(self, key: Key) -> None:
        owner = self._store.get(self.plural, *key)
        if owner is not None and not is_deleting(owner):
            self.sync(owner)

    def _list_owned(self, owner: Object) -> list[Object]:
        return self._store.list_controlled(self.owned, uid_of(owner))

    def _is_available(self, owner: Object, pod: Object) -> bool:
        """Whether the pod is Ready for minReadySeconds; if not yet, queue the owner for that time. IsPodAvailable."""
        ready = condition(pod, "Ready")
        if ready is None or ready["status"] != "True":
            return False
        seconds = owner["spec"].get("minReadySeconds", 0)
        remaining = seconds_of(ready["lastTransitionTime"]) + seconds - self._sim.now if seconds else 0.0
        if remaining > 0:
            self._queue.add_after((namespace_of(owner), name_of(owner)), remaining)
        return remaining <= 0

    def _new_pod(self, owner: Object, labels: dict[str, str], template: Object | None = None) -> Object:
        """New pod without a name, from the template or else the owner's template."""
        template = clone(template or owner["spec"]["template"])
        metadata = template.get("metadata") or {}
        new: Object = {"labels": {**metadata.get("labels", {}), **labels}, "namespace": namespace_of(owner)}
        new["generateName"] = f"{name_of(owner)}-"
        new["ownerReferences"] = [owner_reference(self.api_version, self.kind, owner)]
        new |= {key: metadata[key] for key in ("annotations", "finalizers") if metadata.get(key)}
        return {"metadata": new, "spec": template["spec"]}

    def _create_pod(self, owner: Object, pod: Object, text: str = "Created pod: {}") -> None:
        """Create a pod and emit an event, with the pod's name for ``{}``; emit FailedCreate if it is rejected."""
        try:
            created = self._registry.create("pods", pod)
        except (ForbiddenError, NotFoundError, ConflictError) as error:
            self._recorder.emit(self.kind, owner, "FailedCreate", f"Error creating: {error}", type_="Warning")
            return
        self._recorder.emit(self.kind, owner, "SuccessfulCreate", text.format(name_of(created)))

    def _delete_pod(self, owner: Object, pod: Object, text: str = "Deleted pod: {}") -> None:
        try:
            self._registry.delete("pods", namespace_of(pod), name_of(pod), None, {"uid": uid_of(pod)})
        except (NotFoundError, ConflictError):
            return
        self._recorder.emit(self.kind, owner, "SuccessfulDelete", text.format(name_of(pod)))

    def _write_status(self, owner: Object, status: Object) -> None:
        """Replace the status, from which the caller has left out zero counts of optional fields."""
        generation = owner["metadata"]["generation"]

        def change(obj: Object) -> None:
            obj["status"] = {**status, "observedGeneration": generation}

        self._store.patch_status(self.plural, namespace_of(owner), name_of(owner), change)
