"""What an experiment requires of the nodes it is made for."""

from __future__ import annotations

import operator
import re

from chaos.judge.context import Context
from chaos.judge.facts import Facts
from chaos.model.duration import format_duration, parse_duration

_TEST = re.compile(r"\s*(>=|<=|==|!=|=|>|<|)\s*(\S+)\s*")
_OPERATORS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "=": operator.eq,
    "": operator.eq,
}


def unmet(context: Context) -> list[str]:
    """Requirements that are known not to be met, in words; what is not known is not complained of here."""
    nodes = tuple(dict.fromkeys(n for names in context.matched.targets.values() for n in names))
    return [
        text
        for section, tests in context.experiment.spec.requires.items()
        for key, test in tests.items()
        for node in nodes
        if (text := _unmet(context, node, f"{section}.{key}", test))
    ]


def _unmet(context: Context, node: str, name: str, test: str) -> str:
    facts = Facts(context, (node,), context.timeline.end)
    value = facts.lookup(name)
    if value is None or satisfies(value, test):
        return ""
    return f"it requires {name} {test}, and on {node} it is {format_duration(value)}"


def satisfies(value: float, test: str) -> bool:
    """True if ``value`` passes a test as ``>0``, ``>=30s`` or ``30s``. Raises ValueError for another text."""
    match = _TEST.fullmatch(test)
    if not match:
        raise ValueError(f"{test!r} is not a test; write it like >0 or >=30s")
    try:
        wanted = float(match[2])
    except ValueError:
        wanted = parse_duration(match[2])
    return bool(_OPERATORS[match[1]](value, wanted))
