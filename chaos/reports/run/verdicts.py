"""Verdicts as every view shows them: their columns, their order by importance, and no sentence twice.

A new column is one entry of :data:`VERDICTS`: the report's page, Markdown, the live page and the panel next to the
timeline show it. Restrict its ``views``, or give it the title of a column ``within`` which a page shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult, StepResult
from chaos.core.text import on_node
from chaos.core.verdict import SYMBOLS, Status, Verdict
from chaos.reports.run.outline import Section, format_offset, origin, sections, verdicts
from chaos.reports.tables import Column, Rich, View, badge

_ORDER = (Status.VIOLATED, Status.INCONCLUSIVE, Status.PENDING, Status.KNOWN, Status.HELD)
MAX_LINKS = 12  # links to evidence in a row of a page


@dataclass(frozen=True, slots=True)
class Row:
    """A verdict as a view shows it: what the view has already is empty, or a reference to the row that has it.

    ``key`` is unique in a report: ``hypothesis-2``. ``part``: title of the part of the experiment. ``start``: origin of
    offsets, in epoch seconds. ``links``: the evidence that a page links to.
    """

    key: str
    part: str
    verdict: Verdict
    sentence: str
    because: str
    observed: str
    start: float
    links: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """The name; with the part, if it is that of the assertion, as several may have it."""
        name = self.verdict.name
        return f"{name}, {self.part.lower().removesuffix('s')}" if name == self.verdict.assertion else name

    @property
    def status(self) -> Rich:
        """The status with its symbol."""
        shown = self.verdict.shown
        return badge(f"{SYMBOLS[shown]} {shown.words}", shown)

    @property
    def decided(self) -> str:
        """When it was decided, as an offset; "" if it is not."""
        return format_offset(self.verdict.at, self.start)

    @property
    def deadline(self) -> str:
        """When it had to be decided, as an offset; "" without a deadline."""
        return format_offset(self.verdict.deadline, self.start)

    @property
    def times(self) -> str:
        """Time of the decision, and the deadline."""
        return ", ".join(f"{word} {t}" for word, t in (("at", self.decided), ("due", self.deadline)) if t)


def linked_seqs(evidence: Sequence[int], linked: tuple[int, ...]) -> Rich:
    """Numbers of evidence; a page links to ``linked``, and says how many more there are."""
    return Rich(", ".join(map(str, evidence)), linked=linked, more=len(evidence) - len(linked))


VERDICTS: tuple[Column[Row], ...] = (
    Column("verdict", lambda row: row.status, "badge", "Verdict", View.HTML | View.MARKDOWN | View.LIVE),
    Column("expectation", lambda row: row.verdict.name, "strong", "Expectation", View.HTML | View.MARKDOWN),
    Column("name", lambda row: row.label, "item", "Expectation", View.LIVE),
    Column("where", lambda row: f"{row.part}, {row.verdict.assertion}", "sub", "Expectation", View.HTML),
    Column("part", lambda row: row.part, "sub", "Expectation", View.LIVE),
    Column("in short", lambda row: row.sentence, "p", "Reason", View.HTML | View.MARKDOWN),
    Column("because", lambda row: row.because, "text", "Reason", View.HTML),
    Column("because", lambda row: "; observed: ".join(filter(None, (row.because, row.observed))), views=View.MARKDOWN),
    Column("because", lambda row: row.because, "until", "Why", View.LIVE),
    Column("expected", lambda row: row.verdict.expected, "fact", "Reason", View.HTML | View.MARKDOWN | View.PANEL),
    Column("observed", lambda row: row.observed, "fact", "Reason", View.HTML | View.PANEL),
    Column("decided", lambda row: row.decided, views=View.MARKDOWN),
    Column("deadline", lambda row: row.deadline, views=View.MARKDOWN),
    Column("times", lambda row: row.times, "sub", "Verdict", View.HTML),
    Column(
        "evidence", lambda row: linked_seqs(row.verdict.evidence, row.links), "links", "", View.HTML | View.MARKDOWN
    ),
)


def plain_rows(result: RunResult) -> list[Row]:
    """All verdicts in the order of a run, with all that each says."""
    start = origin(result)
    return [
        Row(key, section.title, v, v.sentence, v.because, v.observed, start) for key, section, v in _numbered(result)
    ]


def rows(result: RunResult, steps: bool = True) -> dict[str, tuple[Row, ...]]:
    """The rows of each section, by its key; no sentence twice. ``steps``: the view shows them, with their reasons."""
    shown, found = _Shown(result, steps), dict[str, list[Row]]()
    for key, section, verdict in _numbered(result):
        found.setdefault(section.key, []).append(shown.row(key, section.title, verdict))
    return {key: tuple(rows) for key, rows in found.items()}


def _numbered(result: RunResult) -> Iterable[tuple[str, Section, Verdict]]:
    for section in sections(result):
        for index, verdict in enumerate(section.verdicts):
            yield f"{section.key}-{index}", section, verdict


class _Shown:
    """What a view shows so far."""

    def __init__(self, result: RunResult, steps: bool) -> None:
        self.headline, self.start = result.headline, origin(result)
        self.sentences: set[str] = set()
        self.rows: dict[str, str] = {}  # name of the expectation by reason
        self.reasons = {step.because for step in result.steps if step.because} if steps else set()

    def row(self, key: str, part: str, verdict: Verdict) -> Row:
        """The next row."""
        is_shown = verdict.sentence in self.headline or verdict.sentence in self.sentences
        shown = (verdict.because, *self.reasons)
        observed = "" if any(verdict.observed in reason for reason in shown) else verdict.observed
        sentence = "" if is_shown else verdict.sentence
        row = Row(key, part, verdict, sentence, self._because(verdict.because), observed, self.start)
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


def ranked(found: Iterable[Row]) -> list[Row]:
    """The rows: what aborted the run, then by status, worst first, and in the order of the run within a status."""
    return sorted(found, key=lambda row: (not _is_abort(row), _ORDER.index(row.verdict.shown)))


def _is_abort(row: Row) -> bool:
    """Whether the run was aborted because of this verdict."""
    return row.key.startswith("abort-") and row.verdict.status is Status.VIOLATED


def decisive(result: RunResult) -> Row | None:
    """The verdict that made the run's status; None if all held, or if something else made it."""
    worst = next(iter(ranked(plain_rows(result))), None)
    if worst is None or worst.verdict.shown in (Status.HELD, Status.KNOWN):
        return None
    return worst if _is_abort(worst) or worst.verdict.status is result.status else None


def aborted_by(result: RunResult) -> Row | None:
    """The abort condition that ended the run, None if none did."""
    worst = next(iter(ranked(plain_rows(result))), None)
    return worst if worst is not None and _is_abort(worst) else None


def unproven_step(result: RunResult) -> StepResult | None:
    """The step without proof that made the run inconclusive; None if something else did."""
    row = decisive(result)
    if result.status is not Status.INCONCLUSIVE or result.foreign_faults:
        return None
    if row and row.verdict.status is Status.VIOLATED:  # it aborted the run
        return None
    return next((step for step in result.steps if step.proof_status is not ProofStatus.PROVEN), None)


def cited_first(verdict: Verdict, times: dict[int, float], limit: int = MAX_LINKS) -> tuple[int, ...]:
    """At most ``limit`` entries of the evidence in their order, the one nearest to the decision always among them."""
    if len(verdict.evidence) <= limit:
        return verdict.evidence
    decided = deciding_entry(verdict, times)
    shown = set(verdict.evidence[:limit])
    if decided is not None and decided not in shown:
        shown = {*verdict.evidence[: limit - 1], decided}
    return tuple(seq for seq in verdict.evidence if seq in shown)


def deciding_entry(verdict: Verdict, times: dict[int, float]) -> int | None:
    """The last entry of the evidence up to the decision; without one, the first after it. ``times``: by entry."""
    known = [(times[seq], seq) for seq in verdict.evidence if seq in times]
    if not known or verdict.at is None:
        return None
    at = verdict.at
    before = [item for item in known if item[0] <= at]
    return (max(before) if before else min(known))[1]


def notes(result: RunResult) -> tuple[str, ...]:
    """The notes, without those that are already the reason of a verdict."""
    reasons = [verdict.because for verdict in verdicts(result) if verdict.status is not Status.HELD]
    return tuple(note for note in result.notes if not any(note in because for because in reasons))


def leftovers(result: RunResult) -> tuple[str, ...]:
    """What is left behind, besides the undos that :func:`pending_undo` has."""
    pending = {f"undo of {on_node(undo.step, undo.node)}: {undo.because}" for undo in result.undo}
    return tuple(line for line in result.leftovers if line not in pending)
