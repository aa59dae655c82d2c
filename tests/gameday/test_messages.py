"""Texts and bodies of messages about a day."""

from __future__ import annotations

import pytest

from chaos.gameday.events import DayEvent, EventKind, details, headline, webhook_document
from tests.kit.day_events import event

HEADLINES = {
    EventKind.DAY_BEGINS: "game day monthly on prod-a begins",
    EventKind.ENTRY_BEGINS: "game day monthly on prod-a: drain begins",
    EventKind.ENTRY_ENDS: "game day monthly on prod-a: drain is violated",
    EventKind.DAY_ENDS: "game day monthly on prod-a is over",
    EventKind.HALTED: "game day monthly on prod-a is halted by ada",
}


@pytest.mark.parametrize(("kind", "text"), HEADLINES.items())
def test_headlines(kind: EventKind, text: str) -> None:
    assert headline(event(kind)) == text


def test_headlines_of_other_events() -> None:
    assert headline(event(EventKind.ENTRY_BEGINS, repetition=2)) == "game day monthly on prod-a: drain (2) begins"
    assert headline(event(EventKind.ENTRY_ENDS, verdict="")) == "game day monthly on prod-a: drain is over"
    assert headline(event(EventKind.HALTED, cluster="", by="")) == "game day monthly is halted"


def test_details() -> None:
    assert details(event(EventKind.ENTRY_ENDS, owner="platform", report="https://ci.example/x/report.html")) == [
        ("why", "2 of 3 <pods> & more"),
        ("took", "5m"),
        ("owner", "platform"),
        ("run", "drain-1f2e3d"),
        ("report", "https://ci.example/x/report.html"),
    ]
    assert details(event(EventKind.DAY_ENDS, owner="")) == [("runs", "3 held, 1 violated")]
    assert details(event(EventKind.DAY_BEGINS, owner="", until=9000.0)) == [("until", "1970-01-01T02:30:00.000Z")]


def test_texts_are_on_one_line_without_control_characters() -> None:
    event = DayEvent(EventKind.HALTED, "g", "d", 0.0, by="a\nb\x1b[31m", reason="r\u202e\n" + "x" * 9999)
    assert headline(event) == "game day g is halted by a b\\x1b[31m"
    (_, why), *_ = details(event)
    assert why.isprintable()
    assert len(why) <= 1000


@pytest.mark.parametrize("kind", list(EventKind))
def test_every_event_has_the_same_keys_for_a_webhook(kind: EventKind) -> None:
    documents = [webhook_document(DayEvent(each, "g", "d", 0.0)).keys() for each in (kind, EventKind.DAY_BEGINS)]
    assert documents[0] == documents[1]
