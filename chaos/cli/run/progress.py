"""Progress of a run on stderr: a view that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Protocol, TextIO

from chaos.cli.output import can_redraw
from chaos.cli.run.lines import PlainProgress
from chaos.core import ports
from chaos.core.result import Judgement
from chaos.core.verdict import Verdict
from chaos.engine.progress import NullProgress

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
    from chaos.cli.run.live import LiveProgress  # noqa: PLC0415 (most runs draw nothing)

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
