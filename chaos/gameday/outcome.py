"""How a day ended, or stands: as an exit code, and in words."""

from __future__ import annotations

from collections import Counter

from chaos.core.errors import Exit
from chaos.gameday.state import DayState, DayStatus, RunStatus, Verdict

_VERDICTS: dict[int, Verdict] = {Exit.HELD: "held", Exit.VIOLATED: "violated"}


def exit_code(state: DayState) -> Exit:
    """0: every run held; 1: one was violated; 4: none took place; 2: anything else, also while the day goes on."""
    verdicts = {run.verdict for run in state.runs if run.status is RunStatus.DONE}
    if "violated" in verdicts:
        return Exit.VIOLATED
    if state.status is not DayStatus.FINISHED:
        return Exit.INCONCLUSIVE
    if not verdicts:
        return Exit.REFUSED
    is_whole = all(run.status is RunStatus.DONE for run in state.runs)
    return Exit.HELD if is_whole and verdicts == {"held"} else Exit.INCONCLUSIVE


def verdict_of(code: int) -> Verdict:
    """The verdict of a run or a day with this exit code; what is neither held nor violated is not decided."""
    return _VERDICTS.get(code, "inconclusive")


def describe(state: DayState) -> str:
    """One line: ``day 2026-11-23 of monthly finished: 3 held, 1 violated, 1 skipped``."""
    counts = Counter(run.verdict or str(run.status) for run in state.runs)
    shown = ("held", "violated", "inconclusive", "interrupted", "skipped", "running", "pending")
    parts = [f"{counts[word]} {word}" for word in shown if counts[word]]
    status = "is running" if state.status is DayStatus.RUNNING else str(state.status)
    return f"day {state.day} of {state.gameday} {status}: {', '.join(parts)}"
