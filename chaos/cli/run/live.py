"""Progress of a run on stderr: plain lines, and on a terminal a screen that redraws itself."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from chaos.cli.output import can_redraw
from chaos.cli.run.lines import Line, LineProgress, PlainProgress, write_lines
from chaos.cli.run.view.state import ViewState
from chaos.core import ports
from chaos.core.result import Judgement
from chaos.core.verdict import Verdict
from chaos.engine.progress import NullProgress

if TYPE_CHECKING:
    from rich.text import Text

    from chaos.cli.run.view.screen import ViewLoop

logger = logging.getLogger(__name__)


class Display(ports.Progress, ports.JudgementDisplay, Protocol):
    """Progress that can be closed, and hidden while a question is asked.

    ``opens_report``: a person asked for the report once it is written.
    """

    @property
    def opens_report(self) -> bool: ...

    def hide(self) -> None:
        """Draw nothing until :meth:`show`."""

    def show(self) -> None: ...

    def close(self) -> None:
        """Restore the terminal. Idempotent."""


def make_progress(stream: TextIO, force_plain: bool = False, quiet: bool = False) -> Display:
    """The live view if ``stream`` is a terminal that can redraw, else plain lines; nothing if ``quiet``."""
    if quiet:
        return QuietProgress()
    if force_plain or not can_redraw(stream):
        return PlainProgress(stream)
    from chaos.cli.output import is_foreground  # noqa: PLC0415

    return LiveProgress(stream, sys.stdin) if is_foreground(stream) else PlainProgress(stream)


class BestEffortProgress:
    """Shows nothing more after an error: of a write (a closed pipe, a lost terminal), or of the display itself.

    None may stop a run or its undo.
    """

    def __init__(self, display: Display) -> None:
        self._display: Display | None = display
        self._first = display

    @property
    def opens_report(self) -> bool:
        return self._first.opens_report

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

    def judged(self, judgement: Judgement) -> None:
        self._try(lambda display: display.judged(judgement))

    def hide(self) -> None:
        self._try(lambda display: display.hide())

    def show(self) -> None:
        self._try(lambda display: display.show())

    def close(self) -> None:
        self._display = None
        try:
            self._first.close()  # also one that could not be written to has a terminal to restore
        except (OSError, ValueError) as error:
            logger.debug("the progress could not be closed: %s", error)
        except Exception:
            logger.exception("the progress could not be closed")

    def _try(self, call: Callable[[Display], None]) -> None:
        if self._display is None:
            return
        try:
            call(self._display)
        except (OSError, ValueError):  # ValueError: the file is closed
            logger.debug("no more progress is shown", exc_info=True)
            self._display = None
        except Exception:
            logger.exception("the progress failed, and no more of it is shown")
            self.close()


class QuietProgress(NullProgress):
    """Shows nothing."""

    @property
    def opens_report(self) -> bool:
        return False

    def judged(self, judgement: Judgement) -> None:
        """Discard."""

    def hide(self) -> None:
        """Do nothing."""

    def show(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


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
