"""Suggestions for a terminal, as Markdown and as one offline page without scripts."""

from __future__ import annotations

from chaos.core.text import count_of, escape_control
from chaos.rehearsal.forecast.formats import bullet_section, table_section
from chaos.rehearsal.forecast.rows import format_seconds
from chaos.rehearsal.suggest.document import Experiment, Group, Suggestion
from chaos.rehearsal.suggest.events import Event
from chaos.rehearsal.suggest.losses import Loss
from chaos.rehearsal.suggest.risks import Checked, Risk, Status
from chaos.reports.markup import render_page
from chaos.reports.run.outline import SIMULATED
from chaos.reports.tables import (
    Column,
    Columns,
    View,
    badge,
    escape,
    escape_line,
    markdown_document,
    page_table,
    text_table,
)

_SHOWN = 20  # lines on a terminal
_BADGES = {Status.CONFIRMED: "violated", Status.NOT_SEEN: "held", Status.NOT_REHEARSED: "inconclusive"}
_LOSE = {True: "workload loses something", False: "workloads lose something"}


def _short(risk: Risk, event: Event) -> str:
    """What an event on the worst victim costs."""
    loss = risk.loss(event)
    return _cost(loss) if loss else "0 s"


def _cost(loss: Loss) -> str:
    if loss.lasting:
        return "until it is back"
    if loss.mean:
        return format_seconds(loss.p50)
    return "no room" if loss.waiting else "blocked"


RISKS: Columns[Risk] = (
    Column("Workload", lambda risk: risk.workload, "strong"),
    Column("Worst victim", lambda risk: risk.worst.victim),
    Column("Drain", lambda risk: _short(risk, Event.DRAIN), is_named=True),
    Column("Shutdown", lambda risk: _short(risk, Event.POWEROFF), is_named=True),
    Column("Power cut", lambda risk: _short(risk, Event.POWER_CUT), is_named=True),
    Column("Evidence", lambda risk: risk.sentence, views=View.HTML | View.MARKDOWN),
    Column("Why", lambda risk: " ".join(risk.because), "p", within="Evidence", views=View.HTML | View.MARKDOWN),
    Column("What would help", lambda risk: risk.help, views=View.HTML | View.MARKDOWN),
)
WEAKNESSES: Columns[Checked] = (
    Column("Rehearsals", lambda each: badge(str(each.status), _BADGES[each.status]), "badge"),
    Column("What", lambda each: each.weakness.title, "strong", views=View.HTML | View.MARKDOWN),
    Column("Found", lambda each: each.weakness.sentence),
    Column("What would help", lambda each: each.weakness.helps, views=View.HTML | View.MARKDOWN),
)
GROUPS: Columns[Group] = (
    Column("Rehearsed", lambda group: group.node, "strong"),
    Column("Stands for", lambda group: f"{len(group.stands_for)}: {', '.join(group.stands_for)}"),
)
EXPERIMENTS: Columns[Experiment] = (
    Column("File", lambda each: each.file, "code"),
    Column("Workload", lambda each: each.workload),
    Column("Predicted", lambda each: each.predicted),
)


def suggestion_text(found: Suggestion) -> list[str]:
    """The lines, the most important one first; what others wrote has no control characters."""
    lines = [found.headline, "", about(found)]
    if found.risks:
        lines += ["", *text_table(RISKS, found.risks[:_SHOWN]), *_more(len(found.risks)), ""]
        lines += [f"{risk.workload}: {risk.help}" for risk in found.risks[:_SHOWN]]
    if found.weaknesses:
        ordered = sorted(found.weaknesses, key=lambda each: list(Status).index(each.status))
        lines += ["", *text_table(WEAKNESSES, ordered[:_SHOWN]), *_more(len(ordered))]
    lines += ["", *(f"not in the answer: {line}" for line in found.limits), SIMULATED]
    return [escape_control(line) for line in lines]


def _more(count: int) -> list[str]:
    return [f"and {count - _SHOWN} more"] if count > _SHOWN else []


def about(found: Suggestion) -> str:
    """What was rehearsed, in one line."""
    nodes, whole = len(found.groups), sum(len(group.stands_for) for group in found.groups)
    alike = f"{count_of(nodes, 'node')} for {whole}" if nodes < whole else count_of(nodes, "node")
    zones = f" and {count_of(len(found.zones), 'zone')}" if found.zones else ""
    where = f", namespace {found.namespace}" if found.namespace else ""
    return (
        f"{count_of(found.runs, 'rehearsal')} of {alike}{zones}, each drained, shut down and without power, on a copy "
        f"of {found.snapshot} (Kubernetes {found.kubernetes}{where})"
    )


def suggestion_markdown(found: Suggestion) -> str:
    """GitHub-flavored Markdown, ending in a newline."""
    return markdown_document(
        (
            ["# Suggestions", "", f"**{escape(found.headline)}**", "", SIMULATED],
            [escape_line(f"{about(found)}.")],
            table_section("Risks", RISKS, found.risks),
            table_section("Weaknesses", WEAKNESSES, found.weaknesses),
            table_section("Experiments", EXPERIMENTS, found.experiments),
            table_section("Nodes that are alike", GROUPS, found.groups),
            bullet_section("Not in the answer", found.limits),
        )
    )


def suggestion_page(found: Suggestion) -> str:
    """The whole document, ending in a newline."""
    confirmed = sum(each.status is Status.CONFIRMED for each in found.weaknesses)
    cards = [
        (str(len(found.risks)), _LOSE[len(found.risks) == 1], "bad" if found.risks else "good"),
        (f"{confirmed} of {len(found.weaknesses)}", "weaknesses confirmed", "bad" if confirmed else "good"),
        (str(found.runs), "rehearsals", "good"),
    ]
    return render_page(
        "suggest.html",
        ("base.css", "paper.css", "forecast.css"),
        title="SIMULATED: suggestions",
        found=found,
        about=about(found),
        cards=cards,
        risks=page_table(RISKS, found.risks, "What is lost, the worst first", "stacked risks"),
        weaknesses=page_table(WEAKNESSES, found.weaknesses, "What the snapshot shows", "stacked"),
        experiments=page_table(EXPERIMENTS, found.experiments, "Experiments, the gentlest first", "stacked"),
        groups=page_table(GROUPS, found.groups, "Nodes that are alike", "stacked"),
        simulated=SIMULATED,
    )
