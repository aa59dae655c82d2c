"""Verdicts, notes and leftovers as a view shows them: no sentence twice."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.core.result import RunResult
from chaos.core.text import on_node
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.outline import sections, verdicts


@dataclass(frozen=True, slots=True)
class Row:
    """A verdict as a view shows it: what the view has already is empty, or a reference to the row that has it."""

    verdict: Verdict
    sentence: str
    because: str
    observed: str


def rows(result: RunResult, steps: bool = True) -> dict[str, tuple[Row, ...]]:
    """The rows of each section, by its key; no sentence twice. ``steps``: the view shows them, with their reasons."""
    shown = _Shown(result, steps)
    return {section.key: tuple(map(shown.row, section.verdicts)) for section in sections(result)}


class _Shown:
    """What a view shows so far."""

    def __init__(self, result: RunResult, steps: bool) -> None:
        self.headline = result.headline
        self.sentences: set[str] = set()
        self.rows: dict[str, str] = {}  # name of the expectation by reason
        self.reasons = {step.because for step in result.steps if step.because} if steps else set()

    def row(self, verdict: Verdict) -> Row:
        """The next row."""
        is_shown = verdict.sentence in self.headline or verdict.sentence in self.sentences
        shown = (verdict.because, *self.reasons)
        observed = "" if any(verdict.observed in reason for reason in shown) else verdict.observed
        row = Row(verdict, "" if is_shown else verdict.sentence, self._because(verdict.because), observed)
        self.sentences.add(verdict.sentence)
        self.rows.setdefault(verdict.because, verdict.name)
        self.reasons.add(verdict.because)
        return row

    def _because(self, because: str) -> str:
        if because in self.rows:
            return f"as for {self.rows[because]}"
        for reason in sorted(self.reasons, key=len, reverse=True):
            because = because.replace(f": {reason}", "")
        return because


def notes(result: RunResult) -> tuple[str, ...]:
    """Notes, but those that are the reason of a verdict."""
    reasons = [verdict.because for verdict in verdicts(result) if verdict.status is not Status.HELD]
    return tuple(note for note in result.notes if not any(note in because for because in reasons))


def leftovers(result: RunResult) -> tuple[str, ...]:
    """What is left behind, besides the undos that :func:`pending_undo` has."""
    pending = {f"undo of {on_node(undo.step, undo.node)}: {undo.because}" for undo in result.undo}
    return tuple(line for line in result.leftovers if line not in pending)
