"""Entries, and the versions of one object."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct

from chaos.model.packing import Packer

T = TypeVar("T")
Key = tuple[str, str]  # namespace, name
_MANY = 2  # versions of an object that exists, from which on all but the last are packed


class Entry(Struct, frozen=True, gc=False):
    """A decoded recording entry. ``object``: a struct of model.kube, ActionRecord, BlindWindow or JSON."""

    seq: int
    t: float
    kind: str
    type: str
    object: Any
    node: str = ""
    note: str = ""


class Version(Struct, Generic[T], frozen=True, gc=False, array_like=True):
    """State of an object from some moment in (``earliest``, ``latest``] on; it was received at ``t``.

    ``order``: its resourceVersion, or 0 if that is not comparable. ``is_deleted``: ``object`` is the final state;
    ``final_state_unknown`` if that is stale, because the deletion was deduced from a new list after a blind window.
    """

    t: float
    seq: int
    object: T
    is_deleted: bool = False
    final_state_unknown: bool = False
    earliest: float = float("inf")
    order: int = 0
    latest: float = float("inf")


class History(Generic[T]):
    """All versions of one object, oldest first; ``revision`` grows with each change of them.

    Only ``append`` and ``replace`` change a history. ``times``: of all versions; ``first_seq``: of the first. With a
    ``packer``, of versions, old ones are packed, and unpacked when they are asked for.
    """

    __slots__ = ("_is_due", "_is_requested", "_packed", "_packer", "_recent", "first_seq", "revision", "times")

    def __init__(self, packer: Packer | None = None) -> None:
        self.times = array("d")
        self.revision = 0
        self.first_seq = -1
        self._packer = packer
        self._packed: tuple[tuple[int, bytes], ...] = ()  # with the first seq of each
        self._recent: list[Version[T]] = []  # what is not packed
        self._is_requested = self._is_due = False

    @property
    def is_packed(self) -> bool:
        """Whether some versions are packed."""
        return bool(self._packed)

    @property
    def versions(self) -> list[Version[T]]:
        """All versions. Do not change them."""
        self._is_requested = True
        if self._packed:
            self._recent, self._packed = self.peek(), ()
            self._pack_later()
        return self._recent

    def peek(self) -> list[Version[T]]:
        """All versions, for somebody who asks only once: what is packed stays so."""
        return [version for _, packed in self._packed for version in self._unpack(packed)] + self._recent

    def append(self, version: Version[T]) -> None:
        if not self.times:
            self.first_seq = version.seq
        self._recent.append(version)
        self.times.append(version.t)
        self.revision += 1
        if version.is_deleted or len(self._recent) >= _MANY:
            self._pack_later()

    def replace(self, index: int, version: Version[T]) -> None:
        """Replace a version by one of the same state and receipt, of whose time more is known."""
        if index < len(self.times) - len(self._recent):
            self.versions[index] = version
        else:
            self._recent[index - len(self.times)] = version
        self.revision += 1

    def version(self, index: int) -> Version[T]:
        """The version with that number, from 0 on."""
        recent = index - (len(self.times) - len(self._recent))
        return self._recent[recent] if recent >= 0 else self.versions[index]

    def at(self, t: float) -> Version[T] | None:
        """The version at ``t`` (inclusive), None before the first."""
        index = bisect_right(self.times, t)
        if not index:
            return None
        return self.last if index == len(self.times) else self.versions[index - 1]

    def after(self, t: float) -> list[Version[T]]:
        """The versions that were received after ``t``."""
        index = bisect_right(self.times, t)
        recent = index - (len(self.times) - len(self._recent))
        return self._recent[recent:] if recent >= 0 else self.versions[index:]

    @property
    def first(self) -> Version[T]:
        return self.versions[0] if self._packed else self._recent[0]

    @property
    def last(self) -> Version[T]:
        return self._recent[-1] if self._recent else self.versions[-1]

    def __iter__(self) -> Iterator[Version[T]]:
        return iter(self.versions)

    def objects_from(self, seq: int) -> list[T]:
        """The object of the version that is the entry ``seq``, and those of the versions that are stored behind it.

        At least one; what is packed stays so.
        """
        versions = self._recent
        if not versions or seq < versions[0].seq:
            index = bisect_right(self._packed, seq, key=lambda packed: packed[0])
            versions = self._unpack(self._packed[index - 1][1])
        return [version.object for version in versions[bisect_left(versions, seq, key=lambda each: each.seq) :]]

    def pack(self) -> bool:
        """Pack all versions, of an object that exists all but the last; false if somebody asked since the last call."""
        if self._is_requested:
            self._is_requested = False
            return False
        self._is_due = False
        count = len(self._recent) - (not self._recent[-1].is_deleted) if self._recent else 0
        if count and self._packer:
            packed = self._packer.pack(self._recent[:count])
            self._packed, self._recent = (*self._packed, (self._recent[0].seq, packed)), self._recent[count:]
        return True

    def _pack_later(self) -> None:
        if self._packer is not None and not self._is_due:
            self._is_due = True
            self._packer.later(self)

    def _unpack(self, packed: bytes) -> list[Version[T]]:
        assert self._packer is not None  # noqa: S101 - it has packed them
        return self._packer.unpack(packed)
