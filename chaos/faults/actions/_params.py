"""Parameters that several actions have."""

from __future__ import annotations

from chaos.core.action import Target
from chaos.core.duration import parse_duration
from chaos.core.field_types import Model


class NoParams(Model):
    """No parameters."""


def timer_seconds(target: Target, duration: str | None) -> float:
    """When the host ends the fault by itself, at the latest after maxDuration."""
    return min(parse_duration(duration), target.max_duration) if duration else target.max_duration
