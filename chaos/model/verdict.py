"""Verdicts: held, violated or inconclusive, each with its reason and evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    """Pending exists only while a run is live: its deadline has not come yet."""

    HELD = "held"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    PENDING = "pending"


SYMBOLS = {Status.HELD: "✓", Status.VIOLATED: "✗", Status.INCONCLUSIVE: "?", Status.PENDING: "…"}
_ORDER = (Status.HELD, Status.PENDING, Status.INCONCLUSIVE, Status.VIOLATED)


def worst(statuses: Iterable[Status]) -> Status:
    """Violated beats inconclusive beats pending beats held; nothing at all is inconclusive."""
    found = list(statuses)
    return max(found, key=_ORDER.index) if found else Status.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one expectation.

    ``because`` is one sentence; ``expected`` and ``observed`` stand beside each other in reports.
    ``at`` is when it was decided, ``start`` and ``deadline`` bound the time judged (seconds since the
    epoch, None if unknown). ``evidence`` holds ``Entry.seq`` numbers of the timeline.
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
