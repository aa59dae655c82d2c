"""Assertion ``inhibitor-held``: the kubelet holds its shutdown inhibitor lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from chaos.core.assertion import Claim, Names, Noun, View
from chaos.core.field_types import Flag, Model
from chaos.core.recording import ActionPhase
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.signals import mask

_STALE_AFTER = 15.0  # seconds, of the last reading; any other is valid until the next


class Params(Model):
    """Owner of the lock; ``held: false`` means that there is no lock."""

    node: str = Field(description="A target, or all.")
    held: Flag = True
    who: str = "kubelet"


def _has_lock(locks: Any, who: str) -> bool | None:
    """Whether ``who`` holds a delay lock on shutdown; None for an unknown format."""
    if not isinstance(locks, list) or not all(isinstance(lock, dict) for lock in locks):
        return None
    return any(
        lock.get("who") == who and lock.get("mode") == "delay" and "shutdown" in str(lock.get("what", "")).split(":")
        for lock in locks
    )


def _samples(timeline: Timeline, node: str, params: Params) -> Iterator[Sample]:
    readings = timeline.readings(node, "inhibitor-locks")
    if readings:
        yield Sample(readings[-1].began + _STALE_AFTER, None, readings[-1].seq, "no later reading of the inhibitors")
    begins = [e.t for e, r in timeline.actions if e.node == node and r.phase == ActionPhase.BEGIN]
    for reading in readings:
        if any(reading.began < begin <= reading.t for begin in begins):
            continue  # it may be from before the action
        locked = _has_lock(reading.value, params.who)
        text = {
            True: f"{params.who} holds a delay lock on shutdown",
            False: f"{params.who} holds no delay lock on shutdown",
            None: "unknown format of the list of inhibitors",
        }[locked]
        yield Sample(reading.t, None if locked is None else locked is params.held, reading.seq, text)
    for entry, record in timeline.actions:
        if entry.node == node and record.phase == ActionPhase.BEGIN:
            text = f"no reading of the inhibitors since the start of {record.step or entry.type}"
            yield Sample(entry.t, None, entry.seq, text)


class InhibitorHeld:
    """The host fact ``inhibitor-locks`` lists a delay lock on shutdown.

    Readings are seconds apart. A reading is valid until the next reading (the last one for 15 s), or until an action
    begins on the node, because an action may change the lock. Therefore a reading before a shutdown is announced
    proves nothing about the time after it.
    """

    name = "inhibitor-held"
    summary = "the kubelet holds its delay lock on shutdown, according to logind"
    example = "{assert: inhibitor-held, with: {node: victim}, after: cancel, within: 15s}"
    needs = "repeated readings of the inhibitors on the host during that time"
    host_facts = ("inhibitor-locks",)
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ()
    masks_itself = True

    def claim(self, params: Params, names: Names) -> Claim:
        who = "the kubelet" if params.who == "kubelet" else f"program {params.who}"
        owner = Noun(f"{who} of {names.nodes(params.node)}")
        held, not_held = "held its shutdown lock", "held no shutdown lock"
        return owner.claim(held, not_held) if params.held else owner.claim(not_held, held)

    def subjects(self, params: Params, view: View) -> SubjectSet:
        subjects = []
        for node in view.nodes(params.node):
            samples = sorted(_samples(view.timeline, node, params), key=lambda s: (s.t, s.seq or 0))
            signal = mask(Signal(tuple(samples)), view.timeline, f"host@{node}")
            subjects.append(Subject(node, signal))
        expected = f"{params.who} holds {'a' if params.held else 'no'} delay lock on shutdown"
        return SubjectSet(expected, tuple(subjects), empty_reason="no node was observed")


ASSERTION = InhibitorHeld()
