"""Progress of a run as lines, one per change."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TextIO

import click

from chaos.cli.output import wants_color
from chaos.cli.run.progress_state import Line, ProgressState
from chaos.core.result import Judgement
from chaos.core.text import escape_for_encoding
from chaos.core.verdict import Status, Verdict

STEP_SECONDS = 0.3  # that a step's line waits for those of other nodes, which it then names, too
_STYLES: dict[str, dict[str, object]] = {
    "phase": {"bold": True},
    "step": {"fg": "cyan"},
    Status.HELD: {"fg": "green"},
    Status.VIOLATED: {"fg": "red", "bold": True},
    Status.INCONCLUSIVE: {"fg": "yellow"},
    Status.PENDING: {"dim": True},
}


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
