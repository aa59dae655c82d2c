"""Entries, and the versions of one object."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct, structs

from chaos.core.packing import Block, Packer

T = TypeVar("T")
Key = tuple[str, str]  # namespace, name
_PARTED = 1e-6  # seconds between versions of one object that were received at one time
_MANY = 2  # versions of an object that exists, from which on all but the last are packed
_NONE: list[Any] = []  # what is not packed, if all is: one for all histories of objects that are gone


class Entry(Struct, frozen=True, gc=False):
    """A decoded recording entry. ``object``: a struct of model.kube, ActionRecord, BlindWindow or JSON."""

    seq: int
    t: float
    kind: str
    type: str
    object: Any
    node: str = ""
    note: str = ""
    since: float | None = None  # of a reading that took long


class Version(Struct, Generic[T], frozen=True, gc=False, array_like=True):
    """The state of an object since some moment in (``earliest``, ``latest``]. It was received at ``t``.

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

    Only ``append`` and ``replace`` change a history. ``first_seq``, ``first_time``: of the first version;
    ``is_deleted``: whether the last one is the final state. With a ``packer``, of versions, old ones are packed, and
    unpacked when they are asked for.
    """

    __slots__ = (
        "_count",
        "_is_due",
        "_is_requested",
        "_packed",
        "_packer",
        "_recent",
        "first_seq",
        "first_time",
        "is_deleted",
        "revision",
    )

    def __init__(self, packer: Packer | None = None) -> None:
        self.revision = self._count = 0
        self.first_seq = -1
        self.first_time = math.inf
        self.is_deleted = False
        self._packer = packer
        self._packed: tuple[
            Any, ...
        ] = ()  # the first seq of some versions, their block, the index in it; of the next...
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
        """All versions, for a single access: compressed versions stay compressed."""
        packed = zip(self._packed[1::3], self._packed[2::3], strict=True)
        return [version for block, index in packed for version in self._unpack(block, index)] + self._recent

    def append(self, version: Version[T]) -> None:
        if not self._count:
            self.first_seq, self.first_time = version.seq, version.t
        if self._recent is _NONE:
            self._recent = []
        self._recent.append(version)
        self.is_deleted = version.is_deleted
        if len(self._recent) > 1 and self._recent[-2].t == version.t:
            self._part()
        self._count += 1
        self.revision += 1
        if version.is_deleted or len(self._recent) >= _MANY:
            self._pack_later()

    def _part(self) -> None:
        """Move versions that were received at the same time as the last version, and are not compressed, a little
        before it.

        They happened before it, but without further proof only their time of receipt is known.
        """
        for index in range(len(self._recent) - 2, -1, -1):
            before, after = self._recent[index], self._recent[index + 1]
            if not 0 <= before.t - after.t <= _PARTED or math.isfinite(before.earliest):
                break
            self._recent[index] = structs.replace(before, t=after.t - _PARTED)

    def replace(self, index: int, version: Version[T]) -> None:
        """Replace a version by one of the same state and receipt, of whose time more is known."""
        if index < self._count - len(self._recent):
            self.versions[index] = version
        else:
            self._recent[index - self._count] = version
        self.revision += 1

    def version(self, index: int) -> Version[T]:
        """The version with that number, from 0 on."""
        recent = index - (self._count - len(self._recent))
        return self._recent[recent] if recent >= 0 else self.versions[index]

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return True  # also without versions

    def at(self, t: float) -> Version[T] | None:
        """The version at ``t`` (inclusive), None before the first."""
        if t < self.first_time:
            return None
        versions = self._since(t)
        return versions[bisect_right(versions, t, key=_time) - 1]

    def after(self, t: float) -> list[Version[T]]:
        """The versions that were received after ``t``."""
        versions = self._since(t)
        return versions[bisect_right(versions, t, key=_time) :]

    def since(self, seq: int) -> list[Version[T]]:
        """The versions from the entry ``seq`` on. Compressed versions stay compressed."""
        is_recent = not self._packed or (self._recent and self._recent[0].seq <= seq)
        versions = self._recent if is_recent else self.peek()
        return versions[bisect_left(versions, seq, key=_seq) :]

    def _since(self, t: float) -> list[Version[T]]:
        """The version at ``t`` and all after it, perhaps more."""
        return self._recent if self._recent and self._recent[0].t <= t else self.versions

    @property
    def first(self) -> Version[T]:
        return self._unpack(*self._packed[1:3])[0] if self._packed else self._recent[0]

    @property
    def last(self) -> Version[T]:
        return self._recent[-1] if self._recent else self.versions[-1]

    def peek_last(self) -> Version[T]:
        """The last version, for a single access: a compressed version stays compressed."""
        return self._recent[-1] if self._recent else self._unpack(*self._packed[-2:])[-1]

    def __iter__(self) -> Iterator[Version[T]]:
        return iter(self.versions)

    def objects_from(self, seq: int) -> list[T]:
        """The object of the version in entry ``seq``, and the objects of versions that are stored after it. At least
        one object. Compressed versions stay compressed.
        """
        versions = self._recent
        if not versions or seq < versions[0].seq:
            index = 3 * bisect_right(self._packed[::3], seq)
            versions = self._unpack(*self._packed[index - 2 : index])
        return [version.object for version in versions[bisect_left(versions, seq, key=_seq) :]]

    def pack(self) -> bool:
        """Pack all versions, of an object that exists all but the last; false if someone asked since the last call."""
        if self._is_requested:
            self._is_requested = False
            return False
        self._is_due = False
        count = len(self._recent) - (not self._recent[-1].is_deleted) if self._recent else 0
        if count and self._packer:
            block, index = self._packer.pack(self._recent[:count])
            first = self._recent[0].seq if self._packed else self.first_seq
            self._packed, self._recent = (*self._packed, first, block, index), self._recent[count:] or _NONE
        return True

    def _pack_later(self) -> None:
        if self._packer is not None and not self._is_due:
            self._is_due = True
            self._packer.later(self)

    def _unpack(self, block: Block, index: int) -> list[Version[T]]:
        assert self._packer is not None  # noqa: S101 - it has packed them
        return self._packer.unpack(block, index)


def _time(version: Version[Any]) -> float:
    return version.t


def _seq(version: Version[Any]) -> int:
    return version.seq
