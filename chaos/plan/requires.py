"""What an experiment requires of its targets: ``{kubelet: {shutdownGracePeriod: ">0"}}``."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from typing import Any

from chaos.model.duration import parse_duration
from chaos.model.errors import Refused

_OPERATORS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_REQUIREMENT = re.compile(r"\s*(>=|<=|==|!=|>|<|=)?\s*(\S+)\s*$")


def parse_requirement(text: str) -> tuple[str, float]:
    """Operator and number (durations in seconds) of ``">0"`` or ``">= 30s"``. Raises ValueError."""
    match = _REQUIREMENT.match(text)
    if not match:
        raise ValueError(f"{text!r} is not a requirement; write it like '>0' or '>= 30s'")
    return match[1] or "=", seconds(match[2])


def seconds(value: Any) -> float:
    """A number, or a duration in seconds. Raises ValueError."""
    if isinstance(value, int | float):
        return float(value)
    text = str(value)
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else parse_duration(text)


def check(requires: Mapping[str, Mapping[str, str]], node: str, facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises Refused, naming the node, what is required and what it has. ``facts`` is {source: {name: value}}."""
    for source, wanted in requires.items():
        for name, text in wanted.items():
            symbol, number = parse_requirement(text)
            value = facts.get(source, {}).get(name)
            if value is None:
                raise Refused(f"the experiment requires {source}.{name} {text}, which {node} does not tell")
            if not _OPERATORS[symbol](seconds(value), number):
                raise Refused(
                    f"the experiment requires {source}.{name} {text}; on {node} it is {value}",
                    hint=f"change {name} in the {source}'s configuration, or choose another node",
                )
