"""Headline of a result: how many expectations have its status, and a sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.invalidation import Invalidation
from chaos.verdicts.judge.sentences import shorten


@dataclass(frozen=True, slots=True)
class Headline:
    """``1 of 8 violated``, and what happened."""

    tally: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.tally}: {self.sentence}" if self.sentence else self.tally


def headline(
    status: Status, verdicts: Sequence[Verdict], invalidation: Invalidation | None, step: str, nodes: Sequence[str]
) -> Headline:
    """Headline of a result with this status: why it is inconclusive, else the first verdict with the same status.

    ``step``: the first one, on ``nodes``.
    """
    if invalidation and status is Status.INCONCLUSIVE:
        return Headline(_tally(status, verdicts), invalidation.sentence)
    found = next((v.sentence for v in verdicts if v.status is status), "")
    if status is Status.HELD and len(verdicts) > 1:
        found = shorten(f"All was as expected after {step}{_where(nodes)}")
    return Headline(_tally(status, verdicts), found)


def _tally(status: Status, verdicts: Sequence[Verdict]) -> str:
    number = sum(verdict.status is status for verdict in verdicts)
    if number:
        return f"{number} of {len(verdicts)} {status}"
    held = sum(verdict.status is Status.HELD for verdict in verdicts)
    return f"{status}, with {held} of {len(verdicts)} held"


def _where(nodes: Sequence[str]) -> str:
    return f" on {nodes[0]}" if len(nodes) == 1 else f" on {len(nodes)} nodes" if nodes else ""
