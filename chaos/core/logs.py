"""The entries of a timeline, in a few bytes each, and its Events, found by the object that they are about or by reason.

What histories and Events hold is not held twice.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import Any, overload

from msgspec import Struct

from chaos.core.history import Entry, History
from chaos.core.kube import Event
from chaos.core.packing import Block, Packer

_CHUNK = 128  # Events that are packed together
_BUCKETS = 1 << 16
Item = tuple[Entry, Event]
_Head = tuple[str, str, str, str]  # kind, type, node, note
_END = object()


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
        """Like ``items``, for a single access: compressed entries stay compressed."""
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
        """The Event in entry ``seq`` and the Events that are stored after it. Compressed Events stay compressed."""
        number = bisect_left(self._seqs, seq)
        return [event for _, event in self._chunks[number // _CHUNK].peek()[number % _CHUNK :]]

    def about(self, name: str) -> list[Item]:
        """Events about objects with this name."""
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


Holder = History[Any] | EventLog


class EntryLog(Sequence[Entry]):
    """All entries by their seq. Each is made again when it is asked for."""

    def __init__(self) -> None:
        self._times = array("d")
        self._heads: list[_Head] = []  # all that differ
        self._numbers: dict[_Head, int] = {}  # of them
        self._head_of = array("I")
        self._objects: list[Any] = []  # or their holders

    def append(self, entry: Entry, holder: Holder | None) -> None:
        """Append the next entry. ``holder``: of its object, None if the log is to hold it."""
        head = (entry.kind, entry.type, entry.node, entry.note)
        self._times.append(entry.t)
        number = self._numbers.get(head)
        if number is None:
            number = self._numbers[head] = len(self._heads)
            self._heads.append(head)
        self._head_of.append(number)
        self._objects.append(entry.object if holder is None else holder)

    def time(self, seq: int) -> float:
        """When the entry ``seq`` was received."""
        return self._times[seq]

    def type(self, seq: int) -> str:
        return self._heads[self._head_of[seq]][1]

    def select(self, seqs: Collection[int]) -> list[Entry]:
        """Those of the entries ``seqs`` that exist, in their order."""
        return [self[seq] for seq in sorted(seqs) if 0 <= seq < len(self)]

    def _entry(self, seq: int, value: Any) -> Entry:
        kind, type_, node, note = self._heads[self._head_of[seq]]
        return Entry(seq, self._times[seq], kind, type_, value, node, note)

    def _entries(self, seqs: range) -> Iterator[Entry]:
        """The entries ``seqs``. Those without a gap are unpacked once, and not all at the same time."""
        parts: dict[int, Iterator[Any]] = {}  # what follows the last entry of a holder
        for seq in seqs:
            value = self._objects[seq]
            if isinstance(value, History | EventLog):
                holder, following = value, parts.get(id(value)) if seqs.step == 1 else None
                value = next(following, _END) if following else _END
                if value is _END:
                    following = parts[id(holder)] = iter(holder.objects_from(seq))
                    value = next(following)
            yield self._entry(seq, value)

    def __iter__(self) -> Iterator[Entry]:
        return self._entries(range(len(self._times)))

    @overload
    def __getitem__(self, seq: int) -> Entry: ...

    @overload
    def __getitem__(self, seq: slice) -> list[Entry]: ...

    def __getitem__(self, seq: int | slice) -> Entry | list[Entry]:
        found = range(len(self._times))[seq]
        if isinstance(found, int):
            return next(self._entries(range(found, found + 1)))
        return list(self._entries(found))

    def __len__(self) -> int:
        return len(self._times)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return repr(list(self))
