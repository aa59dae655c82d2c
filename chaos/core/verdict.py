"""Verdicts: held, violated or inconclusive, each with its reason and evidence, and the limits for reports to draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class ValueLimit:
    """A number with which an assertion compares what a probe, a query or a metric measures.

    ``operator`` is as the parameters have it, also where ``never``, ``series: none`` or an abort condition denies it.
    """

    source: str  # probe, query or metric
    name: str  # of the probe or the query in the experiment, or of the metric
    measure: str  # value, or increase since judging starts; of a probe: latency, or the time that it fails in total
    operator: str  # at-most or at-least
    value: float  # a latency and a time: in seconds
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)  # only series of the query that have them


class Status(StrEnum):
    """Pending occurs only during a live run, before the deadline.

    Known is what views call a violation that is known of this version of Kubernetes (:attr:`Verdict.shown`). It is the
    status of no verdict.
    """

    HELD = "held"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    PENDING = "pending"
    KNOWN = "known"

    @property
    def words(self) -> str:
        """The status for people."""
        return "violated, as known" if self is Status.KNOWN else str(self)


SYMBOLS = {
    Status.HELD: "✓", Status.VIOLATED: "✗", Status.INCONCLUSIVE: "?", Status.PENDING: "…", Status.KNOWN: "~",
}  # fmt: skip


_ORDER = (Status.HELD, Status.PENDING, Status.INCONCLUSIVE, Status.VIOLATED)


def worst(statuses: Iterable[Status]) -> Status:
    """The worst status: violated, inconclusive, pending, held, in this order; no status at all is inconclusive.

    Known counts as held.
    """
    given = [Status.HELD if status is Status.KNOWN else status for status in statuses]
    return max(given, key=_ORDER.index) if given else Status.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Known:
    """A known deviation of Kubernetes from its documentation.

    ``versions``: of Kubernetes that deviate, as ``>=v1.32, <v1.36``. ``issue``: URL of the upstream issue. ``instead``:
    what happens instead.
    """

    versions: str
    issue: str
    instead: str

    def __str__(self) -> str:
        return f"known of Kubernetes {self.versions}: {self.instead} ({self.issue})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one expectation.

    ``sentence`` is for people, of at most 20 words; ``because`` is precise. ``bound`` is the time in the expectation
    in seconds, and ``subjects`` are the objects that violate it, both if known. ``at`` is the time of the decision,
    ``start`` and ``deadline`` are the bounds of the time judged (seconds since the epoch, None if unknown); of an
    undecided one, the deadline is the end of the time ``for`` which it must be true. ``evidence`` holds ``Entry.seq``
    numbers of the timeline. ``known``: of a violation that is known of the cluster's version, and does not make the
    run violated.
    """

    name: str
    assertion: str
    status: Status
    because: str
    expected: str = ""
    observed: str = ""
    at: float | None = None
    start: float | None = None
    deadline: float | None = None
    evidence: tuple[int, ...] = ()
    assumed_facts: tuple[str, ...] = field(default=())  # facts taken from a default, as "name=value"
    sentence: str = ""
    bound: float | None = None
    subjects: tuple[str, ...] = ()
    operator: str = ""  # within, never or always; "" for a moment, for an order, and in results of 0.1.0
    limits: tuple[ValueLimit, ...] = ()  # of values that were measured; result.json has the key only if there are any
    known: Known | None = None  # as for limits

    @property
    def shown(self) -> Status:
        """The status that views show and that counts for the run: known instead of violated, for known violations."""
        return Status.KNOWN if self.known and self.status is Status.VIOLATED else self.status
