"""The live view of a run on a terminal: plain lines until it begins, then a screen, and its lines again at the end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from chaos.cli.run.lines import Line, LineProgress, write_lines
from chaos.cli.run.view.state import ViewState
from chaos.core.result import Judgement

if TYPE_CHECKING:
    from rich.text import Text

    from chaos.cli.run.view.screen import ViewLoop

FIRST_PHASE, REPORT_PHASE = "arm", "report"  # what is before may be refused, and what comes last cannot be undone


class LiveProgress(LineProgress):
    """Opens its screen when the run begins: a refused one only has lines. Keys are read from ``keys``, if a terminal.

    ``q`` stops the run as the first SIGINT does, once.
    """

    def __init__(self, stream: TextIO, keys: TextIO | None) -> None:
        super().__init__()
        self._stream, self._keys = stream, _terminal(keys)
        self._view = ViewState(progress=self._state, has_keys=self._keys is not None)
        self._loop: ViewLoop | None = None
        self._restore_signals: Callable[[], None] = lambda: None

    @property
    def opens_report(self) -> bool:
        return self._view.opens_report

    def phase(self, name: str) -> None:
        if name == FIRST_PHASE and self._loop is None:
            self._open()
        super().phase(name)

    def tick(self, now: float) -> None:
        if self._loop:
            self._loop.touch()
        super().tick(now)

    def judged(self, judgement: Judgement) -> None:
        with self._lock:
            self._view.cluster.update(judgement.timeline)
        super().judged(judgement)

    def hide(self) -> None:
        self._finish()
        if self._loop:
            self._loop.suspend()

    def show(self) -> None:
        if self._loop:
            self._loop.resume()

    def close(self) -> None:
        try:
            self._finish()
        finally:
            self._leave()

    def _leave(self) -> None:
        """Leave the screen, and print what was on it."""
        if self._loop is None:
            return
        try:
            self._loop.stop()
        finally:
            self._restore_signals()
            self._loop = None
            self._print_events()

    def _open(self) -> None:
        # rich is slow to import, and runs that are refused draw nothing.
        from chaos.cli.run.view.screen import TerminalSignals, ViewLoop  # noqa: PLC0415

        loop = ViewLoop(self._stream, self._keys, self._build, self._on_key, self._print_events)
        loop.start()
        signals = TerminalSignals(loop.suspend, loop.resume)
        signals.install()
        self._loop, self._restore_signals = loop, signals.restore

    def _build(self, columns: int, lines: int, silent: float) -> list[Text]:
        from chaos.cli.run.view.frame import frame  # noqa: PLC0415

        with self._lock:
            self._view.silent = silent
            return frame(self._view, columns, lines, self._stream.encoding or "utf-8")

    def _on_key(self, key: str) -> None:
        with self._lock:
            if key == "q" and not self._view.is_stopping and self._state.phase_name != REPORT_PHASE:
                self._view.is_stopping = True
                # With the lock held, as the phase that follows the run begins before its signal handler is gone.
                _interrupt()
            elif key == " ":
                self._view.toggle_pause()
            elif key == "o":
                self._view.opens_report = not self._view.opens_report

    def _emit(self, lines: Sequence[Line]) -> None:
        if self._loop and not self._loop.has_failed:
            self._view.add(lines)
        else:
            write_lines(self._stream, lines)

    def _print_events(self) -> None:
        """Print the lines that were on the screen, which is gone. Raises OSError, ValueError."""
        with self._lock:
            lines = list(self._view.events)
            self._view.events.clear()
            if self._view.dropped:
                lines.insert(0, Line(f"({self._view.dropped} earlier lines are left out)", "note", ""))
                self._view.dropped = 0
            write_lines(self._stream, lines)


def _interrupt() -> None:
    """Do what Ctrl-C does: signals are for the main thread."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)


def _terminal(keys: TextIO | None) -> int | None:
    """The descriptor of ``keys`` if that is a terminal."""
    try:
        return keys.fileno() if keys is not None and keys.isatty() else None
    except (OSError, ValueError):
        return None
