"""What the workload controllers share.

Work queue of a controller: a key that was added several times is handled once, a few milliseconds later.
Pod counts by owner, updated with every change: a sync need not list thousands of pods.
Base class of the workload controllers.
ControllerRevisions: the history of templates of a StatefulSet or DaemonSet. pkg/controller/history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.registry import ForbiddenError, Registry
from chaos.lab.apiserver.store import Change, ConflictError, NotFoundError, clone
from chaos.lab.objects import (
    TERMINAL,
    Object,
    condition,
    controller_of,
    is_deleting,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    template_hash,
    uid_of,
)
from chaos.lab.sim import SimClock, Timer, transition_time

_Key = TypeVar("_Key", bound=Hashable)


class WorkQueue(Generic[_Key]):
    """Calls ``handle`` with each key after a random delay between ``low`` and ``high`` seconds."""

    def __init__(self, sim: SimClock, handle: Callable[[_Key], None], low: float = 0.005, high: float = 0.02) -> None:
        self._sim, self._handle, self._low, self._high = sim, handle, low, high
        self._timers: dict[_Key, Timer] = {}

    def add(self, key: _Key, extra_delay: float = 0.0) -> None:
        """Add a key; ``extra_delay`` in seconds."""
        known, sim, low = self._timers.get(key), self._sim, self._low
        if known is None:
            delay = low + (self._high - low) * sim.rng.random() + extra_delay
            self._timers[key] = sim.at(sim.now + delay, self._run, key)
        elif known.due > sim.now + low:
            self.add_after(key, low + (self._high - low) * sim.rng.random() + extra_delay)

    def add_after(self, key: _Key, delay: float) -> None:
        """Add a key to be handled after ``delay`` seconds, unless it is due earlier."""
        known = self._timers.get(key)
        if known is not None:
            if known.due <= self._sim.now + delay:
                return
            known.cancel()
        self._timers[key] = self._sim.after(delay, self._run, key)

    def _run(self, key: _Key) -> None:
        del self._timers[key]
        self._handle(key)


@dataclass(slots=True)
class PodCounts:
    """``active`` and ``terminating`` by IsPodActive and IsPodTerminating; ``ready``: active and Ready."""

    pods: int = 0
    active: int = 0
    ready: int = 0
    terminating: int = 0


class OwnerIndex:
    """Counts of pods by uid of an owner of one kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._by_owner: defaultdict[str, PodCounts] = defaultdict(PodCounts)

    def of(self, uid: str) -> PodCounts:
        """Counts of the owner's pods; updated in place with the next change."""
        return self._by_owner.get(uid) or PodCounts()

    def on_change(self, change: Change) -> None:
        """Handle a change of a pod."""
        before, after = change.before, change.object if change.type != "DELETED" else None
        if before is not None and after is not None and _has_same_owner(before, after):
            old, new = _classes(before), _classes(after)
            if old == new:
                return
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, 1)

    def _count(self, pod: Object, by: int) -> None:
        owner = controller_of(pod)
        if owner is None or owner["kind"] != self._kind:
            return
        counts, (active, ready, terminating) = self._by_owner[owner["uid"]], _classes(pod)
        counts.pods += by
        counts.active += by * active
        counts.ready += by * ready
        counts.terminating += by * terminating
        if not counts.pods:
            del self._by_owner[owner["uid"]]


def _has_same_owner(before: Object, after: Object) -> bool:
    return before["metadata"].get("ownerReferences") is after["metadata"].get("ownerReferences")


def _classes(pod: Object) -> tuple[bool, bool, bool]:
    """Whether the pod is active, active and ready, terminating."""
    if pod.get("status", {}).get("phase") in TERMINAL:
        return False, False, False
    if "deletionTimestamp" in pod["metadata"]:
        return False, False, True
    return True, is_ready(pod), False


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
            late = self._registry.rules.workloads.replacement_delay if self.owned == "pods" else 0.0
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
        remaining = transition_time(ready) + seconds - self._sim.now if seconds else 0.0
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


LABEL = "controller-revision-hash"  # on pods
_PLURAL = "controllerrevisions"


def revision_of(pod: Object) -> str:
    """Revision of the pod by its label, empty if it has none."""
    return labels_of(pod).get(LABEL, "")


def template_of(revision: Object) -> Object:
    """Pod template of a revision."""
    return {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}


def new_revision(owner: Object, kind: str, digest: str, number: int) -> Object:
    """New revision with the owner's template."""
    labels = dict(owner["spec"]["template"]["metadata"]["labels"])
    return {
        "metadata": {
            "name": f"{name_of(owner)}-{digest}",
            "namespace": namespace_of(owner),
            "labels": labels | {LABEL: digest},
            "annotations": dict(owner["metadata"].get("annotations") or {}),
            "ownerReferences": [owner_reference("apps/v1", kind, owner)],
        },
        "data": {"spec": {"template": {**clone(owner["spec"]["template"]), "$patch": "replace"}}},
        "revision": number,
    }


class Revisions:
    """Revisions of the owners of one kind."""

    def __init__(self, registry: Registry, kind: str) -> None:
        self._registry, self._store, self._kind = registry, registry.store, kind

    def all(self, owner: Object) -> list[Object]:
        """Revisions of the owner, the oldest first."""
        return sorted(self._store.list_controlled(_PLURAL, uid_of(owner)), key=lambda item: int(item["revision"]))

    def newest(self, owner: Object) -> Object:
        """Revision of the owner's current template: the last one, an old one made the last, or a new one.

        Raises ForbiddenError in a namespace that is being terminated.
        """
        known = self.all(owner)
        same = [item for item in known if template_of(item) == owner["spec"]["template"]]
        number = max((item["revision"] for item in known), default=0) + 1
        if not same:
            created = new_revision(owner, self._kind, template_hash(owner["spec"]["template"]), number)
            return self._store.get(_PLURAL, namespace_of(owner), name_of(created)) or self._registry.create(
                _PLURAL, created
            )
        if same[-1] is known[-1]:
            return same[-1]
        return self._registry.update(_PLURAL, {**clone(same[-1]), "revision": number})

    def trim(self, owner: Object, live: Collection[str]) -> None:
        """Delete the oldest unused revisions beyond revisionHistoryLimit. ``live``: names and hashes in use."""
        old = [item for item in self.all(owner) if not {name_of(item), labels_of(item)[LABEL]} & set(live)]
        for item in old[: max(0, len(old) - owner["spec"].get("revisionHistoryLimit", 10))]:
            self._registry.delete(_PLURAL, namespace_of(item), name_of(item))
