"""Objects that are built when they are read: no client reads most events of a large cluster."""

from __future__ import annotations

from typing import Any, Protocol

from chaos.lab.apiserver.store.index import Key
from chaos.lab.objects.accessors import Object


class Deferred(Protocol):
    """What an object is built from."""

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
