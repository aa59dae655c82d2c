"""A Progress and a RunWatcher that discard everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chaos.core.history import Entry
from chaos.core.result import RunResult
from chaos.core.verdict import Verdict


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
