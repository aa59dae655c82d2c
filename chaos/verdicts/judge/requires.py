"""Requirements of an experiment on its nodes (``requires``)."""

from __future__ import annotations

from chaos.core.duration import format_duration, satisfies
from chaos.verdicts.judge.context import JudgeContext
from chaos.verdicts.judge.facts import Facts


def unmet_requirements(context: JudgeContext) -> list[tuple[str, str]]:
    """The node and a description, for each requirement that is known not to be met; unknown values are no failure."""
    return [
        (node, text)
        for section, tests in context.experiment.spec.requires.items()
        for key, test in tests.items()
        for node in context.match_result.nodes
        if (text := _check_requirement(context, node, f"{section}.{key}", test))
    ]


def _check_requirement(context: JudgeContext, node: str, name: str, test: str) -> str:
    facts = Facts(context, (node,), context.timeline.end)
    value = facts.lookup(name)
    if value is None or satisfies(value, test):
        return ""
    return f"the experiment requires {name} {test}, but {node} has {format_duration(value)}"
