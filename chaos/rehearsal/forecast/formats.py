"""A rehearsal for a terminal, as Markdown and as one offline page without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chaos.core.errors import Exit
from chaos.core.text import escape_control, printable
from chaos.core.verdict import SYMBOLS, Status
from chaos.rehearsal.forecast.document import Rehearsal, Runs
from chaos.rehearsal.forecast.ranking import EXPLANATION, Risk, VictimRank, risk_sentence
from chaos.rehearsal.forecast.rows import (
    MEASURES,
    RISKS,
    SIDES,
    endings,
    expectations,
    how_often,
    side_by_side,
    source_text,
    victim_columns,
)
from chaos.rehearsal.forecast.sample import FindingKind
from chaos.reports.markup import render_page
from chaos.reports.run.outline import SIMULATED
from chaos.reports.tables import (
    Columns,
    PageTable,
    escape,
    escape_line,
    markdown_document,
    markdown_section,
    markdown_table,
    page_table,
    text_table,
)

_SHOWN = 20  # lines on a terminal
_DETAILED = 10  # victims on a page whose losses are listed
_STATUS = {Exit.HELD: Status.HELD, Exit.VIOLATED: Status.VIOLATED}
_GONE = (FindingKind.NO_REPLICA_LEFT, FindingKind.SINGLE_REPLICA)
_LEGEND = (
    ("part-gone", "workloads without a serving pod"),
    ("part-budget", "budgets overdrawn"),
    ("part-room", "pods without room"),
    ("part-other", "pods stuck, lost or waiting"),
)


def rehearsal_text(rehearsal: Rehearsal) -> list[str]:
    """The lines, the most important one first; what others wrote, as in a snapshot, has no control characters."""
    runs = rehearsal.runs
    lines = [rehearsal.headline, "", f"{rehearsal.experiment}: {how_often(rehearsal)}, on {source_text(rehearsal)}"]
    lines += [f"what if: {change}" for change in runs.changes]
    if runs.victims:
        lines += _victim_lines(rehearsal)
    elif runs.expectations:
        lines += ["", *text_table(expectations(), runs.expectations)]
    if runs.risks and not runs.victims:
        lines += ["", *_some([risk_sentence(risk) for risk in runs.risks])]
    lines += [f"refused in {count} of {runs.count} runs: {reason}" for reason, count in runs.refused.items()]
    if rows := side_by_side(rehearsal):
        lines += ["", *text_table(SIDES, rows)]
    lines += ["", *(f"not in the answer: {line}" for line in rehearsal.limits), SIMULATED]
    return [escape_control(line) for line in lines]


def _victim_lines(rehearsal: Rehearsal) -> list[str]:
    ranks = rehearsal.runs.victims
    more = [f"and {len(ranks) - _SHOWN} more"] if len(ranks) > _SHOWN else []
    why = [f"{rank.victim}: {rank.why}" for rank in ranks[:3] if rank.score]
    table = text_table(victim_columns(rehearsal.each), ranks[:_SHOWN])
    return ["", *table, *more, "", *why, f"points: {EXPLANATION}"]


def _some(lines: list[str]) -> list[str]:
    return lines[:_SHOWN] + ([f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])


def rehearsal_markdown(rehearsal: Rehearsal) -> str:
    """GitHub-flavored Markdown for pull requests and issues, ending in a newline."""
    runs = rehearsal.runs
    return markdown_document(
        (
            [f"# Rehearsal of {escape(rehearsal.experiment)}", "", f"**{escape(rehearsal.headline)}**", "", SIMULATED],
            [escape_line(f"{rehearsal.title}: {how_often(rehearsal)}, on {source_text(rehearsal)}.")],
            bullet_section("What if", runs.changes),
            table_section("Side by side", SIDES, side_by_side(rehearsal)),
            table_section(f"Every {rehearsal.each}", victim_columns(rehearsal.each), runs.victims),
            [escape_line(EXPLANATION)] if runs.victims else [],
            table_section("Expectations", expectations(), runs.expectations),
            table_section("What is lost", RISKS, runs.risks),
            bullet_section("Refused", _refused(runs)),
            bullet_section("Not in the answer", rehearsal.limits),
        )
    )


def bullet_section(title: str, lines: Iterable[str]) -> list[str]:
    """A section with a list, [] for an empty one."""
    found = [f"- {escape(line)}" for line in lines]
    return markdown_section(title, found) if found else []


def table_section(title: str, columns: Columns[Any], rows: Sequence[Any]) -> list[str]:
    """A section with a table, [] for one without rows."""
    return markdown_section(title, markdown_table(columns, rows, "|---")) if rows else []


def _refused(runs: Runs) -> list[str]:
    return [f"{count} of {runs.count} runs: {reason}" for reason, count in runs.refused.items()]


def rehearsal_page(rehearsal: Rehearsal) -> str:
    """The whole document, ending in a newline."""
    runs, each = rehearsal.runs, rehearsal.each
    status = _STATUS.get(Exit(rehearsal.exit_code), Status.INCONCLUSIVE)
    worst = [rank for rank in runs.victims if rank.risks][:_DETAILED]
    every = f"Every {each} as the victim, the one that hurts most first"
    return render_page(
        "forecast.html",
        ("base.css", "paper.css", "forecast.css"),
        title=f"SIMULATED: {printable(rehearsal.experiment)}, rehearsed",
        rehearsal=rehearsal,
        status=status,
        endings=f"{SYMBOLS[status]} {endings(runs)}",
        about=f"{rehearsal.experiment}: {how_often(rehearsal)}, on {source_text(rehearsal)}",
        cards=[(number, text, "bad" if is_bad else "good") for number, text, is_bad in _cards(rehearsal)],
        sides=page_table(SIDES, side_by_side(rehearsal), "The same runs without and with the changes", "stacked sides"),
        legend=_LEGEND,
        victims=page_table(
            victim_columns(each, max((rank.score for rank in runs.victims), default=0.0)),
            runs.victims,
            every,
            "victims stacked",
            attributes=_hurts,
        ),
        explanation=EXPLANATION,
        worst=[(rank.victim, rank.why, _risks(rank.risks, f"What is lost with {rank.victim}")) for rank in worst],
        expectations=page_table(
            expectations(max((each.high for each in runs.expectations if each.high), default=0.0)),
            runs.expectations,
            "Verdicts and times over all runs",
            "stacked",
        ),
        risks=_risks(runs.risks, "What is lost, by kind"),
        refused=_refused(runs),
        measures=page_table(MEASURES, runs.measures, "All times after the fault"),
        simulated=SIMULATED,
    )


def _hurts(rank: VictimRank) -> dict[str, str]:
    return {"class": "hurts" if rank.score else "harmless"}


def _risks(risks: Sequence[Risk], caption: str) -> PageTable:
    return page_table(RISKS, risks, caption, "stacked risks")


def _cards(rehearsal: Rehearsal) -> Iterator[tuple[str, str, bool]]:
    """The most important numbers: number, text, and whether it is bad."""
    runs = rehearsal.runs
    if runs.victims:
        hurt = sum(rank.score > 0 for rank in runs.victims)
        yield f"{hurt} of {len(runs.victims)}", f"{rehearsal.each}s hurt when they are lost", hurt > 0
    else:
        held = runs.endings.get("held", 0)
        yield f"{held} of {runs.count}", "runs in which everything held", held < runs.count
    for text, kinds in (
        ("workloads without a serving pod in some run", _GONE),
        ("workloads with pods that find no room", (FindingKind.NO_ROOM,)),
        ("disruption budgets overdrawn", (FindingKind.BUDGET_OVERDRAWN,)),
    ):
        count = len({risk.subject for risk in runs.risks if risk.kind in kinds})
        yield str(count), text, count > 0
