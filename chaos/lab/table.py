"""The objects of one kind: in order of key, and by what controllers look them up by, as client-go's indexers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from chaos.lab.objects import Object, claims_of, labels_of, namespace_of, node_of

Key = tuple[str, str]  # namespace ("" for cluster-wide), name
Keys = list[Key]
Objects = list[Object]
Value = tuple[str, ...]  # index and value, of namespaced values with the namespace


class Ordered:
    """Objects by key, sorted when asked for: most changes leave the keys as they are."""

    __slots__ = ("_added", "_dropped", "_objects", "_order")

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._order: list[Key] = []
        self._added: set[Key] = set()
        self._dropped = False

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        return self._objects.get(key)

    def put(self, key: Key, obj: Object) -> None:
        if key not in self._objects:
            self._added.add(key)
        self._objects[key] = obj

    def drop(self, key: Key) -> None:
        del self._objects[key]
        self._added.discard(key)
        self._dropped = True

    def list(self, namespace: str = "") -> Objects:
        order = self._sorted()
        if namespace:
            order = order[bisect_left(order, (namespace,)) : bisect_left(order, (namespace + "\0",))]
        return [self._objects[key] for key in order]

    def _sorted(self) -> Keys:
        if self._dropped:
            self._order = [key for key in self._order if key in self._objects and key not in self._added]
            self._dropped = False
        if self._added:
            self._order += self._added
            self._order.sort()
            self._added.clear()
        return self._order


class Table(Ordered):
    """Indexed by what ``values_of`` tells of an object."""

    __slots__ = ("_buckets", "_values", "_values_of")

    def __init__(self, values_of: Callable[[Object], set[Value]]) -> None:
        super().__init__()
        self._values_of = values_of
        self._buckets: dict[Value, Ordered] = {}
        self._values: dict[Key, set[Value]] = {}

    def put(self, key: Key, obj: Object) -> None:
        known = self._values.get(key)
        values = known if known is not None and _alike(self._objects[key], obj) else self._values_of(obj)
        super().put(key, obj)
        for value in (known or values) - values:
            self._leave(key, value)
        for value in values:
            if value not in self._buckets:
                self._buckets[value] = Ordered()
            self._buckets[value].put(key, obj)
        self._values[key] = values

    def drop(self, key: Key) -> None:
        super().drop(key)
        for value in self._values.pop(key):
            self._leave(key, value)

    def having(self, value: Value) -> Objects:
        """The objects with this value, in order of key."""
        bucket = self._buckets.get(value)
        return bucket.list() if bucket is not None else []

    def _leave(self, key: Key, value: Value) -> None:
        bucket = self._buckets[value]
        bucket.drop(key)
        if not bucket:
            del self._buckets[value]


def _alike(before: Object, after: Object) -> bool:
    """Whether both share what is indexed: only the status was written."""
    old, new = before["metadata"], after["metadata"]
    return (
        before.get("spec") is after.get("spec")
        and old.get("labels") is new.get("labels")
        and old.get("ownerReferences") is new.get("ownerReferences")
    )


def by_owner(obj: Object) -> set[Value]:
    """Any object: the uids of its owners and of its controller."""
    values: set[Value] = set()
    for reference in obj["metadata"].get("ownerReferences") or ():
        values.add(("owner", reference.get("uid", "")))
        if reference.get("controller"):
            values.add(("controller", reference.get("uid", "")))
    return values


def of_pod(pod: Object) -> set[Value]:
    """A pod: also its node, labels and claims."""
    values, namespace = by_owner(pod), namespace_of(pod)
    values.update(("label", namespace, key, str(value)) for key, value in labels_of(pod).items())
    values.update(("claim", namespace, name) for name in claims_of(pod))
    if node := node_of(pod):
        values.add(("node", node))
    return values
