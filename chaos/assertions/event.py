"""Was an Event written?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from chaos.judge.signals import Pattern, mask_before, matches, source_time
from chaos.model.assertion import Undecidable, View
from chaos.model.experiment import Model
from chaos.model.kube import Event, ObjectReference
from chaos.model.signal import Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import Entry, Timeline

_RESOLUTION = 1.0  # seconds: most Events have times in whole seconds


class Params(Model):
    """Which Events, and how many of them since judging starts."""

    node: str | None = Field(None, description="about the Node object of a target, of a node, or of all")
    kind: str | None = Field(None, description="kind of the object that it is about")
    namespace: str | None = Field(None, description="namespace of that object, or workload")
    name: str | None = Field(None, description="name of that object")
    reason: str | None = None
    message: Pattern | None = None
    type: Literal["Normal", "Warning"] | None = None
    component: str | None = Field(None, description="who wrote it: kubelet, node-controller...")
    least: int = Field(1, ge=0)
    most: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.node is not None and (self.kind, self.namespace, self.name) != (None, None, None):
            raise ValueError("node says which object is meant; kind, namespace and name are for others")
        if self.most is not None and self.most < self.least:
            raise ValueError(f"most {self.most} is less than least {self.least}")
        return self

    def describe(self) -> str:
        """What is asked for."""
        given = self.model_dump(exclude_none=True, include={"type", "reason", "message", "component", "kind", "name"})
        which = ", ".join(f"{key} {value}" for key, value in given.items())
        most = "" if self.most is None else f" and at most {self.most}"
        return f"at least {self.least}{most} Events{f' with {which}' if which else ''}"


class _EventMatcher:
    """The Events about one object, or about any that fits."""

    def __init__(self, params: Params, node: str, namespace: str | None) -> None:
        self.params = params
        self.kind, self.name = ("Node", node) if node else (params.kind, params.name)
        self.namespace = namespace

    def matches(self, event: Event) -> bool:
        about, params = event.involved_object or ObjectReference(), self.params
        return (
            self.kind in (None, about.kind)
            and self.name in (None, about.name)
            and self.namespace in (None, about.namespace)
            and params.reason in (None, event.reason)
            and params.type in (None, event.type)
            and params.component in (None, _component(event))
            and (params.message is None or matches(params.message, event.message))
        )


def _component(event: Event) -> str | None:
    return (event.source.component if event.source else None) or event.reporting_component


def _event_time(event: Event) -> float | None:
    return source_time(event.last_timestamp) or source_time(event.event_time) or source_time(event.first_timestamp)


def _occurrences(timeline: Timeline, wanted: _EventMatcher, anchor: float) -> Iterator[tuple[Entry, Event, int]]:
    """What was seen and happened after the anchor, and how often: an Event that is repeated only counts up."""
    known: dict[str, int] = {}
    for entry, event in timeline.events:
        before, count = known.get(event.metadata.uid, 0), max(event.count or 1, 1)
        known[event.metadata.uid] = max(before, count)
        happened = _event_time(event)
        old = entry.t <= anchor or (happened is not None and happened + _RESOLUTION <= anchor)
        if entry.type == "DELETED" or old or entry.note or not wanted.matches(event):
            continue
        # How many of those that are told at once for the first time came after the anchor is not known: one did.
        yield entry, event, count - before if before else 1


def _signal(timeline: Timeline, wanted: _EventMatcher, anchor: float) -> Signal:
    params, number = wanted.params, 0
    samples = [Sample(float("-inf"), params.least == 0, None, "no such Event was seen")]
    for entry, event, times in _occurrences(timeline, wanted, anchor):
        number += max(times, 0)
        value = params.least <= number and (params.most is None or number <= params.most)
        about = event.involved_object.name if event.involved_object else "?"
        seen = f"{number} seen, the last of {about}: {event.reason}: {event.message}"
        samples.append(Sample(entry.t, value, entry.seq, seen))
    return Signal(tuple(samples))


class EventCount:
    """So many Events that fit were seen after judging starts; a repeated one counts as often as it says.

    Events are best effort: writers merge and drop them, and those of a node that goes down are often lost (facts 15).
    So ask something else beside them.
    """

    name = "event"
    summary = "so many Events with a reason, message and object were seen"
    example = (
        "{assert: event, with: {node: victim, reason: Shutdown, component: kubelet, message: detected shutdown event}, "
        "after: power-off, within: 5s}"
    )
    needs = "the Events of the cluster, watched without a gap from before the beginning"
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline = view.timeline
        if not timeline.events:
            raise Undecidable("no Event was seen anywhere")
        namespace = view.namespace(params.namespace) if params.namespace else None
        names = view.nodes(params.node) if params.node else ("",)
        since = timeline.events[0][0].t
        subjects = []
        for name in names:
            signal = _signal(timeline, _EventMatcher(params, name, namespace), view.anchor)
            subjects.append(Subject(name, mask_before(since, signal, timeline, "events")))
        return SubjectSet(params.describe(), tuple(subjects), empty_reason="no node was seen")


ASSERTION = EventCount()
