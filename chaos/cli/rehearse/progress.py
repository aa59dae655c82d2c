"""Progress of a rehearsal on stderr: one line that grows on a terminal, else a line now and then."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Self

import click

from chaos.rehearsal.forecast.sample import Sample

_PARTS = 10  # lines where stderr is not a terminal


class RehearsalProgress:
    """``total``: number of runs. Write errors are ignored."""

    def __init__(self, total: int, *, is_shown: bool) -> None:
        self._total, self._is_shown = total, is_shown
        self._is_terminal = sys.stderr.isatty()
        self._endings: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._print(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown and self._is_terminal:
            with suppress(OSError):
                click.echo(err=True)

    def add(self, sample: Sample) -> None:
        """Count a run that has ended."""
        self._endings[sample.ending] += 1
        done = self._endings.total()
        if self._is_terminal or done == self._total or done % max(1, self._total // _PARTS) == 0:
            self._print(done)

    def _print(self, done: int) -> None:
        if not self._is_shown or (not done and not self._is_terminal):
            return
        counts = ", ".join(f"{count} {ending}" for ending, count in sorted(self._endings.items()))
        text = f"{done} of {self._total} runs" + (f": {counts}" if counts else "")
        with suppress(OSError):
            click.echo(f"\r{text}\x1b[K" if self._is_terminal else text, err=True, nl=not self._is_terminal)
