"""What an experiment requires of its targets: ``{kubelet: {shutdownGracePeriod: ">0"}}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.model.errors import Refused
from chaos.model.requirement import satisfies, seconds


def check(requires: Mapping[str, Mapping[str, str]], node: str, facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises Refused, naming the node, what is required and what it has. ``facts`` is {source: {name: value}}."""
    for source, wanted in requires.items():
        for name, text in wanted.items():
            value = facts.get(source, {}).get(name)
            if value is None:
                raise Refused(f"the experiment requires {source}.{name} {text}, which {node} does not tell")
            if not satisfies(seconds(value), text):
                raise Refused(
                    f"the experiment requires {source}.{name} {text}; on {node} it is {value}",
                    hint=f"change {name} in the {source}'s configuration, or choose another node",
                )
