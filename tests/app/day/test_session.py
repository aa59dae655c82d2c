"""What a session may do once another process has taken the day over, and what it leaves in the state at its end."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from chaos.app.day.events import notifying, send_halt
from chaos.app.day.gates import await_gates
from chaos.app.day.stop import DayHalted
from chaos.app.day.store import existing
from chaos.gameday.state import Halt, RunKey
from chaos.gameday.transitions import StateConflict, begin, take_over
from tests.kit.day_session import Day

BEGIN = datetime(2026, 11, 23, 10, 0, tzinfo=UTC).timestamp()  # a Monday
ONE = RunKey("one", "", 1)


def replaced(folder: Path) -> Day:
    """A day that another process has taken over, which this one does not know yet."""
    day = Day(folder, ["one"], BEGIN, gates=[{"kind": "approval", "by": ["ada"]}])
    day.session.store.update(existing(lambda state: take_over(state, "other")))
    return day


def test_a_process_that_was_replaced_does_not_go_on_as_its_successor(tmp_path: Path) -> None:
    """However often it reads the state again: its epoch stays its own."""
    session = replaced(tmp_path).session
    with pytest.raises(StateConflict, match="mon was taken over by other"):
        session.refresh()
    with pytest.raises(StateConflict, match="mon was taken over by other"):
        session.update(partial(begin, key=ONE, run="r1", epoch=session.epoch, now=BEGIN))
    with pytest.raises(StateConflict, match="mon was taken over by other"):
        session.halt("an abort condition", "it is not ours to stop")
    assert session.epoch == 1


def test_gates_of_a_process_that_was_replaced(tmp_path: Path) -> None:
    session = replaced(tmp_path).session
    with pytest.raises(StateConflict, match="mon was taken over by other"):
        await_gates(session, session.find(ONE), lambda *_: [])


def test_what_was_not_delivered_is_stored_however_the_work_ends(tmp_path: Path) -> None:
    """Of a halt, too, which ends it by an exception."""
    day = Day(tmp_path, ["one"], BEGIN, notify=[{"kind": "slack", "url": {"env": "NO_SUCH_VARIABLE"}}])

    def work() -> None:
        with notifying(day.session):
            send_halt(day.session, Halt("ada", BEGIN, "pager"))
            raise DayHalted("halted by ada")

    with pytest.raises(DayHalted):
        work()
    state = day.session.store.read()
    assert state is not None
    assert [(lost.receiver, str(lost.kind)) for lost in state.undelivered] == [("slack", "halted")]
