"""The state of a run, as reported to progress views, and the lines that say what has changed.

Offsets are relative to the first step, as in the reports; there are none before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chaos.cli.run.step_groups import StepGroups
from chaos.core.duration import format_duration
from chaos.core.result import Judgement
from chaos.core.text import printable
from chaos.core.verdict import SYMBOLS, Status, Verdict

WAITING_PHASES = ("observe", "recovery")  # of a run, in which nothing is done but to wait for verdicts


@dataclass(frozen=True, slots=True)
class Line:
    """One line of progress. ``style``: phase, step, note, or the status of a verdict."""

    text: str
    style: str
    offset: str


@dataclass
class ProgressState:
    """The state of a run as reported so far. Each method that reports returns the lines that are news."""

    now: float | None = None
    first_step: float | None = None
    phase_name: str = ""
    judgement: Judgement | None = None
    _decided: dict[tuple[str, str, str], Status] = field(default_factory=dict)
    _steps: StepGroups = field(default_factory=StepGroups)
    _awaited: tuple[str, str] = ("", "")  # phase and expectation that was last said to be waited for

    def phase(self, name: str) -> list[Line]:
        self.phase_name = printable(name)
        return [*self.flush(), self._line(f"phase: {self.phase_name}", "phase")]

    def step(self, name: str, node: str, what: str) -> list[Line]:
        """No line yet: those of many nodes are one, which :meth:`flush` returns."""
        if self.first_step is None:
            self.first_step = self.now
        self._steps.add(name, node, what)
        return []

    def verdict(self, verdict: Verdict) -> list[Line]:
        """The line of a verdict that is decided; one that is decided otherwise than before names both."""
        if verdict.status is Status.PENDING:
            return []
        key = (verdict.name, verdict.assertion, verdict.expected)
        before = self._decided.get(key)
        self._decided[key] = verdict.status
        if before is verdict.status:
            return []
        was = f" (was {before})" if before else ""
        text = (
            f"{SYMBOLS[verdict.status]} {verdict.status}{was}: {printable(verdict.name)}: {printable(verdict.because)}"
        )
        return [*self.flush(), self._line(text, verdict.status)]

    def note(self, text: str) -> list[Line]:
        return [*self.flush(), self._line(printable(text), "note")]

    def tick(self, now: float) -> list[Line]:
        """The steps reported up to now, whose time is that of the tick before."""
        lines = self.flush()
        self.now = now
        return lines

    def judged(self, judgement: Judgement) -> list[Line]:
        """What is waited for, whenever the next deadline is that of another expectation."""
        self.judgement = judgement
        if self.phase_name not in WAITING_PHASES or not (due := self.due()):
            return []
        first, *others = due
        if self._awaited == (self.phase_name, first.name):
            return []
        self._awaited = (self.phase_name, first.name)
        more = f"; {len(others)} more pending" if others else ""
        missing = f": {printable(first.observed)}" if first.observed else ""
        awaited = f"{SYMBOLS[Status.PENDING]} pending, due in {self.remaining(first)}: {printable(first.name)}"
        return [*self.flush(), self._line(f"{awaited}{missing}{more}", Status.PENDING)]

    def flush(self) -> list[Line]:
        """The lines of the steps that were reported since the last one."""
        return [self._line(text, "step") for text in self._steps.flush()]

    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of the last tick."""
        return (*self.judgement.expectations, *self.judgement.recovery) if self.judgement else ()

    def due(self) -> Sequence[Verdict]:
        """The pending verdicts with a deadline to come, the next first."""
        pending = [v for v in self.verdicts() if v.status is Status.PENDING and self.seconds_to(v.deadline) > 0]
        return sorted(pending, key=lambda verdict: verdict.deadline or 0.0)

    def seconds_to(self, t: float | None) -> float:
        """Seconds from now to ``t``; 0 if it is over or unknown."""
        return 0.0 if t is None or self.now is None else max(0.0, t - self.now)

    def remaining(self, verdict: Verdict) -> str:
        """The time until a pending verdict's deadline, "" if there is none."""
        if verdict.status is not Status.PENDING or verdict.deadline is None or self.now is None:
            return ""
        return format_duration(round(self.seconds_to(verdict.deadline)))

    def offset(self, t: float | None) -> str:
        """The offset of ``t`` from the first step, as ``+1m30s``; "" before that."""
        if t is None or self.first_step is None:
            return ""
        shift = round(t - self.first_step, 1)
        return f"-{format_duration(-shift)}" if shift < 0 else f"+{format_duration(shift)}"

    def _line(self, text: str, style: str) -> Line:
        return Line(text, style, self.offset(self.now))
