"""Assertion ``event``: a number of matching Events were observed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from chaos.core.assertion import Claim, Names, Noun, View
from chaos.core.field_types import Model
from chaos.core.kube import Event, ObjectReference
from chaos.core.signal import Subject, SubjectSet
from chaos.core.timeline import Entry, Timeline
from chaos.verdicts.judge.sequence import Happening, count_signal
from chaos.verdicts.judge.signals import Pattern, mask_unwatched, matches


class Params(Model):
    """Events, and their number since judging starts."""

    node: str | None = Field(None, description="A target, a node, or all. The involved object must be its Node.")
    kind: str | None = Field(None, description="The kind of the involved object.")
    namespace: str | None = Field(None, description="The namespace of the involved object, or workload.")
    name: str | None = Field(None, description="The name of the involved object.")
    reason: str | None = None
    message: Pattern | None = None
    type: Literal["Normal", "Warning"] | None = None
    component: str | None = Field(None, description="The reporting component, such as kubelet or node-controller.")
    least: int = Field(1, ge=0)
    most: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.node is not None and (self.kind, self.namespace, self.name) != (None, None, None):
            raise ValueError("node and kind, namespace or name exclude each other")
        if self.most is not None and self.most < self.least:
            raise ValueError(f"most {self.most} is less than least {self.least}")
        return self

    def describe(self) -> str:
        """Describe the expectation."""
        conditions = self.model_dump(
            exclude_none=True, include={"type", "reason", "message", "component", "kind", "name"}
        )
        which = ", ".join(f"{key} {value}" for key, value in conditions.items())
        most = "" if self.most is None else f" and at most {self.most}"
        return f"at least {self.least}{most} Events{f' with {which}' if which else ''}"


class _EventMatcher:
    """Matcher of Events about one object, or about any object that matches."""

    def __init__(self, params: Params, node: str, namespace: str | None) -> None:
        self.params = params
        self.kind, self.name = ("Node", node) if node else (params.kind, params.name)
        self.namespace = namespace

    def candidates(self, timeline: Timeline) -> Sequence[tuple[Entry, Event]]:
        """Events that may match, and all others with their uids."""
        return timeline.events if self.name is None else timeline.events.about(self.name)

    def matches(self, event: Event) -> bool:
        """Whether the Event matches all conditions."""
        involved, params = event.involved_object or ObjectReference(), self.params
        return (
            self.kind in (None, involved.kind)
            and self.name in (None, involved.name)
            and self.namespace in (None, involved.namespace)
            and params.reason in (None, event.reason)
            and params.type in (None, event.type)
            and params.component in (None, _component(event))
            and (params.message is None or matches(params.message, event.message))
        )


def _component(event: Event) -> str | None:
    return (event.source.component if event.source else None) or event.reporting_component


def _happenings(timeline: Timeline, matcher: _EventMatcher) -> Iterator[Happening]:
    """Events, each when the API server stored it: a repeated one only increments its count."""
    known: dict[str, int] = {}
    for entry, event in matcher.candidates(timeline):
        before, count = known.get(event.metadata.uid, 0), max(event.count or 1, 1)
        known[event.metadata.uid] = max(before, count)
        # An Event that is first observed with a count has occurred an unknown number of times since then: at least one.
        number = count - before if before else 1
        if number > 0 and entry.type != "DELETED" and not entry.note and matcher.matches(event):
            involved = event.involved_object.name if event.involved_object else "?"
            text = f"about {involved}: {event.reason}: {event.message}"
            earliest = min(timeline.currency.event_earliest(entry.seq), entry.t)
            yield Happening(earliest, entry.t, entry.seq, text, number)


class EventCount:
    """The API server has stored a number of matching Events since judging started. A repeated Event counts as often
    as its count grew.

    The times in an Event come from its writer's clock and decide nothing. Events are best effort: writers merge and
    drop them, and Events of a node that goes down are often lost (facts 15). Therefore also use another assertion.
    """

    name = "event"
    summary = "a number of Events with a reason, message and object were observed"
    example = (
        "{assert: event, with: {node: victim, reason: Shutdown, component: kubelet, message: detected shutdown event}, "
        "after: power-off, within: 5s}"
    )
    needs = "the Events of the cluster, watched without a gap since before the beginning"
    params = Params
    node_fields = ("node",)
    moment_fields = ()
    masks_itself = True
    sources = ("events",)

    def claim(self, params: Params, names: Names) -> Claim:
        if params.node:
            about = names.nodes(params.node)
        elif params.name:
            about = Noun(f"{params.kind or 'object'} {params.name}")
        else:
            about = Noun(f"objects of kind {params.kind}" if params.kind else "the cluster")
        what = f" {params.reason}" if params.reason else " as expected"
        least, most = params.least, params.most
        if least == 1 and most is None:
            return about.claim(f"had an Event{what}", f"had no Event{what}")
        if most is None:
            return about.claim(f"had at least {least} Events{what}", f"had fewer than {least} Events{what}")
        if not most:
            return about.claim(f"had no Event{what}", f"had an Event{what}")
        if not least:
            return about.claim(f"had at most {most} Events{what}", f"had more than {most} Events{what}")
        number = f"exactly {least}" if least == most else f"{least} to {most}"
        return about.claim(f"had {number} Events{what}", f"did not have {number} Events{what}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline = view.timeline
        namespace = view.namespace(params.namespace) if params.namespace else None
        names = view.nodes(params.node) if params.node else ("",)
        subjects = []
        for name in names:
            found = _happenings(timeline, _EventMatcher(params, name, namespace))
            signal = count_signal(found, view.since, params.least, params.most, "no such Event was observed")
            subjects.append(Subject(name, mask_unwatched(signal, timeline, "events")))
        return SubjectSet(params.describe(), tuple(subjects), empty_reason="no node was observed")


ASSERTION = EventCount()
