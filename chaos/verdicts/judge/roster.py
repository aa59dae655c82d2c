"""Subjects that are one object each: a judgement costs what has changed, and what differs, not how many there are."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, overload

from chaos.core.assertion import View
from chaos.core.history import History, Version
from chaos.core.recording import BlindWindow
from chaos.core.signal import Sample, Signal, Subject
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.membership import Revisions
from chaos.verdicts.judge.signals import Observation, from_history, mask, mask_blind, uid_of

Observe: TypeAlias = Callable[[Version[Any]], Observation]
_Untils = dict[tuple[str, bool], float]  # by source, and whether of one object that is not behind the others


class Member(NamedTuple):
    """An object: ``history`` is None if it was never observed. ``observe``: the same from one judgement to the next."""

    name: str
    source: str
    history: History[Any] | None
    observe: Observe


class _Made(NamedTuple):
    """Signals of an object as if all was received: as it is, and if its last version is proven."""

    signal: Signal
    proven: Signal
    uid: str
    source: str

    def masked(self, until: float) -> Signal:
        """The signal, if everything is known up to ``until``."""
        samples = self.signal.samples
        is_proven = not samples or samples[-1].t <= until
        return (self.proven if is_proven else self.signal).mask_lag(until, self.source)


def _shape(signal: Signal) -> Hashable:
    """Its values and the exact moments of them: signals of one shape are alike. None if it has intervals."""
    if any(math.isfinite(sample.earliest) for sample in signal.samples):
        return None
    return tuple((sample.t, sample.value, sample.is_lag) for sample in signal.samples)


class AlikeSubjects(Sequence[Subject]):
    """The subjects of one judgment. Each subject is created on access.

    ``representatives``: indexes of some, each with the number of those that are alike for which it stands. Of many
    that are alike the first and the last are taken, each in its place: subjects that change at one moment do so in
    their order, the first one is described, and the last one ends the moment.
    """

    def __init__(
        self,
        members: Sequence[Member],
        made: Sequence[_Made | None],
        own: dict[int, Signal],
        untils: _Untils,
        representatives: Sequence[tuple[int, int]],
    ) -> None:
        self._members, self._made, self._own, self._untils = members, made, own, untils
        self.representatives = representatives

    def _subject(self, index: int) -> Subject:
        signal, made = self._own.get(index), self._made[index]
        if signal is None:
            assert made is not None  # noqa: S101 - one without an observation has its own
            signal = made.masked(self._untils[made.source, bool(made.uid)])
        return Subject(self._members[index].name, signal)

    def known_at(self, t: float) -> Iterator[tuple[str, Sample]]:
        """The names and samples at ``t`` of the subjects for which everything up to ``t`` is known."""
        is_late = all(until < t for until in self._untils.values())
        for index in self._own if is_late else range(len(self._members)):
            signal, made = self._own.get(index), self._made[index]
            if signal is None and made is not None and t <= self._untils[made.source, bool(made.uid)]:
                signal = made.proven
            if signal is not None:
                yield self._members[index].name, signal.at(t)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Subject]:
        return map(self._subject, range(len(self._members)))

    @overload
    def __getitem__(self, index: int) -> Subject: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Subject, ...]: ...

    def __getitem__(self, index: int | slice) -> Subject | tuple[Subject, ...]:
        found = range(len(self._members))[index]
        return self._subject(found) if isinstance(found, int) else tuple(map(self._subject, found))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Roster:
    """Remembers the signals of objects from one judgement of a timeline to the next."""

    def __init__(self) -> None:
        self._windows: list[BlindWindow] | None = None
        self._keys: Sequence[Hashable] = ()
        self._members: tuple[Member, ...] = ()
        self._forget()

    def _forget(self) -> None:
        self._revisions = Revisions()
        self._made: list[_Made | None] = [None] * len(self._members)
        self._by_uid: dict[str, int] = {}
        self._alike: dict[Hashable, list[int]] = {}  # indexes by equivalence key
        self._key_of: list[Hashable] = [None] * len(self._members)
        self._recent: set[int] = set()  # those whose last version was not proven yet

    def subjects(self, timeline: Timeline, keys: Sequence[Hashable], member: Callable[[Any], Member]) -> AlikeSubjects:
        """A subject for each of ``keys``. It is unknown if the object was never observed. ``member``: the object of a
        key.
        """
        self._take(timeline, keys, member)
        untils = self._untils(timeline)
        for index in [*self._recent]:
            made = self._made[index]
            samples = made.signal.samples if made else ()
            if made and (not samples or samples[-1].t <= untils[made.source, bool(made.uid)]):
                self._recent.discard(index)
        own = {index: self._own_signal(timeline, index) for index in sorted(self._different(timeline))}
        return AlikeSubjects(self._members, (*self._made,), own, untils, self._representatives(own))

    def _take(self, timeline: Timeline, keys: Sequence[Hashable], member: Callable[[Any], Member]) -> None:
        """Make the signals of what has changed."""
        is_known = self._windows is timeline.blind_windows and self._keys == keys
        if not is_known or any(self._made[index] is None for index in self._recent):
            self._windows, self._keys, self._members = timeline.blind_windows, keys, tuple(map(member, keys))
            self._forget()
        for index in self._revisions.changed(member.history for member in self._members):
            self._make(timeline, index)
        self._revisions.note()

    def _make(self, timeline: Timeline, index: int) -> None:
        _, source, history, observe = self._members[index]
        self._recent.add(index)
        if history is None:
            return
        uid = uid_of(history)
        signal = mask_blind(from_history(history, observe), timeline, source, uid=uid).without_repetitions()
        proven = signal.without_last_repetition()
        self._made[index] = _Made(signal, proven, uid, source)
        if uid:
            self._by_uid[uid] = index
        shape = _shape(proven)
        key: Hashable = index if shape is None else (source, bool(uid), shape)
        former = self._key_of[index]
        if former == key:
            return
        if former is not None:
            self._alike[former].remove(index)
        insort(self._alike.setdefault(key, []), index)
        self._key_of[index] = key

    def _untils(self, timeline: Timeline) -> _Untils:
        log, sources = timeline.currency, {member.source for member in self._members}
        usual = {(source, True): log.usual_until(source) for source in sources}
        return usual | {(source, False): log.until(source) for source in sources}

    def _different(self, timeline: Timeline) -> set[int]:
        """The indexes of the objects that are behind the others."""
        sources = {member.source for member in self._members}
        behind = {uid for source in sources for uid in timeline.currency.behind(source)}
        return self._recent | {self._by_uid[uid] for uid in behind if uid in self._by_uid}

    def _own_signal(self, timeline: Timeline, index: int) -> Signal:
        made = self._made[index]
        if made is None:
            return mask(Signal(()), timeline, self._members[index].source)
        return made.masked(timeline.currency.until(made.source, made.uid))

    def _representatives(self, own: dict[int, Signal]) -> list[tuple[int, int]]:
        weights = dict.fromkeys(own, 1)
        apart: dict[Hashable, int] = {}
        for index in own:
            apart[self._key_of[index]] = apart.get(self._key_of[index], 0) + 1
        for key, indexes in self._alike.items():
            number = len(indexes) - apart.get(key, 0)
            if number:
                first = next(index for index in indexes if index not in own)
                last = next(index for index in reversed(indexes) if index not in own)
                weights[first] = number - (last != first)
                weights.setdefault(last, 1)
        return sorted(weights.items())


def node_subjects(view: View, names: Sequence[str], observe: Observe) -> AlikeSubjects:
    """A subject for each Node object. It is unknown if the object was never observed."""
    timeline = view.timeline
    roster = view.memo().keep(Roster)
    return roster.subjects(timeline, names, lambda name: Member(name, "nodes", timeline.nodes.get(name), observe))
