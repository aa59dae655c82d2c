"""Nobody watches."""

from __future__ import annotations

from chaos.model.verdict import Verdict


class NullProgress:
    """Implements ``chaos.model.ports.Progress``; says nothing."""

    def phase(self, name: str) -> None:
        """Nothing."""

    def step(self, name: str, node: str, what: str) -> None:
        """Nothing."""

    def verdict(self, verdict: Verdict) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def tick(self, now: float) -> None:
        """Nothing."""
