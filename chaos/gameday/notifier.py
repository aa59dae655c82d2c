"""Events of a game day, and the port to which its run sends them."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Protocol

from msgspec import Struct

from chaos.core.metrics import Metric
from chaos.gameday.notifications import Occasion


class EventKind(StrEnum):
    DAY_BEGINS = "day-begins"
    ENTRY_BEGINS = "entry-begins"
    ENTRY_ENDS = "entry-ends"
    DAY_ENDS = "day-ends"
    HALTED = "halted"


class DayEvent(Struct, frozen=True, omit_defaults=True):
    """Something that happened on a game day. Times are seconds since the epoch, in cluster time.

    ``day``: the ID of the day. ``until``: when the day is over at the latest, if that is known. ``entry``,
    ``repetition`` (from 1), ``run``, ``experiment``, ``begun`` and ``metrics``: of events about an entry. ``verdict``
    and ``reason``: how the entry or the day ended, or why it was halted, ``by``: by whom. ``counts``: of the day's runs
    by verdict or status. ``report``: where the report is.
    """

    kind: EventKind
    gameday: str
    day: str
    at: float
    title: str = ""
    owner: str = ""
    cluster: str = ""
    until: float | None = None
    entry: str = ""
    repetition: int = 0
    run: str = ""
    experiment: str = ""
    begun: float | None = None
    verdict: str = ""
    reason: str = ""
    by: str = ""
    counts: dict[str, int] = {}
    report: str = ""
    metrics: tuple[Metric, ...] = ()

    @property
    def occasions(self) -> frozenset[Occasion]:
        """What a receiver names in ``on`` to get this event."""
        if self.kind is EventKind.ENTRY_ENDS and self.verdict == "violated":
            return frozenset({"entry", "violated"})
        return frozenset({_OCCASIONS[self.kind]})


class Undelivered(Struct, frozen=True):
    """An event that did not reach a receiver, for the record of the day."""

    receiver: str
    kind: EventKind
    at: float
    reason: str


class Notifier(Protocol):
    """Sends events to the receivers of a day. It never raises, and never keeps a run waiting."""

    def send(self, event: DayEvent) -> None: ...

    @property
    def undelivered(self) -> tuple[Undelivered, ...]:
        """What could not be delivered so far."""


class NoNotifier:
    """A notifier without receivers."""

    undelivered: tuple[Undelivered, ...] = ()

    def send(self, event: DayEvent) -> None: ...


_OCCASIONS: dict[EventKind, Literal["start", "entry", "halted", "end"]] = {
    EventKind.DAY_BEGINS: "start",
    EventKind.ENTRY_BEGINS: "entry",
    EventKind.ENTRY_ENDS: "entry",
    EventKind.DAY_ENDS: "end",
    EventKind.HALTED: "halted",
}
