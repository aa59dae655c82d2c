"""Events of one day, for tests of receivers."""

from __future__ import annotations

import threading
from typing import Any

from chaos.core.metrics import Metric, Sample
from chaos.gameday.events import DayEvent, EventKind
from chaos.gameday.notify.delivery import Requester

NOW = 1_790_000_000.0
METRICS = (
    Metric(
        "nodefall_run_verdict", "Verdict.", (Sample(1.0, {"verdict": "violated"}), Sample(0.0, {"verdict": "held"}))
    ),
    Metric("nodefall_run_duration_seconds", "Duration of the last run in seconds.", (Sample(300.0),)),
)


def event(kind: EventKind, **changed: Any) -> DayEvent:
    fields: dict[str, Any] = {
        "gameday": "monthly",
        "day": "2026-11-03",
        "at": NOW,
        "owner": "platform",
        "cluster": "prod-a",
    }
    if kind in (EventKind.ENTRY_BEGINS, EventKind.ENTRY_ENDS):
        fields |= {"entry": "drain", "repetition": 1, "run": "drain-1f2e3d", "experiment": "drain"}
    if kind is EventKind.ENTRY_ENDS:
        fields |= {
            "at": NOW + 300,
            "begun": NOW,
            "verdict": "violated",
            "reason": "2 of 3 <pods> & more",
            "metrics": METRICS,
        }
    if kind is EventKind.DAY_BEGINS:
        fields |= {"until": NOW + 7200}
    if kind is EventKind.DAY_ENDS:
        fields |= {"at": NOW + 3600, "counts": {"held": 3, "violated": 1, "skipped": 0}}
    if kind is EventKind.HALTED:
        fields |= {"by": "ada", "reason": "pager"}
    return DayEvent(kind, **(fields | changed))


def quick(tries: int = 3) -> Requester:
    """Without pauses between the tries."""
    return Requester(threading.Event(), (0.0,) * (tries - 1))
