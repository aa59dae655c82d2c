"""What an experiment requires of its targets: ``{kubelet: {shutdownGracePeriod: ">0"}}``."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.model.duration import format_duration
from chaos.model.errors import Refused, RequirementUnmet
from chaos.model.requirement import satisfies


def check(
    requires: Mapping[str, Mapping[str, str]], node: str, facts: Mapping[str, Mapping[str, float | None]]
) -> None:
    """Raises RequirementUnmet, naming the node, what is required and what it has; Refused where it does not tell.

    ``facts`` is {source: {name: seconds}}.
    """
    for source, wanted in requires.items():
        for name, text in wanted.items():
            value = facts.get(source, {}).get(name)
            if value is None:
                raise Refused(f"the experiment requires {source}.{name} {text}, which {node} does not tell")
            if not satisfies(value, text):
                raise RequirementUnmet(
                    f"the experiment requires {source}.{name} {text}; on {node} it is {format_duration(value)}",
                    hint=f"change {name} in the {source}'s configuration, or choose another node",
                )
