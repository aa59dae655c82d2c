"""Entries, and the versions of one object."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")
Key = tuple[str, str]  # namespace, name


class Entry(Struct, frozen=True, gc=False):
    """A decoded recording entry. ``object``: a struct of model.kube, ActionRecord, BlindWindow or JSON."""

    seq: int
    t: float
    kind: str
    type: str
    object: Any
    node: str = ""
    note: str = ""


class Version(Struct, Generic[T], frozen=True, gc=False):
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

    Only ``append`` and ``replace`` change a history.
    """

    __slots__ = ("revision", "times", "versions")

    def __init__(self) -> None:
        self.versions: list[Version[T]] = []
        self.times: list[float] = []
        self.revision = 0

    def append(self, version: Version[T]) -> None:
        self.versions.append(version)
        self.times.append(version.t)
        self.revision += 1

    def replace(self, index: int, version: Version[T]) -> None:
        """Replace a version by one of the same state and receipt, of whose time more is known."""
        self.versions[index] = version
        self.revision += 1

    def at(self, t: float) -> Version[T] | None:
        """The version at ``t`` (inclusive), None before the first."""
        index = bisect_right(self.times, t)
        return self.versions[index - 1] if index else None

    @property
    def last(self) -> Version[T]:
        return self.versions[-1]

    def __iter__(self) -> Iterator[Version[T]]:
        return iter(self.versions)
