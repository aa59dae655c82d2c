"""Progress of a run on stderr: a view that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Protocol, TextIO

from chaos.cli.run.progress_state import ProgressState
from chaos.model import ports
from chaos.model.text import escape_for_encoding, printable
from chaos.model.verdict import Status, Verdict


class Display(ports.Progress, Protocol):
    """Progress that can be closed, and hidden while a question is asked."""

    def hide(self) -> None:
        """Draw nothing until :meth:`show`."""

    def show(self) -> None: ...

    def close(self) -> None:
        """Restore the terminal. Idempotent."""


def make_progress(stream: TextIO, force_plain: bool = False) -> Display:
    """The live view if ``stream`` is a terminal that can redraw, else plain lines."""
    dumb = os.environ.get("TERM", "dumb") in ("", "dumb", "unknown")
    if force_plain or dumb or not stream.isatty():
        return PlainProgress(stream)
    from chaos.cli.run.live import LiveProgress  # noqa: PLC0415 (rich is slow to import, and most runs draw nothing)

    return LiveProgress(stream)


class BestEffortProgress:
    """Ignores write errors (a closed pipe, a lost terminal), which must not stop a run or its undo."""

    def __init__(self, display: Display) -> None:
        self._display: Display | None = display

    def phase(self, name: str) -> None:
        self._try(lambda display: display.phase(name))

    def step(self, name: str, node: str, what: str) -> None:
        self._try(lambda display: display.step(name, node, what))

    def verdict(self, verdict: Verdict) -> None:
        self._try(lambda display: display.verdict(verdict))

    def note(self, text: str) -> None:
        self._try(lambda display: display.note(text))

    def tick(self, now: float) -> None:
        self._try(lambda display: display.tick(now))

    def hide(self) -> None:
        self._try(lambda display: display.hide())

    def show(self) -> None:
        self._try(lambda display: display.show())

    def close(self) -> None:
        self._try(lambda display: display.close())

    def _try(self, call: Callable[[Display], None]) -> None:
        if self._display is None:
            return
        try:
            call(self._display)
        except (OSError, ValueError):  # ValueError: the file is closed
            self._display = None


class PlainProgress:
    """One line per change, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._state = ProgressState()
        self._lock = threading.Lock()

    def phase(self, name: str) -> None:
        with self._lock:
            self._write(self._state.phase(name))

    def step(self, name: str, node: str, what: str) -> None:
        with self._lock:
            self._write(self._state.step(name, node, what))

    def verdict(self, verdict: Verdict) -> None:
        with self._lock:
            line = self._state.verdict(verdict)
            if verdict.status is not Status.PENDING:  # only a view that redraws itself can count down
                self._write(line, verdict.at)

    def note(self, text: str) -> None:
        with self._lock:
            self._write(printable(text))

    def tick(self, now: float) -> None:
        with self._lock:
            self._state.now = now

    def hide(self) -> None:
        self._stream.flush()

    def show(self) -> None:
        """Do nothing: lines need not be hidden."""

    def close(self) -> None:
        self._stream.flush()

    def _write(self, line: str, at: float | None = None) -> None:
        if line:
            when = self._state.offset(self._state.now if at is None else at)
            text = escape_for_encoding(f"{when:>8}  {line}", self._stream.encoding or "utf-8")
            self._stream.write(text + "\n")
            self._stream.flush()
