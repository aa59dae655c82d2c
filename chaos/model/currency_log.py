"""What is known of the times of versions: how current each watch was proven to be, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from chaos.model.kube import Event, Lease
from chaos.model.recording import USUAL_LAG, BlindWindow, Currency
from chaos.model.source_times import newest_time, source_time

_EVENTS = "events"
_CLOCK_SLACK = 1.0  # seconds by which the clocks of the cluster may be ahead without notice
_NOTABLE_LAG = 10.0  # seconds by which a watch is late, worth a note
_NOTABLE_PAUSE = 25.0  # seconds without any proof, more than between two of an idle watch


@dataclass
class _Source:
    """A resource: current up to ``until``, except the objects ``behind`` (by uid), current up to an earlier moment.

    ``complete``: the moment up to which nothing is missing, not even of objects that came and went. ``lists``: what the
    proofs compared with: resourceVersion, begin and answer of each list. ``unproven``: long lags and pauses.
    """

    until: float
    complete: float
    behind: dict[str, float] = field(default_factory=dict)
    lists: list[tuple[int, float, float]] = field(default_factory=list)
    unproven: list[tuple[float, float]] = field(default_factory=list)

    def interval(self, uid: str, order: int) -> tuple[float, float]:
        """The moments between which the version ``order`` of an object happened, by the proofs so far."""
        latest = math.inf
        for version, begin, answered in reversed(self.lists if order else ()):
            if version < order:
                return begin, latest
            latest = min(latest, answered)
        return self.behind.get(uid, -math.inf if self.lists and order else self.until), latest

    @property
    def current_until(self) -> float:
        return min(self.behind.values(), default=self.until)

    def note_lag(self, since: float, t: float) -> None:
        """Remember that at ``t`` it was current up to ``since`` only."""
        if self.unproven and self.unproven[-1][1] >= since:
            since = min(since, self.unproven.pop()[0])
        self.unproven.append((since, t))


class CurrencyLog:
    """Updated by the timeline, in the order of its entries. A recording without proofs has exact times."""

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}
        self._late: dict[str, list[BlindWindow]] = {}
        self._event_earliest: dict[int, float] = {}  # by seq
        self._clock_ahead = 0.0  # seconds by which the clock of any node is ahead, as far as that is known

    def add(self, source: str, proof: Currency, t: float) -> None:
        """Add a proof that was recorded at ``t``. One that another has overtaken says nothing new."""
        known = self._sources.get(source)
        if known is None:
            known = self._sources[source] = _Source(proof.until, proof.complete)
        elif proof.until >= known.until:
            if proof.until - known.current_until > _NOTABLE_PAUSE:
                known.note_lag(known.current_until, proof.until)
            known.behind = {uid: known.behind.get(uid, known.until) for uid in proof.behind}
            known.until = proof.until
            known.complete = max(known.complete, proof.complete)
            if proof.until - known.current_until > _NOTABLE_LAG:
                known.note_lag(known.current_until, proof.until)
        if proof.version.isdecimal():
            known.lists.append((int(proof.version), proof.read, t))

    def interval(self, source: str, obj: Any, order: int, t: float) -> tuple[float, float]:
        """The moments between which the version ``obj`` happened, which was received at ``t``.

        A list with a lower resourceVersion was before it, one with a higher was not; nor is it older than the newest
        time in it, within what is known of the clock of its writer. The first is infinite if nothing is known.
        """
        known = self._sources.get(source)
        if known is None:
            return math.inf, t
        earliest, latest = known.interval(obj.metadata.uid, order)
        latest = min(latest, t)
        if latest - earliest > USUAL_LAG:
            earliest = max(earliest, newest_time(obj, latest) - _CLOCK_SLACK - self._clock_ahead)
        if t - earliest > USUAL_LAG:
            self._add_late(source, earliest, t)
        return min(earliest, latest), latest

    def note_event(self, seq: int, event: Event, t: float) -> None:
        """Remember how late an Event may be: its entry is no version."""
        order = int(event.metadata.resource_version) if event.metadata.resource_version.isdecimal() else 0
        self._event_earliest[seq], _ = self.interval(_EVENTS, event, order, t)

    def note_renewal(self, lease: Lease, t: float) -> None:
        """Learn from a Lease, received at ``t``, how far the clock of a node is ahead at least."""
        renewed = source_time(lease.spec.renew_time) if lease.spec else None
        self._clock_ahead = max(self._clock_ahead, 0.0 if renewed is None else renewed - t)

    def event_earliest(self, seq: int) -> float:
        """The moment after which an Event happened, by the seq of its entry."""
        return self._event_earliest.get(seq, math.inf)

    def until(self, source: str, uid: str = "") -> float:
        """The moment up to which everything about the object, or without ``uid`` about all, is known.

        Of a new object, which may have gone already, a proof about all is needed.
        """
        known = self._sources.get(source)
        if known is None:
            return math.inf
        return max(known.complete, known.behind.get(uid, known.until)) if uid else known.complete

    def listed_until(self, source: str) -> float:
        """The moment up to which everything about all objects that a list had is known."""
        known = self._sources.get(source)
        return math.inf if known is None else max(known.complete, known.current_until)

    def unproven(self, source: str, end: float) -> list[tuple[float, float]]:
        """Long times, up to ``end``, at which the resource was not proven current. None without any proof."""
        known = self._sources.get(source)
        if known is None:
            return []
        is_open = end - known.current_until > _NOTABLE_PAUSE
        return [*known.unproven, (known.current_until, end)] if is_open else known.unproven

    def late_windows(self, source: str) -> list[BlindWindow]:
        """Times at which the order of the changes of all objects is uncertain."""
        return self._late.get(source, [])

    def _add_late(self, source: str, start: float, end: float) -> None:
        windows = self._late.setdefault(source, [])
        while windows and (windows[-1].end or end) >= start:
            start = min(start, windows.pop().start)
        windows.append(BlindWindow(start, end, "the watch was late", source))


def narrow(recent: Iterable[tuple[Any, int]], proof: Currency) -> list[tuple[Any, int]]:
    """Narrow the intervals of versions, given as (history, index), that were received before a proof.

    What is newer than its list happened after the read was sent. Returns those that later answers may narrow further.
    """
    order = int(proof.version) if proof.version.isdecimal() else math.inf
    pending = []
    for history, index in recent:
        version = history.versions[index]
        if version.order > order and version.earliest < proof.read:
            history.versions[index] = structs.replace(version, earliest=min(proof.read, version.t))
        if proof.read < version.t:
            pending.append((history, index))
    return pending
