"""Progress of a run as lines, one per change, and the state from which they follow.

Offsets are relative to the first step, as in the reports; there are none before it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

import click

from chaos.cli.output import wants_color
from chaos.core.duration import format_duration
from chaos.core.result import Judgement
from chaos.core.text import escape_for_encoding, on_node, printable
from chaos.core.verdict import SYMBOLS, Status, Verdict

_NAMED = 3  # nodes that a line names, if there are more
WAITING_PHASES = ("observe", "recovery")  # of a run, in which nothing is done but to wait for verdicts
STEP_SECONDS = 0.3  # that a step's line waits for those of other nodes, which it then names, too
_STYLES: dict[str, dict[str, object]] = {
    "phase": {"bold": True},
    "step": {"fg": "cyan"},
    Status.HELD: {"fg": "green"},
    Status.VIOLATED: {"fg": "red", "bold": True},
    Status.INCONCLUSIVE: {"fg": "yellow"},
    Status.PENDING: {"dim": True},
    Status.KNOWN: {"fg": "magenta"},
}


class StepGroups:
    """Reports that wait to be printed, grouped by step and kind, in the order of the first of each group."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], list[tuple[str, str]]] = {}  # node and text of each report

    def add(self, step: str, node: str, what: str) -> None:
        """Add a report: ``what`` was done, proven or undone. It differs by its node and measured values only."""
        self._groups.setdefault((step, _kind(node, what)), []).append((node, what))

    def flush(self) -> list[str]:
        """A line for each group; they are forgotten."""
        lines = [_line_of(step, reports) for (step, _), reports in self._groups.items()]
        self._groups.clear()
        return lines


def _kind(node: str, what: str) -> str:
    """What reports of many nodes share: the word before a colon, as ``proven``, else the text without the node."""
    word, colon, _ = what.partition(": ")
    return word if colon and word.isalpha() else what.replace(node, "\0") if node else what


def _line_of(step: str, reports: list[tuple[str, str]]) -> str:
    (node, what), *others = reports
    if not others:
        return printable(f"{on_node(f'step {step}', node)}: {what}")
    nodes = list(dict.fromkeys(name for name, _ in reports))
    named = ", ".join(nodes[:_NAMED]) + (f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else "")
    is_same = all(text == what for _, text in others)
    likewise = "" if is_same else f" (of {len(reports)} alike)"
    return printable(f"step {step} on {named}: {what}{likewise}")


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
        shown = self._decided[key] = verdict.shown
        if before is shown:
            return []
        was = f" (was {before.words})" if before else ""
        text = f"{SYMBOLS[shown]} {shown.words}{was}: {printable(verdict.name)}: {printable(verdict.because)}"
        return [*self.flush(), self._line(text, shown)]

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


class LineProgress(ABC):
    """Progress as lines, one per change. Called from the run's thread, and by those that act on many hosts."""

    def __init__(self) -> None:
        self._state = ProgressState()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def phase(self, name: str) -> None:
        with self._lock:
            self._emit(self._state.phase(name))

    def step(self, name: str, node: str, what: str) -> None:
        with self._lock:
            self._emit(self._state.step(name, node, what))
            if self._timer is None:  # a step may take minutes, in which nothing else is reported
                self._timer = threading.Timer(STEP_SECONDS, self._flush_steps)
                self._timer.daemon = True
                self._timer.start()

    def verdict(self, verdict: Verdict) -> None:
        with self._lock:
            self._emit(self._state.verdict(verdict))

    def note(self, text: str) -> None:
        with self._lock:
            self._emit(self._state.note(text))

    def tick(self, now: float) -> None:
        with self._lock:
            self._emit(self._state.tick(now))

    def judged(self, judgement: Judgement) -> None:
        with self._lock:
            self._emit(self._state.judged(judgement))

    @property
    def opens_report(self) -> bool:
        return False

    @abstractmethod
    def _emit(self, lines: Sequence[Line]) -> None:
        """Show lines. The lock is held. Raises OSError, ValueError."""

    def _flush_steps(self) -> None:
        with self._lock:
            self._timer = None
            try:
                self._emit(self._state.flush())
            except (OSError, ValueError):
                return  # the next line fails, too, where it is handled

    def _finish(self) -> None:
        """Show what has waited. Raises OSError, ValueError."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
                self._timer = None
            self._emit(self._state.flush())


class PlainProgress(LineProgress):
    """Lines as they come, for logs and pipes; with colours on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def hide(self) -> None:
        self._finish()
        self._stream.flush()

    def show(self) -> None:
        """Do nothing: lines need not be hidden."""

    def close(self) -> None:
        self.hide()

    def _emit(self, lines: Sequence[Line]) -> None:
        write_lines(self._stream, lines)


def write_lines(stream: TextIO, lines: Sequence[Line]) -> None:
    """Write lines with their offsets. Raises OSError, ValueError."""
    if not lines:
        return
    with_color = wants_color(stream)
    for line in lines:
        text = escape_for_encoding(f"{line.offset:>8}  {line.text}", stream.encoding or "utf-8")
        style = _STYLES.get(line.style)
        stream.write((click.style(text, **style) if style and with_color else text) + "\n")  # type: ignore[arg-type]  # by name
    stream.flush()
