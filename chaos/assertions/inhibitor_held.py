"""Does the kubelet hold its lock on shutdown?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from chaos.judge.signals import mask
from chaos.model.assertion import View
from chaos.model.experiment import Model
from chaos.model.recording import ActionPhase
from chaos.model.signal import Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import Timeline

_STALE_AFTER = 15.0  # seconds: the last reading; one that another follows is good until that


class Params(Model):
    """Whose lock; ``held: false`` asks that there is none."""

    node: str = Field(description="a target, a node's name, or all")
    held: bool = True
    who: str = "kubelet"


def _has_lock(locks: Any, who: str) -> bool | None:
    """True if ``who`` holds a delay lock on shutdown; None if the reading is not a list of locks."""
    if not isinstance(locks, list) or not all(isinstance(lock, dict) for lock in locks):
        return None
    return any(
        lock.get("who") == who and lock.get("mode") == "delay" and "shutdown" in str(lock.get("what", "")).split(":")
        for lock in locks
    )


def _samples(timeline: Timeline, node: str, params: Params) -> Iterator[Sample]:
    readings = timeline.readings(node, "inhibitors")
    if readings:
        yield Sample(readings[-1].t + _STALE_AFTER, None, readings[-1].seq, "the inhibitors were not read any more")
    for reading in readings:
        locked = _has_lock(reading.value, params.who)
        seen = {
            True: f"{params.who} holds a delay lock on shutdown",
            False: f"{params.who} holds no delay lock on shutdown",
            None: "the list of inhibitors is not understood",
        }[locked]
        yield Sample(reading.t, None if locked is None else locked is params.held, reading.seq, seen)
    for entry, record in timeline.actions:
        if entry.node == node and record.phase == ActionPhase.BEGIN:
            seen = f"the inhibitors were not read since {record.step or entry.type} began"
            yield Sample(entry.t, None, entry.seq, seen)


class InhibitorHeld:
    """The host fact ``inhibitors`` lists a delay lock on shutdown.

    Readings are sparse: one is good from its moment on until the next (the last one for 15s), or until an action begins
    on the node, which may change it. So a lock that was read before a shutdown was announced says nothing about the
    time after it.
    """

    name = "inhibitor-held"
    summary = "the kubelet holds its delay lock on shutdown, as logind tells"
    example = "{assert: inhibitor-held, with: {node: victim}, after: cancel, within: 15s}"
    needs = "the inhibitors, read on the host again and again in that time"
    host_facts = ("inhibitors",)
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        subjects = []
        for node in view.nodes(params.node):
            samples = sorted(_samples(view.timeline, node, params), key=lambda s: (s.t, s.seq or 0))
            signal = mask(Signal(tuple(samples)), view.timeline, f"host@{node}")
            subjects.append(Subject(node, signal))
        expected = f"{params.who} holds {'a' if params.held else 'no'} delay lock on shutdown"
        return SubjectSet(expected, tuple(subjects), empty_reason="no node was seen")


ASSERTION = InhibitorHeld()
