"""However an entry ends, its metrics say so: those of a former day never look like those of this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.app.day import entry as day_entry
from chaos.app.day import runner
from chaos.core.errors import Refused, UndoPending
from chaos.engine.stop import Interrupted
from chaos.gameday.events import DayEvent, EventKind, NoNotifier
from chaos.gameday.state import RunKey
from chaos.gameday.transitions import skip, skip_rest
from tests.app.day.test_day_entry import connected
from tests.kit.day_session import Day

BEGIN = 1_796_115_600.0


class Collected(NoNotifier):
    def __init__(self) -> None:
        self.events: list[DayEvent] = []

    def send(self, event: DayEvent) -> None:
        self.events.append(event)


@pytest.fixture
def day(tmp_path: Path) -> Day:
    made = Day(tmp_path, ["one", "two", "three"], BEGIN)
    made.session.notifier = Collected()
    return made


def sent(day: Day) -> dict[tuple[str, str], dict[str, float]]:
    """By entry and kind of event: the verdict that is 1, and the pending undo."""
    notifier = day.session.notifier
    assert isinstance(notifier, Collected)
    found = {}
    for event in notifier.events:
        metrics = {metric.name.removeprefix("nodefall_run_"): metric.samples for metric in event.metrics}
        if metrics:
            states = {sample.labels["verdict"]: sample.value for sample in metrics["verdict"] if sample.value}
            found[event.entry, str(event.kind)] = states | {"pending": metrics["pending_undo"][0].value}
    return found


def next_run(day: Day, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """The next run of the day, with ``act`` in place of the experiment."""
    monkeypatch.setattr(day_entry, "connect_cluster", lambda _: connected(day))
    monkeypatch.setattr(day_entry, "run", act)
    monkeypatch.setattr(runner, "_may_begin", lambda *_: True)
    runner._next(day.session, day.session.state.runs[0], None)  # type: ignore[arg-type]  # no gate is asked


def test_a_refused_entry(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refused("it requires more")

    next_run(day, monkeypatch, refuse)
    assert sent(day) == {("one", "entry-ends"): {"skipped": 1.0, "pending": 0.0}}


@pytest.mark.parametrize(
    ("error", "pending"),
    [(UndoPending("the node is off"), 1.0), (Interrupted(15), 0.0)],
    ids=["undo pending", "signal"],
)
def test_an_entry_without_a_result(day: Day, monkeypatch: pytest.MonkeyPatch, error: Exception, pending: float) -> None:
    def fail(*_: object) -> None:
        raise error

    with pytest.raises(type(error)):
        next_run(day, monkeypatch, fail)
    assert sent(day) == {("one", "entry-ends"): {"interrupted": 1.0, "pending": pending}}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda state, epoch: skip(state, RunKey("one", "", 1), "a gate did not hold", epoch, BEGIN), ["one"]),
        (lambda state, epoch: skip_rest(state, "the window closes", epoch, BEGIN), ["one", "two", "three"]),
    ],
    ids=["one", "the rest"],
)
def test_skipped_entries(day: Day, monkeypatch: pytest.MonkeyPatch, change: Any, names: list[str]) -> None:
    def skipping(session: Any, *_: object) -> bool:
        session.update(lambda state: change(state, session.epoch))
        return False

    monkeypatch.setattr(runner, "_may_begin", skipping)
    runner._next(day.session, day.session.state.runs[0], None)  # type: ignore[arg-type]  # no gate is asked
    assert sent(day) == {(name, str(EventKind.ENTRY_SKIPPED)): {"skipped": 1.0, "pending": 0.0} for name in names}
