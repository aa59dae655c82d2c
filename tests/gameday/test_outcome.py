"""How a day ended, as an exit code and in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chaos.gameday.state import DayRun, DayState, Halt, RunKey, RunStatus, Verdict, describe, exit_code


def day(*ends: Verdict | RunStatus) -> DayState:
    runs = []
    for number, end in enumerate(ends):
        run = DayRun(RunKey(f"e{number}", "", 1), 1, "continue")
        if isinstance(end, RunStatus):
            run = replace(run, status=end, run="r" if end is RunStatus.RUNNING else "")
        else:
            run = replace(run, status=RunStatus.DONE, run=f"r{number}", verdict=end)
        runs.append(run)
    return DayState("mon", "weekly", "a" * 64, 1, 1.0, "by-entry", 1, "me", 1, tuple(runs))


SKIPPED, PENDING, RUNNING = RunStatus.SKIPPED, RunStatus.PENDING, RunStatus.RUNNING


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [
        (day("held", "held"), 0, "finished: 2 held"),
        (day("held", "violated"), 1, "finished: 1 held, 1 violated"),
        (day("violated", PENDING), 1, "is running: 1 violated, 1 pending"),
        (day("held", SKIPPED), 2, "finished: 1 held, 1 skipped"),
        (day("held", "interrupted"), 2, "finished: 1 held, 1 interrupted"),
        (day("inconclusive"), 2, "finished: 1 inconclusive"),
        (day("held", RUNNING), 2, "is running: 1 held, 1 running"),
        (day(PENDING), 2, "is running: 1 pending"),
        (day(SKIPPED, SKIPPED), 4, "finished: 2 skipped"),
        (replace(day("held", PENDING), halts=(Halt("ada", 1.0, ""),)), 2, "halted: 1 held, 1 pending"),
    ],
)
def test_outcomes(state: DayState, code: int, text: str) -> None:
    assert exit_code(state) == code
    assert describe(state) == f"day mon of weekly {text}"
