"""A Progress that discards everything."""

from __future__ import annotations

from chaos.model.verdict import Verdict


class NullProgress:
    """Discards everything; implements ``chaos.model.ports.Progress``."""

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
