"""Equal steps of one moment as one: a step on 50 nodes is one item of the page's timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.core.action import ProofStatus
from chaos.core.result import RunResult, StepResult
from chaos.core.text import printable
from chaos.reports.run.outline import step_text

_SAME_MOMENT = 1.0  # seconds


def step_groups(result: RunResult, at: Callable[[float], int]) -> list[dict[str, Any]]:
    """Steps that were sent, in the order of their begin, as :mod:`chaos.reports.run.page.page_data` describes them.

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
