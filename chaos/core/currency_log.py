"""Freshness of watches: up to which moment each watch is proven to be complete, entry by entry."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from chaos.core.kube import Event, Lease, version_number
from chaos.core.recording import USUAL_LAG, BlindWindow, Currency
from chaos.core.time_bounds import OrderBounds, newest_time, source_time

_EVENTS = "events"
_CLOCK_SLACK = 1.0  # seconds by which the clocks of the cluster may be ahead without notice
_NOTABLE_LAG = 10.0  # seconds by which a watch is late, worth a note
_NOTABLE_PAUSE = 25.0  # seconds without any proof, more than between two of an idle watch


@dataclass
class _Source:
    """A resource that is fresh up to ``until``, except for the objects ``behind`` (by uid), which are fresh up to an
    earlier moment.

    ``complete``: the moment up to which nothing is missing, not even of objects that came and went, if no list
    contradicts it: ``contradicted`` has the first list that knew more of an object (by uid), by its resourceVersion.
    ``listed``: that of the list that proved ``until``, infinite if unknown. ``shared``: bounds of all changes in its
    store; ``own``: only of itself. ``since``: the first ``until``. ``unproven``: long lags and pauses.
    """

    until: float
    complete: float
    listed: float
    shared: OrderBounds
    since: float = math.inf
    own: OrderBounds = field(default_factory=OrderBounds)
    behind: dict[str, float] = field(default_factory=dict)
    contradicted: dict[str, float] = field(default_factory=dict)
    unproven: list[tuple[float, float]] = field(default_factory=list)

    def interval(self, uid: str, order: int) -> tuple[float, float]:
        """The moments between which the version ``order`` of an object happened, by the proofs so far."""
        bounds = self.bounds
        if not (order and bounds):
            return self.behind.get(uid, self.until), math.inf
        earliest, latest = bounds.interval(order)
        behind = self.behind.get(uid)
        return earliest if behind is None or behind < earliest else behind, latest

    def note_new(self, uid: str, order: int) -> None:
        """An object of which nothing was known: one from before the list that does not have it had gone by then.

        When that was, and what else happened to it, only what is known of all objects says.
        """
        is_newer = order > self.listed and self.own.is_consistent
        if not is_newer and uid not in self.behind and self.complete < self.until:
            self.behind[uid] = self.complete

    @property
    def proven_complete(self) -> float:
        """``complete``, but not beyond an object for which a list has newer data than the watch has delivered."""
        return min((self.behind[uid] for uid in self.contradicted if uid in self.behind), default=self.complete)

    def note_behind(self, proof: Currency) -> None:
        """Take the objects that are behind by a proof, and the first list that knew more of each."""
        number = version_number(proof.version)
        listed = math.inf if number is None else float(number)
        self.behind = {uid: self.behind.get(uid, self.until) for uid in proof.behind}
        self.contradicted = {uid: self.contradicted.get(uid, listed) for uid in proof.behind}

    @property
    def bounds(self) -> OrderBounds:
        return self.shared if self.shared.is_consistent else self.own

    @property
    def current_until(self) -> float:
        return min(self.behind.values(), default=self.until)

    def note_lag(self, since: float, t: float) -> None:
        """Remember that at ``t`` it was current up to ``since`` only."""
        if self.unproven and self.unproven[-1][1] >= since:
            since = min(since, self.unproven.pop()[0])
        self.unproven.append((since, t))


class CurrencyLog:
    """Updated by the timeline, in the order of its entries. A recording without proofs has exact times.

    All resources but Events are taken to be in one store, as usual, until a read contradicts it (an API server may keep
    any resource in a separate etcd, ``--etcd-servers-overrides``): from then on each has a separate order.
    """

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}
        self._late: dict[str, list[BlindWindow]] = {}
        self._unsettled: dict[str, deque[tuple[int, float, float]]] = {}  # late versions: order, earliest, receipt
        self.losses: list[BlindWindow] = []  # times in which a version of an object was lost, not taken yet
        self._event_seqs, self._event_earliest = array("q"), array("d")  # of each Event
        self._shared = OrderBounds()  # of all resources but Events
        self.slowest = 0.0  # seconds that an answer has taken at most
        self._clock_ahead = 0.0  # the most by which a clock of the cluster is ahead, as far as that is known
        self.seconds_ahead: dict[str, float] = {}  # by which the clock of a node is ahead at least, by its Lease

    @property
    def is_one_store(self) -> bool:
        """Whether resourceVersions say which of two changes came first, of all resources but Events."""
        return self._shared.is_consistent

    def add(self, source: str, proof: Currency, t: float) -> None:
        """Add a proof that was recorded at ``t``. One that another has overtaken says nothing new."""
        known = self._sources.get(source)
        if known is None:
            shared = OrderBounds() if source == _EVENTS else self._shared
            known = self._sources[source] = _Source(proof.until, proof.complete, _listed(proof), shared, proof.until)
            known.note_behind(proof)
            known.behind = dict.fromkeys(proof.behind, -math.inf)
        elif proof.until >= known.until:
            if proof.until - known.current_until > _NOTABLE_PAUSE:
                known.note_lag(known.current_until, proof.until)
            known.note_behind(proof)
            known.listed = _listed(proof) if proof.until > known.until else known.listed
            known.until = proof.until
            known.complete = max(known.complete, proof.complete)
            if proof.until - known.current_until > _NOTABLE_LAG:
                known.note_lag(known.current_until, proof.until)
        if (number := version_number(proof.version)) is not None:
            for bounds in (known.shared, known.own):
                bounds.add_read(number, proof.read, t)
            self.slowest = max(self.slowest, t - proof.read)

    def interval(self, source: str, obj: Any, order: int, t: float, *, is_new: bool = False) -> tuple[float, float]:
        """The moments between which the version ``obj`` happened, which was received at ``t``.

        ``is_new``: it is the first of its uid. A list with a lower resourceVersion was before it, one with a higher was
        not; nor is it older than the newest time in it, within what is known of the clock of its writer. The first is
        infinite if nothing is known.
        """
        known = self._sources.get(source)
        if order and source != _EVENTS:
            self._shared.add_ceiling(order, t)
        if known is None:
            return math.inf, t
        if order:
            known.own.add_ceiling(order, t)
        if is_new:
            known.note_new(obj.metadata.uid, order)
            created = source_time(obj.metadata.creation_timestamp)  # by the clock of the API server
            self._clock_ahead = max(self._clock_ahead, 0.0 if created is None else created - t)
        earliest, latest = known.interval(obj.metadata.uid, order)
        latest = min(latest, t)
        if order > known.contradicted.get(obj.metadata.uid, math.inf):
            self._note_loss(known, source, obj.metadata.uid, latest)
        if latest - earliest > _CLOCK_SLACK:
            earliest = max(earliest, newest_time(obj, latest) - _CLOCK_SLACK - self._clock_ahead)
        if t - earliest > USUAL_LAG:
            self._add_late(source, order, earliest, t)
        return min(earliest, latest), latest

    def _note_loss(self, known: _Source, source: str, uid: str, end: float) -> None:
        """A list had a version that the watch has not delivered before one that is newer than the list."""
        since, reason = known.behind[uid], "the watch has lost a version that a list had"
        self.losses.append(BlindWindow(since, max(since, end), reason, source, [uid]))
        del known.contradicted[uid]

    def narrowed(
        self, versions: Iterable[tuple[Any, int]], t: float, note: Callable[[object], None] = lambda _: None
    ) -> list[tuple[Any, int]]:
        """Narrow the intervals of versions, given as (history, index), after a proof that was recorded at ``t``.

        What is newer than what a read had happened after that was sent, whichever resource it was of. Returns those
        that a later answer may narrow further: it takes no longer than the slowest so far. ``note`` is given the
        objects whose intervals are narrower.
        """
        if not self.is_one_store:
            return []
        pending = []
        for history, index in versions:
            version = history.version(index)
            earliest, _ = self._shared.interval(version.order)
            if earliest > version.earliest:
                history.replace(index, structs.replace(version, earliest=min(earliest, version.latest)))
                note(version.object)
            if version.t >= t - self.slowest:
                pending.append((history, index))
        return pending

    def note_event(self, seq: int, event: Event, t: float) -> None:
        """Remember how late an Event may be: its entry is no version."""
        order = version_number(event.metadata.resource_version) or 0
        self._event_seqs.append(seq)
        self._event_earliest.append(self.interval(_EVENTS, event, order, t)[0])

    def note_renewal(self, lease: Lease, t: float) -> None:
        """Learn from a Lease, received at ``t``, how far the clock of a node is ahead at least.

        A node writes the time before it sends the renewal, so a renewal is never received before. It may be received
        any time later, by a slow answer of the API server or a late watch: then it proves nothing of a clock that is
        behind.
        """
        renewed = source_time(lease.spec.renew_time) if lease.spec else None
        if renewed is not None:
            name, ahead = lease.metadata.name, renewed - t
            self.seconds_ahead[name] = max(self.seconds_ahead.get(name, ahead), ahead)
            self._clock_ahead = max(self._clock_ahead, ahead)

    def event_earliest(self, seq: int) -> float:
        """The moment after which an Event happened, by the seq of its entry."""
        index = bisect_left(self._event_seqs, seq)
        is_known = index < len(self._event_seqs) and self._event_seqs[index] == seq
        return self._event_earliest[index] if is_known else math.inf

    @property
    def sources(self) -> Collection[str]:
        """The resources with a proof."""
        return self._sources.keys()

    def until(self, source: str, uid: str = "") -> float:
        """The moment up to which everything is known about the object, or without ``uid`` about all objects. A new
        object may already be gone, so it needs a proof for all objects.
        """
        known = self._sources.get(source)
        if known is None:
            return math.inf
        complete = known.proven_complete
        return max(complete, known.behind.get(uid, known.until)) if uid else complete

    def since(self, source: str) -> float:
        """The first moment for which a list proves what there was; infinite without any."""
        known = self._sources.get(source)
        return math.inf if known is None else known.since

    def usual_until(self, source: str) -> float:
        """The moment up to which everything is known about all known objects that are not behind."""
        known = self._sources.get(source)
        return math.inf if known is None else max(known.proven_complete, known.until)

    def behind(self, source: str) -> Collection[str]:
        """The UIDs of the objects that are behind the others."""
        known = self._sources.get(source)
        return () if known is None else known.behind

    def listed_until(self, source: str) -> float:
        """The moment up to which everything is known about all objects that a list contained."""
        known = self._sources.get(source)
        return math.inf if known is None else max(known.proven_complete, known.current_until)

    def unproven(self, source: str, end: float) -> list[tuple[float, float]]:
        """Long times, up to ``end``, at which the resource was not proven current. None without any proof."""
        known = self._sources.get(source)
        if known is None:
            return []
        is_open = end - known.current_until > _NOTABLE_PAUSE
        return [*known.unproven, (known.current_until, end)] if is_open else known.unproven

    def late_windows(self, source: str) -> list[BlindWindow]:
        """Times at which the order of the changes of all objects is uncertain."""
        windows = list(self._late.get(source, ()))
        for order, earliest, t in self._unsettled.get(source, ()):
            self._extend_late(windows, source, order, earliest, t)
        return windows

    def _add_late(self, source: str, order: int, earliest: float, t: float) -> None:
        """Remember a late version; an answer that is under way may show that it is not."""
        unsettled = self._unsettled.setdefault(source, deque())
        unsettled.append((order, earliest, t))
        while unsettled[0][2] < t - self.slowest:
            self._extend_late(self._late.setdefault(source, []), source, *unsettled.popleft())

    def _extend_late(self, windows: list[BlindWindow], source: str, order: int, start: float, end: float) -> None:
        if order:
            start = max(start, self._sources[source].bounds.interval(order)[0])
        if end - start <= USUAL_LAG:
            return
        while windows and (windows[-1].end or end) >= start:
            start = min(start, windows.pop().start)
        windows.append(BlindWindow(start, end, "the watch was late", source))


def _listed(proof: Currency) -> float:
    """The resourceVersion of the list that proves ``until``, or infinity if the versions cannot be compared."""
    number = version_number(proof.version)
    return math.inf if number is None or proof.read != proof.until else number
