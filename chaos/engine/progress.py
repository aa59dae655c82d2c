"""Progress reports of a run: one implementation discards them, the other also logs them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from chaos.core.history import Entry
from chaos.core.ports import JudgementDisplay, Progress
from chaos.core.result import Judgement, RunResult
from chaos.core.text import on_node
from chaos.core.verdict import Verdict

logger = logging.getLogger(__name__)


class NullProgress:
    """Discards everything; implements ``chaos.core.ports.Progress``."""

    def phase(self, name: str) -> None:
        """Discard."""

    def step(self, name: str, node: str, what: str) -> None:
        """Discard."""

    def verdict(self, verdict: Verdict) -> None:
        """Discard."""

    def note(self, text: str) -> None:
        """Discard."""

    def tick(self, now: float) -> None:
        """Discard."""


class Unwatched:
    """Discards everything; implements ``chaos.core.ports.RunWatcher``."""

    def begin(self, targets: Mapping[str, tuple[str, ...]], stop: Callable[[], None] | None) -> None:
        """Discard."""

    def entry(self, entry: Entry) -> None:
        """Discard."""

    def steady(self, verdicts: tuple[Verdict, ...]) -> None:
        """Discard."""

    def judged(self, result: RunResult) -> None:
        """Discard."""


class LoggedProgress:
    """Logs progress at DEBUG and passes it on; implements ``chaos.core.ports.Progress``."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def phase(self, name: str) -> None:
        logger.debug("phase: %s", name)
        self._progress.phase(name)

    def step(self, name: str, node: str, what: str) -> None:
        logger.debug("step %s: %s", on_node(name, node), what)
        self._progress.step(name, node, what)

    def verdict(self, verdict: Verdict) -> None:
        logger.debug("verdict %s: %s: %s", verdict.status, verdict.name, verdict.because)
        self._progress.verdict(verdict)

    def note(self, text: str) -> None:
        logger.debug("note: %s", text)
        self._progress.note(text)

    def tick(self, now: float) -> None:
        self._progress.tick(now)

    def judged(self, judgement: Judgement) -> None:
        if isinstance(self._progress, JudgementDisplay):
            self._progress.judged(judgement)
