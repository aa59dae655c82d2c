"""Lines that the engine itself writes into the recording."""

from __future__ import annotations

from typing import Any

import msgspec

from chaos.model.plan import PlannedStep
from chaos.model.recording import ActionRecord, Line


def raw(value: Any) -> msgspec.Raw:
    """``value`` as the object of a line."""
    return msgspec.Raw(msgspec.json.encode(value))


def action_line(t: float, step: PlannedStep, phase: str, **more: Any) -> Line:
    """One phase of a step on a node: begin, returned, proved, undo (begins) or undone."""
    record = ActionRecord(step=step.step, phase=phase, params=step.params, **more)
    return Line(t, "action", step.action, raw(record), step.node)


def meta_line(t: float, meta: dict[str, Any]) -> Line:
    """The first line of a recording."""
    return Line(t, "meta", "recording", raw({"format": 1, **meta}))
