"""Objects of one kind, in order of key and by indexed values, as in client-go's Indexer.

Objects that are built when they are read: no client reads most events of a large cluster.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from chaos.lab.objects import Object, claims_of, labels_of, namespace_of, node_of

Key = tuple[str, str]  # namespace ("" for cluster-wide), name
Keys = list[Key]
Objects = list[Object]
Value = tuple[str, ...]  # index and value; the namespace between them for namespaced values
Values = frozenset[Value]
_NONE: Values = frozenset()


class SortedKeys:
    """Set of keys that is sorted only when it is listed."""

    __slots__ = ("_keys", "_order", "_to_add", "_to_drop")

    def __init__(self) -> None:
        self._keys: set[Key] = set()
        self._order: Keys = []
        self._to_add: set[Key] = set()
        self._to_drop = False

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: Key) -> None:
        if key not in self._keys:
            self._to_add.add(key)
            self._keys.add(key)

    def drop(self, key: Key) -> None:
        self._keys.remove(key)
        self._to_add.discard(key)
        self._to_drop = True

    def list(self, namespace: str = "") -> Keys:
        """Keys in order; of all namespaces if ``namespace`` is empty."""
        order = self._sorted()
        if namespace:
            order = order[bisect_left(order, (namespace,)) : bisect_left(order, (namespace + "\0",))]
        return order

    def _sorted(self) -> Keys:
        if self._to_drop:
            self._order = [key for key in self._order if key in self._keys and key not in self._to_add]
            self._to_drop = False
        if self._to_add:
            self._order += self._to_add
            self._order.sort()
            self._to_add.clear()
        return self._order


class Indexer:
    """``objects``, empty at first, by key and by the values that ``index_func`` returns for them."""

    __slots__ = ("_buckets", "_index_func", "_keys", "_values", "objects")

    def __init__(self, index_func: Callable[[Object], Values], objects: dict[Key, Object]) -> None:
        self._index_func = index_func
        self.objects = objects
        self._keys = SortedKeys()
        self._buckets: dict[Value, SortedKeys] = {}
        self._values: dict[Key, Values] = {}  # of objects that have any

    def put(self, key: Key, obj: Object) -> None:
        before = self.objects.get(key)
        self.objects[key] = obj
        if before is None:
            self._keys.add(key)
        elif _has_same_values(before, obj):
            return
        values = self._index_func(obj)
        if values or key in self._values:
            self._index(key, values)

    def put_stub(self, key: Key, stub: Any) -> None:
        """Add what ``objects`` builds a new object from, which has no values."""
        self.objects[key] = stub
        self._keys.add(key)

    def drop(self, key: Key) -> None:
        del self.objects[key]
        self._keys.drop(key)
        self._index(key, _NONE)

    def list(self, namespace: str = "") -> Objects:
        """Objects in order of key; of all namespaces if ``namespace`` is empty."""
        return [self.objects[key] for key in self._keys.list(namespace)]

    def by_value(self, value: Value) -> Objects:
        """Objects with this value, in order of key."""
        bucket = self._buckets.get(value)
        return [self.objects[key] for key in bucket.list()] if bucket is not None else []

    def values(self) -> Iterable[Value]:
        """Values that any object has."""
        return self._buckets

    def _index(self, key: Key, values: Values) -> None:
        known = self._values.pop(key, _NONE)
        for value in known - values:
            self._remove_value(key, value)
        for value in values - known:
            if value not in self._buckets:
                self._buckets[value] = SortedKeys()
            self._buckets[value].add(key)
        if values:
            self._values[key] = values

    def _remove_value(self, key: Key, value: Value) -> None:
        bucket = self._buckets[value]
        bucket.drop(key)
        if not bucket:
            del self._buckets[value]


def _has_same_values(before: Object, after: Object) -> bool:
    """Whether both versions share the indexed fields: only the status differs."""
    old, new = before["metadata"], after["metadata"]
    return (
        before.get("spec") is after.get("spec")
        and old.get("labels") is new.get("labels")
        and old.get("ownerReferences") is new.get("ownerReferences")
    )


def owner_values(obj: Object) -> Values:
    """Values of any object: UIDs of its owners and of its controller."""
    references = obj["metadata"].get("ownerReferences")
    return frozenset(_owner_uids(references)) if references else _NONE


def pod_values(pod: Object) -> Values:
    """Values of a pod: also its node, labels and claims."""
    namespace = namespace_of(pod)
    values = {*owner_values(pod), *(("label", namespace, key, str(value)) for key, value in labels_of(pod).items())}
    values.update(("claim", namespace, name) for name in claims_of(pod))
    if node := node_of(pod):
        values.add(("node", node))
    return frozenset(values)


def service_values(service: Object) -> Values:
    """Values of a Service: also the first label of its selector, if it has one."""
    first = list((service.get("spec") or {}).get("selector") or {})[:1]
    return owner_values(service) | {
        ("selector", namespace_of(service), key, service["spec"]["selector"][key]) for key in first
    }


def _owner_uids(references: Iterable[Object]) -> Iterator[Value]:
    for reference in references:
        yield "owner", reference.get("uid", "")
        if reference.get("controller"):
            yield "controller", reference.get("uid", "")


class Deferred(Protocol):
    """The parts from which an object is built."""

    def build(self, uid: str, version: int) -> Object:
        """The object, with this uid and resourceVersion; without owners and finalizers."""


class Stub:
    """Place of a deferred object in the store. ``uid_bits`` are those of its uid."""

    __slots__ = ("_deferred", "_object", "_uid_bits", "_version")

    def __init__(self, deferred: Deferred, uid_bits: int, version: int) -> None:
        self._deferred, self._uid_bits, self._version = deferred, uid_bits, version
        self._object: Object | None = None

    def object(self) -> Object:
        """The object; the same at each call."""
        if self._object is None:
            self._object = self._deferred.build(uuid4(self._uid_bits), self._version)
        return self._object


class StubbedObjects(dict[Key, Object]):
    """Objects by key, some of them stubs, which are replaced when they are read by key."""

    def __getitem__(self, key: Key) -> Object:
        found: Any = super().__getitem__(key)
        if type(found) is Stub:
            found = self[key] = found.object()
        result: Object = found
        return result

    def get(self, key: Key, default: Any = None) -> Any:
        """The object, ``default`` if there is none."""
        try:
            return self[key]
        except KeyError:
            return default


def uuid4(bits: int) -> str:
    """Same as ``str(uuid.UUID(int=bits, version=4))``; several times faster."""
    text = f"{bits:032x}"
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"
