"""Recording entries that the engine writes itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from chaos.core.plan import PlannedStep
from chaos.core.recording import FORMAT, ActionRecord, EntryKind, RecordingEntry


def encode_raw(value: Any) -> msgspec.Raw:
    """``value`` as the object of a recording entry."""
    return msgspec.Raw(msgspec.json.encode(value))


def action_entry(t: float, step: PlannedStep, phase: str, **more: Any) -> RecordingEntry:
    """One phase of a step on a node: begin, returned, proved, undo (its begin) or undone."""
    record = ActionRecord(step=step.step, phase=phase, params=step.params, **more)
    return RecordingEntry(t, EntryKind.ACTION, step.action, encode_raw(record), step.node)


def fact_entry(t: float, node: str, fact: str, value: Any) -> RecordingEntry:
    """A fact of a host that the engine has read."""
    return RecordingEntry(t, EntryKind.HOST, fact, encode_raw(value), node)


def meta_entry(t: float, meta: Mapping[str, Any]) -> RecordingEntry:
    """The first entry of a recording."""
    return RecordingEntry(t, EntryKind.META, "recording", encode_raw({"format": FORMAT, **meta}))
