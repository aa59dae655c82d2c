"""Events of a timeline, found by the object that they are about, or by their reason."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import overload

from msgspec import Struct

from chaos.core.history import Entry
from chaos.core.kube import Event
from chaos.core.packing import Block, Packer

_CHUNK = 128  # Events that are packed together
_BUCKETS = 1 << 16
Item = tuple[Entry, Event]


class StoredEvent(Struct, array_like=True, gc=False):
    """An Event and its entry, to be packed."""

    seq: int
    t: float
    type: str
    event: Event
    node: str = ""
    note: str = ""


def _name(event: Event) -> str:
    return event.involved_object.name if event.involved_object else ""


class _Chunk:
    """Some Events that followed each other."""

    __slots__ = ("_is_requested", "_items", "_packed", "_packer")

    def __init__(self, packer: Packer | None) -> None:
        self._packer = packer
        self._items: list[Item] = []
        self._packed: tuple[Block, int] | None = None
        self._is_requested = False

    def append(self, item: Item) -> None:
        self._items.append(item)
        if len(self._items) == _CHUNK and self._packer:
            self._packer.later(self)

    @property
    def items(self) -> list[Item]:
        """The entries and Events."""
        self._is_requested = True
        if self._packed and self._packer:
            self._items, self._packed = self._unpack(), None
            self._packer.later(self)
        return self._items

    def peek(self) -> list[Item]:
        """As ``items``, for somebody who asks only once: what is packed stays so."""
        return self._unpack() if self._packed else self._items

    def pack(self) -> bool:
        if self._is_requested:
            self._is_requested = False
            return False
        if self._packer:
            stored = [
                StoredEvent(entry.seq, entry.t, entry.type, event, entry.node, entry.note)
                for entry, event in self._items
            ]
            self._packed, self._items = self._packer.pack(stored), []
        return True

    def _unpack(self) -> list[Item]:
        assert self._packer is not None  # noqa: S101 - it has packed them
        assert self._packed is not None  # noqa: S101
        stored: list[StoredEvent] = self._packer.unpack(*self._packed)
        return [(Entry(s.seq, s.t, "events", s.type, s.event, s.node, s.note), s.event) for s in stored]


class EventLog(Sequence[Item]):
    """Entries and Events, in order of time."""

    def __init__(self) -> None:
        self.packer: Packer | None = None  # of StoredEvent; without one, nothing is packed
        self._chunks: list[_Chunk] = []
        self._seqs = array("q")
        self._hashes = array("q")  # by the number of an Event: of its object's name, as an hour has a million names
        self._last = array("i", [-1]) * _BUCKETS  # by the low bits of a hash: the number of the last Event, or -1
        self._before = array("i")  # by the number of an Event: that of the one before with these bits, or -1
        self._by_reason: dict[str, array[int]] = {}

    def record(self, entry: Entry, event: Event) -> None:
        """Append an Event, which is also found by the name of its object and its reason."""
        number = len(self._seqs)
        if not number % _CHUNK:
            self._chunks.append(_Chunk(self.packer))
        self._chunks[-1].append((entry, event))
        self._seqs.append(entry.seq)
        name = _name(event)
        code = hash(name)
        self._hashes.append(code)
        self._before.append(self._last[code % _BUCKETS])
        self._last[code % _BUCKETS] = number
        found = self._by_reason.get(event.reason or "")
        if found is None:
            found = self._by_reason[event.reason or ""] = array("i")
        found.append(number)

    def objects_from(self, seq: int) -> list[Event]:
        """The Event that is the entry ``seq``, and those that are stored behind it; what is packed stays so."""
        number = bisect_left(self._seqs, seq)
        return [event for _, event in self._chunks[number // _CHUNK].peek()[number % _CHUNK :]]

    def about(self, name: str) -> list[Item]:
        """Events about objects of that name."""
        code = hash(name)
        numbers, number = [], self._last[code % _BUCKETS]
        while number >= 0:
            if self._hashes[number] == code:
                numbers.append(number)
            number = self._before[number]
        items = [self._item(number) for number in reversed(numbers)]
        return [item for item in items if _name(item[1]) == name]

    def with_reason(self, reason: str) -> list[Item]:
        return [self._item(number) for number in self._by_reason.get(reason, ())]

    def _item(self, number: int) -> Item:
        return self._chunks[number // _CHUNK].items[number % _CHUNK]

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        found = range(len(self._seqs))[index]
        return self._item(found) if isinstance(found, int) else [self._item(number) for number in found]

    def __len__(self) -> int:
        return len(self._seqs)

    def __iter__(self) -> Iterator[Item]:
        for chunk in self._chunks:
            yield from chunk.items
