"""Counts the matching pods of a set that changes. Only changes that are not settled are counted again.

Everything up to a moment is settled if nothing that happened before it can be received any more, and if no change may
have happened on either side of it: then what follows depends only on who matched at that moment. Whatever contradicts
what is settled makes everything be found again, so the answer is always that of the whole timeline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from chaos.core.recording import BlindWindow
from chaos.core.signal import Quantifier, Sample, Signal, Start, Subject, SubjectSet
from chaos.core.timeline import History, Timeline
from chaos.verdicts.judge.quantifiers import decide
from chaos.verdicts.judge.sequence import changes, in_sequence, last_gap
from chaos.verdicts.judge.signals import mask_unproven
from chaos.verdicts.judge.temporal import add_start, first_starts

_SOURCE = "pods"
_UNSETTLED = 1.0  # seconds before the last entry of which soon more may be known
_UNOBSERVED = Sample(-math.inf, None, None, "not observed yet")

_Series = dict[int, list[Sample]]  # changes by key, in order of time
_Member = tuple[Subject, str]  # with the uid; its signal takes everything as received
UNSEEN, OTHERS = -2, -1  # keys of pods that no one has seen, and of those that have no change of their own
_Since = tuple[str, Sample]  # name, and the change since when it is so


class Census:
    """Whether the number of matching pods is in a range, for successive judgments of a growing timeline.

    Pods that were never observed but may exist make the result unknown: there may be as many as the range needs.
    """

    def __init__(self, wanted: SubjectSet) -> None:
        """``wanted``: what is expected, and the range."""
        self._wanted = wanted
        self._windows: list[BlindWindow] | None = None
        self._is_ordered = True  # no pod was received in an order that contradicts its resourceVersions
        self._unseen = Signal(())
        self._members: dict[int, _Member] = {}  # by the seqs of the first entries: who may match, but for who is over
        self._read = 0  # number of changes
        self._is_complete = True  # no one was dropped
        self._forget()

    def subjects(
        self,
        timeline: Timeline,
        unseen: Signal,
        includes: Callable[[str], bool],
        make: Callable[[History[Any]], Subject],
        stale: Iterable[str] = (),
    ) -> SubjectSet:
        """The set, counted. ``stale``: pods whose subjects may differ though they have not changed.

        ``unseen``: the signal of a pod that no one has seen. ``includes``: whether the pod with an uid may ever belong
        to the set. ``make``: its subject.
        """
        self._unseen = unseen
        if self._windows is not timeline.blind_windows:
            self._windows, self._is_complete = timeline.blind_windows, False
            self._forget()
        is_settled = self._take_new(timeline, includes, make, stale)
        series = self._series(timeline)
        if not (self._is_ordered and is_settled) or self._contradicts(series):
            self._forget()
            self._take_new(timeline, includes, make)
            series = self._series(timeline)
        if self._is_ordered and self._settle(series, timeline):
            series = self._series(timeline)
        late = self._combine(series, self._matching.copy())
        counted = Signal((*self._samples, *late), settled=(len(self._samples), tuple(self._starts)))
        first = Subject("", mask_unproven(unseen, timeline, _SOURCE))
        return SubjectSet(
            self._wanted.expected,
            (first,),
            Quantifier.COUNT,
            self._wanted.least,
            self._wanted.most,
            counted=counted,
            unit=self._wanted.unit,
            each=lambda: (first,) * self._number_unseen + tuple(self._each(timeline, includes, make)),
        )

    @property
    def _number_unseen(self) -> int:
        return max(self._wanted.least, (self._wanted.most or 0) + 1)

    def _each(
        self, timeline: Timeline, includes: Callable[[str], bool], make: Callable[[History[Any]], Subject]
    ) -> Iterator[Subject]:
        for uid, history in timeline.pods.items():
            if includes(uid):
                known = self._members.get(history.first_seq)
                subject = make(history) if known is None else known[0]
                yield Subject(subject.name, mask_unproven(subject.signal, timeline, _SOURCE, uid=uid), subject.facts)

    def _take_new(
        self,
        timeline: Timeline,
        includes: Callable[[str], bool],
        make: Callable[[History[Any]], Subject],
        stale: Iterable[str] = (),
    ) -> bool:
        """Take what has changed since the last call; whether nothing that is settled has."""
        changed = dict.fromkeys([*timeline.pods.changes[self._read :], *stale])
        self._read = len(timeline.pods.changes)
        behind = (uid for uid in timeline.currency.behind(_SOURCE) if uid in timeline.pods)
        changed.update((uid, None) for uid in behind if timeline.pods[uid].first_seq not in self._members)
        is_settled = [self._take(timeline.pods[uid], make, uid) for uid in changed if includes(uid)]
        return all(is_settled)

    def _forget(self) -> None:
        """Take nothing as settled: before all changes, it is unknown who matched."""
        if not self._is_complete:  # all of them are to be taken again
            self._members, self._read, self._is_complete = {}, 0, True
        self._settled = -math.inf
        self._order = 0  # the highest of a settled change that may have happened at several moments
        self._matching = Matching({}, {UNSEEN: ("", _UNOBSERVED)})
        self._samples: tuple[Sample, ...] = (_UNOBSERVED,)
        self._starts: list[Start] = first_starts()
        add_start(self._starts, _UNOBSERVED, -math.inf, -math.inf)
        self._open = set(self._members)  # those with changes that are not settled

    def _take(self, history: History[Any], make: Callable[[History[Any]], Subject], uid: str) -> bool:
        """Whether the settled changes of the pod are the same as before, or for a new pod, the same as for an unseen
        pod.
        """
        key, member = history.first_seq, (make(history), uid)
        former = self._members.get(key)
        self._members[key] = member
        self._open.add(key)
        found = changes(member[0].signal.samples)
        if any(after.t < before.t for before, after in pairwise(found)):
            self._is_ordered = False
        if any(sample.lo <= self._settled < sample.t for sample in found):
            return False
        settled = [sample for sample in found if sample.t <= self._settled]
        if former is not None:
            return settled == [s for s in changes(former[0].signal.samples) if s.t <= self._settled]
        if settled and self._matching.value(UNSEEN) is None:
            return False  # it is not among those of which it was unknown at that moment
        absent = [s for s in changes(self._unseen.samples) if s.t <= self._settled]
        return [(s.t, s.lo, s.value, s.seq) for s in settled] == [(s.t, s.lo, s.value, s.seq) for s in absent]

    def _series(self, timeline: Timeline) -> _Series:
        """The changes that are not settled, up to the proven moment."""
        late = (timeline.pods[uid].first_seq for uid in timeline.currency.behind(_SOURCE) if uid in timeline.pods)
        self._open.update(key for key in late if key in self._members)
        series = {UNSEEN: self._late_changes(mask_unproven(self._unseen, timeline, _SOURCE))}
        for key in self._open:
            subject, uid = self._members[key]
            series[key] = self._late_changes(mask_unproven(subject.signal, timeline, _SOURCE, uid=uid))
        nothing = Signal((Sample(-math.inf, False, None, ""),))
        series[OTHERS] = self._late_changes(nothing.mask_lag(timeline.currency.usual_until(_SOURCE), _SOURCE))
        return dict(sorted(series.items()))

    def _contradicts(self, series: _Series) -> bool:
        """Whether a change happened before a settled change, by their resourceVersions."""
        late = (sample for samples in series.values() for sample in samples)
        return any(0 < sample.order <= self._order and sample.lo < sample.t for sample in late)

    def _late_changes(self, signal: Signal) -> list[Sample]:
        return [sample for sample in changes(signal.samples) if sample.t > self._settled]

    def _settle(self, series: _Series, timeline: Timeline) -> bool:
        """Settle what can be; whether there was any."""
        until = min(timeline.currency.until(_SOURCE), timeline.end - _UNSETTLED - timeline.currency.slowest)
        moment, order = last_gap((s for samples in series.values() for s in samples if not s.is_lag), until)
        if moment <= self._settled:
            return False
        before = {key: [s for s in samples if s.t <= moment] for key, samples in series.items()}
        matching = self._matching.copy()
        found = self._combine(before, matching)
        if any(samples and samples[-1].value is not matching.value(key) for key, samples in before.items()):
            return False  # what was received last of a pod was not its last change: what follows needs both
        self._matching = matching
        for sample in found:
            add_start(self._starts, sample, sample.lo, sample.t)
        self._samples = (*self._samples, *found)
        self._settled, self._order = moment, max(self._order, order)
        closed = {k for k in self._open if all(s.t <= moment for s in self._members[k][0].signal.samples)}
        self._open -= closed
        for key in closed:
            self._drop_if_over(key, timeline)
        return True

    def _drop_if_over(self, key: int, timeline: Timeline) -> None:
        """Drop a pod that is deleted and does not match, if all of it is settled: an hour has many.

        Should more become known of it nevertheless, or less of its end, it is taken for a new one; then either it has
        never counted, or its settled changes are not those of a pod that no one has seen, and all is found again.
        """
        uid = self._members[key][1]
        is_gone = self._matching.value(key) is False and timeline.pods[uid].is_deleted
        if is_gone and uid not in timeline.currency.behind(_SOURCE):
            del self._members[key]
            self._is_complete = False

    def _combine(self, series: _Series, matching: Matching) -> list[Sample]:
        """The samples that follow from the changes of all pods. Updates ``matching``."""
        keys = list(series)
        bases = [Sample(-math.inf, matching.value(key), None, "") for key in keys]
        found = in_sequence([Signal((base, *series[key])) for base, key in zip(bases, keys, strict=True)])
        found = [change for change in found if change[1].t > -math.inf]
        result, seqs = [], list[int]()
        for number, (index, sample) in enumerate(found):
            key = keys[index]
            if key == OTHERS:
                matching.lose_others(series)
            else:
                matching.update(key, "" if key == UNSEEN else self._members[key][0].name, sample)
            seqs += [] if sample.seq is None else [sample.seq]
            following = found[number + 1][1] if number + 1 < len(found) else _UNOBSERVED
            is_moment = following.t == sample.t and min(sample.earliest, following.earliest) >= sample.t
            if not is_moment:  # what changes at one exact moment changes together
                result.append(matching.sample(sample, max(seqs, default=None), self._wanted, self._number_unseen))
                seqs.clear()
        return result


@dataclass(slots=True)
class Matching:
    """The pods that match and the pods for which that is unknown, by key, in the order in which they did so.
    ``is_behind``: changes may still arrive.
    """

    true: dict[int, _Since]
    unknown: dict[int, _Since]
    is_behind: bool = False

    def copy(self) -> Matching:
        return Matching(self.true.copy(), self.unknown.copy(), self.is_behind)

    def value(self, key: int) -> bool | None:
        return True if key in self.true else None if key in self.unknown else False

    def update(self, key: int, name: str, sample: Sample) -> None:
        """Apply a change."""
        if sample.value is not True:
            self.true.pop(key, None)
        if sample.value is not None:
            self.unknown.pop(key, None)
        if sample.value is not False:
            (self.true if sample.value else self.unknown).setdefault(key, (name, sample))
        self.is_behind = self.is_behind or sample.is_lag

    def lose_others(self, own: Container[int]) -> None:
        """Nothing is known about keys other than ``own`` any more. Unseen pods are unknown then, too, and decide."""
        self.true = {key: since for key, since in self.true.items() if key in own}

    def sample(self, change: Sample, seq: int | None, wanted: SubjectSet, unseen: int) -> Sample:
        """Whether the number is in the range after ``change``. ``seq``: of the change; ``unseen``: how many are."""
        number, unknown = len(self.true), len(self.unknown) + (unseen - 1) * (UNSEEN in self.unknown)
        value = decide(wanted, number, 0, unknown)
        name, since = next(iter((self.unknown if value is None else self.true).values()), ("", None))
        text = f"{number} {wanted.unit or 'pods match'}"
        if since is not None:
            example = f"{name}: {since.observation}" if name else since.observation
            text += f", perhaps more: {example}" if value is None else f", for example {example}"
            seq = seq if since.seq is None else since.seq
        is_lag = value is None and self.is_behind
        if change.lo < change.t:
            return Sample(change.t, value, seq, text, change.earliest, change.order, is_lag)
        return Sample(change.t, value, seq, text, is_lag=is_lag)  # of all that changed at this moment
