"""Steps as every view shows them: their columns, the phases of a step by node, and equal steps of one moment as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaos.core.action import ProofStatus
from chaos.core.duration import format_duration
from chaos.core.result import RunResult, StepResult
from chaos.core.text import printable
from chaos.reports.run.outline import format_offset, origin
from chaos.reports.run.verdicts import MAX_LINKS, linked_seqs
from chaos.reports.tables import Column, Rich, View, badge, plain

_SYMBOLS = {ProofStatus.PROVEN: "✓", ProofStatus.DISPROVEN: "✗", ProofStatus.UNPROVEN: "?"}
PHASES = plain("step", "node", "armed", "fired", "began on the host", "returned", "proven")


def step_text(step: StepResult) -> str:
    """Describe whether the step is proven to have taken effect."""
    return f"{step.proof_status}{' (weakly)' if step.weak else ''}: {step.because}"


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step. ``start``: origin of offsets, in epoch seconds. ``because``: of its proof, or where that is said."""

    step: StepResult
    start: float
    because: str

    @property
    def links(self) -> tuple[int, ...]:
        """The evidence that a page links to."""
        return self.step.evidence[:MAX_LINKS]

    @property
    def began(self) -> str:
        """When it was sent, as an offset."""
        return format_offset(self.step.begin, self.start)

    @property
    def effect(self) -> Rich:
        """Whether it is proven to have taken effect."""
        status = self.step.proof_status
        weakly = " (weakly)" if self.step.weak else ""
        return badge(f"{_SYMBOLS[status]} {status}{weakly}", status.replace(" ", "-"))

    @property
    def delivery(self) -> str:
        """How it was delivered, and how long that took."""
        step = self.step
        took = f", took {format_duration(step.returned - step.begin)}" if step.begin and step.returned else ""
        return f"{step.delivery}{took}"


STEPS: tuple[Column[StepRow], ...] = (
    Column("step", lambda row: f"{_SYMBOLS[row.step.proof_status]} {row.step.step}", views=View.MARKDOWN),
    Column("step", lambda row: row.step.step, "strong", views=View.HTML),
    Column("action", lambda row: row.step.action, views=View.MARKDOWN),
    Column("action", lambda row: f"{row.step.action} at {row.began}", "sub", "Step", View.HTML),
    Column("node", lambda row: row.step.node),
    Column("began", lambda row: row.began, views=View.MARKDOWN),
    Column("sent", lambda row: row.step.command, "code"),
    Column("delivery", lambda row: row.delivery, "sub", "Sent", View.HTML),
    Column("effect", lambda row: step_text(row.step), views=View.MARKDOWN),
    Column("effect", lambda row: row.effect, "badge", views=View.HTML),
    Column("because", lambda row: row.because, "link", "Effect", View.HTML),
    Column("evidence", lambda row: linked_seqs(row.step.evidence, row.links), "links", views=View.HTML),
)


def step_rows(result: RunResult, said: StepResult | None = None) -> list[StepRow]:
    """The steps in their order. ``said``: the step whose reason is said above the table."""
    start = origin(result)
    return [StepRow(step, start, "see above" if step is said else step.because) for step in result.steps]


def phases(result: RunResult) -> list[tuple[str, ...]]:
    """A row of :data:`PHASES` for each node of the steps on several nodes, with milliseconds."""
    start, nodes = origin(result), Counter(step.step for step in result.steps)
    return [
        (
            step.step,
            step.node,
            *(
                _format_precise(t, start)
                for t in (step.phases.armed, step.phases.fired, step.phases.began, step.returned, step.phases.proven)
            ),
        )
        for step in result.steps
        if nodes[step.step] > 1
    ]


def _format_precise(t: float | None, start: float) -> str:
    return "" if t is None else f"{t - start:+.3f}s"


_SAME_MOMENT = 1.0  # seconds


def step_groups(result: RunResult, at: Callable[[float], int]) -> list[dict[str, Any]]:
    """Steps that were sent, in the order of their start, as :mod:`chaos.reports.run.page.page_data` describes them.

    Steps with the same name and action that began within a second of the first are one group. ``at`` converts epoch
    seconds to the page's time.
    """
    groups: list[list[StepResult]] = []
    sent = [(step.begin, step) for step in result.steps if step.begin is not None]
    for begin, step in sorted(sent, key=lambda item: item[0]):
        first = next((g[0] for g in reversed(groups) if _key(g[0]) == _key(step)), None)
        if first is not None and first.begin is not None and begin - first.begin <= _SAME_MOMENT:
            next(g for g in reversed(groups) if g[0] is first).append(step)
        else:
            groups.append([step])
    return [_group(steps, at) for steps in groups]


def _key(step: StepResult) -> tuple[str, str]:
    return step.step, step.action


def _group(steps: list[StepResult], at: Callable[[float], int]) -> dict[str, Any]:
    begin = min(step.begin for step in steps if step.begin is not None)
    end = max((step.returned for step in steps if step.returned is not None), default=begin)
    return {
        "name": printable(steps[0].step),
        "action": printable(steps[0].action),
        "count": len(steps),
        "proven": sum(step.proof_status is ProofStatus.PROVEN for step in steps),
        "begin": at(begin),
        "end": at(max(begin, end)),
        "items": [
            {
                "node": printable(step.node),
                "status": str(step.proof_status),
                "text": printable(step_text(step)),
                "command": printable(step.command),
                "delivery": printable(step.delivery),
                "evidence": list(step.evidence),
            }
            for step in steps
        ],
    }
