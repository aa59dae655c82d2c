"""Top of the page: the most important thing, and four numbers."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.errors import Exit
from chaos.core.verdict import SYMBOLS, Status
from chaos.rehearsal.forecast.document import Rehearsal, Runs
from chaos.rehearsal.forecast.finding import FindingKind
from chaos.rehearsal.forecast.rows import endings, how_often, source_text
from chaos.reports.run.markup import Html, join, tag

_STATUS = {Exit.HELD: Status.HELD, Exit.VIOLATED: Status.VIOLATED}
_GONE = (FindingKind.NO_REPLICA_LEFT, FindingKind.SINGLE_REPLICA)


def render_header(rehearsal: Rehearsal) -> Html:
    """The header element."""
    status = _STATUS.get(Exit(rehearsal.exit_code), Status.INCONCLUSIVE)
    badge = tag("span", f"{SYMBOLS[status]} {endings(rehearsal.runs)}", class_=f"badge counts {status}")
    line = f"{rehearsal.experiment}: {how_often(rehearsal)}, on {source_text(rehearsal)}"
    parts = [
        tag("p", badge, tag("span", "simulated cluster", class_="badge lab"), tag("span", line), class_="status"),
        tag("h1", rehearsal.headline),
        tag("p", rehearsal.title, class_="quiet"),
        *(tag("p", f"What if: {change}") for change in rehearsal.runs.changes),
        tag("ul", join(_cards(rehearsal)), class_="cards"),
    ]
    return tag("header", join(parts, "\n"), class_=str(status))


def _cards(rehearsal: Rehearsal) -> Iterator[Html]:
    runs = rehearsal.runs
    if runs.victims:
        hurt = sum(rank.score > 0 for rank in runs.victims)
        yield _card(f"{hurt} of {len(runs.victims)}", f"{rehearsal.each}s hurt when they are lost", is_bad=hurt > 0)
    else:
        held = runs.endings.get("held", 0)
        yield _card(f"{held} of {runs.count}", "runs in which everything held", is_bad=held < runs.count)
    gone = _subjects(runs, *_GONE)
    yield _card(str(gone), "workloads without a serving pod in some run", is_bad=gone > 0)
    room = _subjects(runs, FindingKind.NO_ROOM)
    yield _card(str(room), "workloads with pods that find no room", is_bad=room > 0)
    budgets = _subjects(runs, FindingKind.BUDGET_OVERDRAWN)
    yield _card(str(budgets), "disruption budgets overdrawn", is_bad=budgets > 0)


def _card(number: str, text: str, *, is_bad: bool) -> Html:
    return tag("li", tag("strong", number), tag("span", text), class_="bad" if is_bad else "good")


def _subjects(runs: Runs, *kinds: FindingKind) -> int:
    return len({risk.subject for risk in runs.risks if risk.kind in kinds})
