"""Object store with one resource version for all objects, and subscriptions to changes.

Objects are plain JSON dictionaries. Objects from :meth:`Store.get` and :meth:`Store.list` must not be changed in
place: change a copy and pass it to :meth:`Store.update`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from chaos.lab.apiserver.index import (
    Deferred,
    Indexer,
    Key,
    Objects,
    Stub,
    StubbedObjects,
    Value,
    owner_values,
    pod_values,
    service_values,
    uuid4,
)
from chaos.lab.objects import Object, controller_of, labels_of, name_of, namespace_of, selector_matches
from chaos.lab.sim import SimClock

_CONTAINERS = (dict, list)
_INDEXES = {"pods": pod_values, "services": service_values}

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def clone(value: Any) -> Any:
    """Deep copy of plain JSON data; several times faster than ``copy.deepcopy``."""
    kind = type(value)
    if kind is dict:
        return {key: clone(item) if type(item) in _CONTAINERS else item for key, item in value.items()}
    if kind is list:
        return [clone(item) if type(item) in _CONTAINERS else item for item in value]
    return value


class Change(NamedTuple):
    """A change of an object. ``type``: ADDED, MODIFIED or DELETED; ``before``: None for ADDED; ``at``: simulated time.

    ``key``: namespace and name.
    """

    version: int
    type: str
    plural: str
    object: Object
    before: Object | None
    at: float = 0.0
    key: Key = ("", "")


class DeferredChange(Change):
    """Creation of a deferred event, which is built when it is read."""

    __slots__ = ()

    @property
    def object(self) -> Object:
        """The object."""
        return cast("Stub", tuple.__getitem__(self, 3)).object()


Listener = Callable[[Change], None]
Listeners = list[Listener]


class NotFoundError(KeyError):
    """The object does not exist."""

    def __init__(self, plural: str, name: str) -> None:
        super().__init__(f'{plural} "{name}" not found')
        self.plural, self.name = plural, name


class ConflictError(ValueError):
    """The object has another resourceVersion or uid than expected."""


class ExistsError(ConflictError):
    """The object exists already."""


class Store:
    """All objects by plural name and key."""

    def __init__(self, sim: SimClock) -> None:
        self.sim = sim
        self.version = 1
        self._indexers: dict[str, Indexer] = {}
        self._subscribers: list[tuple[Listener, tuple[str, ...], str, bool]] = []
        self._listener_cache: dict[tuple[str, ...], Listeners] = {}  # by plural and owner kinds
        self._event_listeners: Listeners | None = None  # to deferred events
        self._node_listeners: dict[str, Listener] = {}

    def subscribe(self, call: Listener, *plurals: str, owner: str = "", deferred: bool = True) -> None:
        """Call ``call`` with every change of these kinds, by default of all, at once and in order.

        With ``owner``, a kind: only changes of objects whose controller is, or was, of that kind.
        With ``deferred=False``: not the creation of deferred events, which have neither owners nor finalizers.
        Controllers should queue the change and act later.
        """
        self._subscribers.append((call, plurals, owner, deferred))
        self._listener_cache.clear()
        self._event_listeners = None

    def subscribe_node(self, node: str, call: Listener) -> None:
        """Call ``call`` with every change of a pod bound to the node, before other subscribers. One per node."""
        self._node_listeners[node] = call

    def get(self, plural: str, namespace: str, name: str) -> Object | None:
        table = self._indexers.get(plural)
        return table.objects.get((namespace, name)) if table is not None else None

    def list(self, plural: str, namespace: str = "") -> Objects:
        """Objects in order of key; of all namespaces if ``namespace`` is empty."""
        table = self._indexers.get(plural)
        return table.list(namespace) if table is not None else []

    def list_owned(self, plural: str, uid: str) -> Objects:
        """Objects with an owner of this uid, in order of key."""
        return self._list_by_value(plural, ("owner", uid))

    def list_controlled(self, plural: str, uid: str) -> Objects:
        """Objects whose controller has this uid, in order of key."""
        return self._list_by_value(plural, ("controller", uid))

    def pods_on(self, node: str) -> Objects:
        """Pods bound to the node, in order of key."""
        return self._list_by_value("pods", ("node", node))

    def nodes_with_pods(self) -> Iterator[str]:
        """Names of all nodes that pods are bound to."""
        table = self._indexers.get("pods")
        return (value[1] for value in (table.values() if table is not None else ()) if value[0] == "node")

    def pods_using(self, namespace: str, claim: str) -> Objects:
        """Pods that use the PersistentVolumeClaim, in order of key."""
        return self._list_by_value("pods", ("claim", namespace, claim))

    def pods_matching(self, namespace: str, selector: Object | None) -> Objects:
        """Pods that the LabelSelector selects, in order of key."""
        labels = (selector or {}).get("matchLabels") or {}
        for key, value in labels.items():
            pods = self._list_by_value("pods", ("label", namespace, key, value))
            break
        else:
            pods = self.list("pods", namespace)
        return [pod for pod in pods if selector_matches(selector, labels_of(pod))]

    def services_selecting(self, pod: Object) -> Objects:
        """Services whose selectors select the pod, in order of key."""
        namespace, labels = namespace_of(pod), labels_of(pod)
        found = [
            service
            for key, value in labels.items()
            for service in self._list_by_value("services", ("selector", namespace, key, value))
            if service["spec"]["selector"].items() <= labels.items()
        ]
        return sorted(found, key=name_of)

    def _list_by_value(self, plural: str, value: Value) -> Objects:
        table = self._indexers.get(plural)
        return table.by_value(value) if table is not None else []

    def plurals(self) -> tuple[str, ...]:
        """Kinds of all objects that ever existed."""
        return tuple(self._indexers)

    def create(self, plural: str, obj: Object, dry_run: bool = False) -> Object:
        """Store a new object with uid, resourceVersion and creationTimestamp. Raises ExistsError."""
        metadata = obj.setdefault("metadata", {})
        key = (metadata.get("namespace", ""), metadata["name"])
        if self.get(plural, *key) is not None:
            raise ExistsError(f'{plural} "{metadata["name"]}" already exists')
        metadata.setdefault("uid", uuid4(self.sim.rng.getrandbits(128)))
        metadata.setdefault("creationTimestamp", self.sim.timestamp())
        if not dry_run:
            self._commit("ADDED", plural, key, obj, None)
        return obj

    def defer_event(self, key: Key, deferred: Deferred) -> None:
        """Store a new event, which is built when it is read. Its key must be new."""
        plural = "events"
        indexer = self._indexers.get(plural) or self._add_indexer(plural)
        self.version += 1
        stub = Stub(deferred, self.sim.rng.getrandbits(128), self.version)
        indexer.put_stub(key, stub)
        fields: Any = (self.version, "ADDED", plural, stub, None, self.sim.now, key)
        change = DeferredChange(*fields)
        if self._event_listeners is None:
            self._event_listeners = [
                call
                for call, plurals, owner, wanted in self._subscribers
                if wanted and not owner and (not plurals or plural in plurals)
            ]
        for call in self._event_listeners:
            call(change)

    def exists(self, plural: str, key: Key) -> bool:
        """Whether there is an object with this key; builds no deferred one."""
        table = self._indexers.get(plural)
        return table is not None and key in table.objects

    def update(self, plural: str, obj: Object, expect: str | None = None, dry_run: bool = False) -> Object:
        """Replace an object if it differs. Raises NotFoundError, ConflictError."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        before = self.get(plural, *key)
        if before is None:
            raise NotFoundError(plural, metadata["name"])
        if expect is not None and expect != before["metadata"]["resourceVersion"]:
            raise ConflictError(_MODIFIED)
        return self._replace(plural, key, obj, before, dry_run)

    def _replace(self, plural: str, key: Key, obj: Object, before: Object, dry_run: bool = False) -> Object:
        obj["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
        if obj == before:
            return before
        if not dry_run:
            self._commit("MODIFIED", plural, key, obj, before)
        return obj

    def patch(self, plural: str, namespace: str, name: str, change: Callable[[Object], None]) -> Object | None:
        """Store a copy that ``change`` has edited. None if the object does not exist."""
        before = self.get(plural, namespace, name)
        if before is None:
            return None
        obj: Object = clone(before)
        change(obj)
        return self._replace(plural, (namespace, name), obj, before)

    def patch_status(self, plural: str, namespace: str, name: str, change: Callable[[Object], None]) -> Object | None:
        """Patch, but copy only the object and its status: ``change`` must replace what is within them."""
        before = self.get(plural, namespace, name)
        if before is None:
            return None
        obj = {**before, "metadata": {**before["metadata"]}, "status": {**(before.get("status") or {})}}
        change(obj)
        return self._replace(plural, (namespace, name), obj, before)

    def replace_spec(self, plural: str, namespace: str, name: str, spec: Object) -> Object | None:
        """Store a copy with another spec. None if the object does not exist."""
        before = self.get(plural, namespace, name)
        if before is None:
            return None
        obj = {**before, "metadata": {**before["metadata"]}, "spec": spec}
        return self._replace(plural, (namespace, name), obj, before)

    def remove(self, plural: str, namespace: str, name: str) -> Object:
        """Remove an object immediately. Raises NotFoundError."""
        before = self.get(plural, namespace, name)
        if before is None:
            raise NotFoundError(plural, name)
        removed = {**before, "metadata": {**before["metadata"]}}
        self._commit("DELETED", plural, (namespace, name), removed, before)
        return removed

    def _commit(self, type_: str, plural: str, key: Key, obj: Object, before: Object | None) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        indexer = self._indexers.get(plural) or self._add_indexer(plural)
        if type_ == "DELETED":
            indexer.drop(key)
        else:
            indexer.put(key, obj)
        change = Change(self.version, type_, plural, obj, before, self.sim.now, key)
        if plural == "pods" and (kubelet := self._node_listeners.get(obj["spec"].get("nodeName"))):
            kubelet(change)
        topics = (plural, *_owner_kinds(obj, before))
        for call in self._listener_cache.get(topics) or self._listeners(topics):
            call(change)

    def _add_indexer(self, plural: str) -> Indexer:
        objects = StubbedObjects() if plural == "events" else {}
        return self._indexers.setdefault(plural, Indexer(_INDEXES.get(plural, owner_values), objects))

    def _listeners(self, topics: tuple[str, ...]) -> Listeners:
        found = self._listener_cache[topics] = [
            call
            for call, plurals, owner, _ in self._subscribers
            if (not plurals or topics[0] in plurals) and (not owner or owner in topics[1:])
        ]
        return found


def _owner_kinds(obj: Object, before: Object | None) -> tuple[str, ...]:
    """Kinds of the controllers that the object has or had, if any."""
    references = obj["metadata"].get("ownerReferences")
    if before is None or before["metadata"].get("ownerReferences") is references:
        owner = controller_of(obj) if references else None
        return (owner["kind"],) if owner is not None else ()
    return tuple([owner["kind"] for owner in (controller_of(obj), controller_of(before)) if owner is not None])
