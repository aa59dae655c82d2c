"""Parameters that several actions have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chaos.core.action import Target
from chaos.core.duration import parse_duration
from chaos.core.field_types import DurationText, Model

Ends = Annotated[
    DurationText | None,
    Field(description="When the fault ends by itself. By default, and at the latest, at maxDuration."),
]
RulesEnd = Annotated[
    DurationText | None, Field(description="When the node removes the rules by itself. By default, at maxDuration.")
]


class NoParams(Model):
    """No parameters."""


class DurationParams(Model):
    """The duration of the fault."""

    duration: Ends = None


def timer_seconds(target: Target, duration: str | None) -> float:
    """Seconds after which the host ends the fault by itself, at most maxDuration."""
    return min(parse_duration(duration), target.max_duration) if duration else target.max_duration
