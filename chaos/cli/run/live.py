"""The live view of a run on a terminal."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from chaos.cli.run.progress_state import ProgressState
from chaos.model.text import escape_for_encoding, printable
from chaos.model.verdict import SYMBOLS, Status, Verdict

_COLOURS = {Status.HELD: "green", Status.VIOLATED: "bold red", Status.INCONCLUSIVE: "yellow", Status.PENDING: "dim"}


class LiveProgress:
    """Lines that scroll above a status area: the phase, cluster time, and every verdict with its countdown."""

    def __init__(self, stream: TextIO) -> None:
        self._state = ProgressState()
        self._lock = threading.Lock()
        self._console = Console(file=stream, markup=False, highlight=False, emoji=False)
        self._live = Live(
            get_renderable=self._render,
            console=self._console,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def phase(self, name: str) -> None:
        with self._lock:
            line = self._state.phase(name)
        self._print(line, "bold")

    def step(self, name: str, node: str, what: str) -> None:
        with self._lock:
            line = self._state.step(name, node, what)
        self._print(line, "cyan")

    def verdict(self, verdict: Verdict) -> None:
        with self._lock:
            line = self._state.verdict(verdict)
        if verdict.status is not Status.PENDING:  # pending verdicts are in the status area
            self._print(line, _COLOURS[verdict.status], verdict.at)

    def note(self, text: str) -> None:
        self._print(printable(text), "")

    def tick(self, now: float) -> None:
        with self._lock:
            self._state.now = now

    def hide(self) -> None:
        self._live.stop()

    def show(self) -> None:
        self._live.start()

    def close(self) -> None:
        self._live.stop()

    def _print(self, line: str, style: str, at: float | None = None) -> None:
        """Print a line. Not with the lock held: rich holds another one while it calls :meth:`_render`."""
        if line:
            with self._lock:
                when = self._state.offset(self._state.now if at is None else at)
            text = escape_for_encoding(f"{when:>8}  {line}", self._console.encoding)
            self._console.print(Text(text, style=style))

    def _render(self) -> RenderableType:
        with self._lock:
            state = self._state
            clock = _clock(state.now)
            head = "  ".join(part for part in (state.phase_name, clock, state.offset(state.now)) if part)
            table = Table.grid(padding=(0, 1))
            for verdict in state.verdicts.values():
                word = escape_for_encoding(f"{SYMBOLS[verdict.status]} {verdict.status}", self._console.encoding)
                name = escape_for_encoding(printable(verdict.name), self._console.encoding)
                table.add_row(Text(word, _COLOURS[verdict.status]), Text(name), Text(state.remaining(verdict), "dim"))
        return Group(Text(escape_for_encoding(head, self._console.encoding), "bold"), table)


def _clock(now: float | None) -> str:
    return "" if now is None else datetime.fromtimestamp(now, UTC).strftime("%H:%M:%S UTC")
