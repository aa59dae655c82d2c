"""The entries of a timeline, in a few bytes each: what histories and Events hold is not held twice."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import Any, overload

from chaos.core.event_log import EventLog
from chaos.core.history import Entry, History

_Head = tuple[str, str, str, str]  # kind, type, node, note
Holder = History[Any] | EventLog
_END = object()


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
