"""Events of a game day: the port to which its run sends them, and texts and bodies of notifications. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, Protocol

from msgspec import Struct

from chaos.core.duration import format_duration
from chaos.core.metrics import Metric
from chaos.core.moments import rfc3339
from chaos.core.text import printable
from chaos.gameday.document import Occasion

MESSAGE_VERSION = 1
_MAX_TEXT = 1000  # characters
_COLORS = {"held": "good", "violated": "attention"}  # names of Adaptive Cards; otherwise a warning
_SLACK_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MAX_SECTION = 3000  # characters of a section of Slack; a post of Mattermost holds more
_NO_WIDTH = "\u200b"


class EventKind(StrEnum):
    DAY_BEGINS = "day-begins"
    ENTRY_BEGINS = "entry-begins"
    ENTRY_ENDS = "entry-ends"
    ENTRY_SKIPPED = "entry-skipped"
    DAY_ENDS = "day-ends"
    HALTED = "halted"


class DayEvent(Struct, frozen=True, omit_defaults=True):
    """Something that happened on a game day. Times are seconds since the epoch, in cluster time.

    ``day``: the ID of the day. ``until``: when the day is over at the latest, if that is known. ``entry``,
    ``repetition`` (from 1), ``run``, ``experiment``, ``begun`` and ``metrics``: of events about an entry. ``verdict``
    and ``reason``: how the entry or the day ended, or why it was halted, ``by``: by whom. ``counts``: of the day's runs
    by verdict or status. ``report``: the URL of the report.
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
        """What a receiver names in ``on`` to get this event; nothing for one that is for metrics alone."""
        if self.kind is EventKind.ENTRY_SKIPPED:
            return frozenset()
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


def headline(event: DayEvent) -> str:
    """What happened, in one line."""
    day = f"game day {event.gameday}" + (f" on {event.cluster}" if event.cluster else "")
    entry = event.entry + (f" ({event.repetition})" if event.repetition > 1 else "")
    texts = {
        EventKind.DAY_BEGINS: f"{day} begins",
        EventKind.ENTRY_BEGINS: f"{day}: {entry} begins",
        EventKind.ENTRY_ENDS: f"{day}: {entry} is {event.verdict or 'over'}",
        EventKind.ENTRY_SKIPPED: f"{day}: {entry} is skipped",
        EventKind.DAY_ENDS: f"{day} is over",
        EventKind.HALTED: f"{day} is halted" + (f" by {event.by}" if event.by else ""),
    }
    return printable(texts[event.kind], _MAX_TEXT)


def details(event: DayEvent) -> list[tuple[str, str]]:
    """Further facts, by name."""
    took = format_duration(round(event.at - event.begun, 1)) if event.begun is not None else ""
    counts = ", ".join(f"{number} {name}" for name, number in event.counts.items() if number)
    found = [
        ("why", event.reason),
        ("runs", counts),
        ("took", took),
        ("owner", event.owner),
        ("until", format_time(event.until) if event.until is not None else ""),
        ("run", event.run),
        ("report", event.report),
    ]
    return [(name, printable(value, _MAX_TEXT)) for name, value in found if value]


def format_time(t: float) -> str:
    """RFC 3339, in UTC."""
    return rfc3339(t, "milliseconds")


def webhook_document(event: DayEvent) -> dict[str, Any]:
    """The body for a webhook, as docs/gameday.md describes it."""
    return {
        "version": MESSAGE_VERSION,
        "event": str(event.kind),
        "time": format_time(event.at),
        "text": headline(event),
        "gameday": event.gameday,
        "day": event.day,
        "title": event.title,
        "owner": event.owner,
        "cluster": event.cluster,
        "until": format_time(event.until) if event.until is not None else None,
        "entry": event.entry,
        "repetition": event.repetition,
        "run": event.run,
        "experiment": event.experiment,
        "verdict": event.verdict,
        "reason": event.reason,
        "by": event.by,
        "counts": event.counts,
        "report": event.report,
    }


def slack_message(event: DayEvent) -> dict[str, Any]:
    """The body for an incoming webhook of Slack, or of what is compatible with it, as Mattermost.

    ``text`` is what a notification of Slack shows, and all that Mattermost shows, which links mentions and Markdown in
    it. https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    """
    head = headline(event).translate(_SLACK_ESCAPES)
    facts = [(name, value.translate(_SLACK_ESCAPES)) for name, value in details(event)]
    text = _lines([head, *(f"{name}: {value}" for name, value in facts)])
    marked = _lines([f"*{head}*", *(f"*{name}:* {value}" for name, value in facts)])
    block = {"type": "section", "text": {"type": "mrkdwn", "text": marked}}
    return {"text": text.replace("](", f"]{_NO_WIDTH}("), "blocks": [block]}


def _lines(lines: list[str]) -> str:
    """As many lines as a section takes. An @ mentions no one: a character without width is behind it."""
    found, size = list[str](), 0
    for line in lines:
        size += len(line.replace("@", f"@{_NO_WIDTH}")) + 1
        if size > _MAX_SECTION:
            break
        found.append(line.replace("@", f"@{_NO_WIDTH}"))
    return "\n".join(found)


def teams_message(event: DayEvent) -> dict[str, Any]:
    """The body for a workflow of Microsoft Teams ("post to a channel when a webhook request is received").

    Its trigger takes Adaptive Cards only, in the envelope of a message:
    https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
    Clients differ in what they take as an escape in a TextBlock or a Fact, and a TextRun has no Markdown at all.
    """
    color = _COLORS.get(event.verdict, "warning") if event.verdict or event.kind is EventKind.HALTED else "default"
    title = _runs({"text": headline(event), "weight": "Bolder", "color": color})
    facts = [_runs({"text": f"{name}: ", "weight": "Bolder"}, {"text": value}) for name, value in details(event)]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [title, *facts],
        **({"actions": [{"type": "Action.OpenUrl", "title": "Report", "url": event.report}]} if event.report else {}),
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _runs(*runs: dict[str, str]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", **run} for run in runs]}
