"""Windows of blindness: from the first cause to the end of the last, with the reasons of all."""

from __future__ import annotations

import msgspec

from chaos.cluster.observers.base import BlindWindowTracker
from chaos.core.recording import RecordingEntry
from tests.kit.misbehaving import ManualClock


def windows(entries: list[RecordingEntry]) -> list[tuple[float, float | None, str]]:
    found = [msgspec.json.decode(entry.object) for entry in entries]
    return [(window["from"], window["to"], window["reason"]) for window in found]


def test_a_window_has_the_reasons_of_all_its_causes() -> None:
    entries: list[RecordingEntry] = []
    clock = ManualClock()
    tracker, begin = BlindWindowTracker("pods", clock, entries.append), clock.now()
    tracker.open("watch", begin, "no watch was open for 0.6 s")
    for version in range(9):
        tracker.open("watch", begin, "410 too old")
        tracker.open("api", begin, f"refused {version}")
    tracker.close("watch")
    tracker.close("api")
    assert windows(entries) == [
        (begin, None, "no watch was open for 0.6 s"),
        (begin, clock.now(), "no watch was open for 0.6 s; 410 too old; refused 0"),
    ]
    tracker.open("watch", begin, "cut")
    tracker.close("watch")
    assert windows(entries)[-1] == (begin, clock.now(), "cut")
