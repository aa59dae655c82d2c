"""Helpers of assertions: signals from histories and readings, text patterns, blind windows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from msgspec import structs
from pydantic import AfterValidator, Field

from chaos.core.assertion import Assertion, MaskingAssertion, Undecidable, View, WatchingAssertion
from chaos.core.recording import BlindWindow
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import History, Timeline, Version

T = TypeVar("T")
Observation = tuple[bool | None, str]


def _check_pattern(text: str) -> str:
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        try:
            re.compile(text[1:-1])
        except re.error as error:
            raise ValueError(f"invalid regular expression {text!r}: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_check_pattern), Field(description="A substring, or /a regular expression/.")]


def matches(pattern: str, text: str | None) -> bool:
    """Whether the text contains the pattern: a substring, or between slashes a regular expression."""
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        return re.search(pattern[1:-1], text or "") is not None
    return pattern in (text or "")


def version_moments(version: Version[Any]) -> tuple[float, float]:
    """The moments between which the version happened."""
    latest = min(version.t, version.latest)
    return min(version.earliest, latest), latest


def version_sample(version: Version[Any], value: bool | None, text: str) -> Sample:
    """The sample of a version: it happened after the last proof that its watch was current."""
    return Sample(min(version.t, version.latest), value, version.seq, text, version.earliest, version.order)


def from_history(history: Iterable[Version[T]], observe: Callable[[Version[T]], Observation]) -> Signal:
    """Make a signal with one sample per version; a version whose state is unknown is unknown."""
    samples = []
    for version in history:
        value, text = (None, "last state not observed") if version.final_state_unknown else observe(version)
        samples.append(version_sample(version, value, text))
    return Signal(tuple(samples))


def mask(signal: Signal, timeline: Timeline, *sources: str, uid: str = "") -> Signal:
    """Make the signal unknown where versions may be lost, in blind windows of the sources, and after their last proof.

    ``uid``: of the only object that the signal is about.
    """
    return mask_unproven(mask_blind(signal, timeline, *sources, uid=uid), timeline, *sources, uid=uid)


def mask_blind(signal: Signal, timeline: Timeline, *sources: str, uid: str = "") -> Signal:
    """Make the signal unknown in blind windows of the sources."""
    return signal.mask(b for b in timeline.blind_windows if b.hides(uid) and any(map(b.covers, sources)))


def mask_unproven(signal: Signal, timeline: Timeline, *sources: str, uid: str = "") -> Signal:
    """Make the signal unknown after the last proof of the sources, which each judgement finds later."""
    until, source = min(((timeline.currency.until(s, uid), s) for s in sources), default=(math.inf, ""))
    return signal.mask_lag(until, source)


def mask_pods(signal: Signal, timeline: Timeline, uid: str = "") -> Signal:
    """Make the signal unknown in blind windows of pods, before the first observation of any pod, and after their proof.

    Raises Undecidable without any observation: then the absence of pods is unknown, too.
    """
    return mask_unproven(mask_unseen_pods(signal, timeline, uid), timeline, "pods", uid=uid)


def mask_unseen_pods(signal: Signal, timeline: Timeline, uid: str = "") -> Signal:
    """Make the signal unknown in blind windows of pods, and before pods were watched.

    Raises Undecidable without any observation.
    """
    return mask_blind(_mask_until(watched_since(timeline, "pods"), signal, "pods"), timeline, "pods", uid=uid)


def mask_unwatched(signal: Signal, timeline: Timeline, source: str) -> Signal:
    """Make the signal unknown as ``mask`` does, and before the source was watched. Raises Undecidable if never."""
    return mask(_mask_until(watched_since(timeline, source), signal, source), timeline, source)


def mask_unobserved(subjects: SubjectSet, assertion: Assertion, timeline: Timeline) -> SubjectSet:
    """The subjects, unknown where what the assertion needs could not be observed, unless it does that by itself.

    The times of its signals are taken as exact, so that they are unknown where changes came late, too. Raises
    Undecidable if something that it needs was never watched.
    """
    if isinstance(assertion, MaskingAssertion):
        return subjects
    sources = assertion.sources if isinstance(assertion, WatchingAssertion) else ()
    first = max((watched_since(timeline, source) for source in sources if source in _FIRST_TIMES), default=-math.inf)
    blinds = [
        BlindWindow(-math.inf, first, "not watched yet", ", ".join(sources)),
        *(b for b in timeline.blind_windows if not sources or any(map(b.covers, sources))),
    ]
    needed = sources or timeline.currency.sources

    def masked(subject: Subject) -> Subject:
        signal = mask_late(subject.signal.mask(blinds), timeline, *needed)
        return structs.replace(subject, signal=mask_unproven(signal, timeline, *needed))

    return replace(subjects, subjects=tuple(map(masked, subjects.one_by_one().subjects)), counted=None, each=None)


def since_effect(view: View, make: Callable[[float], Signal]) -> Signal:
    """The signal that ``make`` builds from readings since the effect of the step. It is unknown where it depends on
    the exact moment of the effect.
    """
    first, last = (make(moment) for moment in view.since)
    if first == last:
        return first
    samples = []
    for t in sorted({sample.t for signal in (first, last) for sample in signal.samples}):
        one, other = first.at(t), last.at(t)
        text = f"it depends on when the step took effect: {one.observation}"
        samples.append(one.moved(t, math.inf) if one.value is other.value else Sample(t, None, one.seq, text))
    return Signal(tuple(samples))


def watched_since(timeline: Timeline, source: str) -> float:
    """The first observation of the source, or the first proof that there is nothing to observe.

    Raises Undecidable without either: then the absence of objects is unknown, too.
    """
    observed = _FIRST_TIMES[source](timeline)
    first = min(observed, timeline.currency.since(source))
    if math.isinf(first):
        raise Undecidable(f"no {_NOUNS.get(source, source)} were observed")
    return first


_FIRST_TIMES: Mapping[str, Callable[[Timeline], float]] = {
    "pods": lambda timeline: next((pod.first_time for pod in timeline.pods.values()), math.inf),
    "events": lambda timeline: timeline.events[0][0].t if timeline.events else math.inf,
    "volumeattachments": lambda timeline: min(
        (attachment.first_time for attachment in timeline.volumeattachments.values()), default=math.inf
    ),
}  # entries are in order of time
_NOUNS = {"events": "Events", "volumeattachments": "VolumeAttachments"}


def _mask_until(first: float, signal: Signal, source: str) -> Signal:
    return signal.mask([BlindWindow(float("-inf"), first, "not watched yet", source)])


def mask_late(signal: Signal, timeline: Timeline, *sources: str) -> Signal:
    """Make the signal unknown where changes came late: for signals whose times are taken as exact."""
    return signal.mask(b for source in sources for b in timeline.currency.late_windows(source))


def uid_of(history: History[Any] | None) -> str:
    """The uid of the object, "" if it had several, or was deleted: another of the same name may follow it."""
    uids = {version.object.metadata.uid for version in history or ()}
    return uids.pop() if history and len(uids) == 1 and not history.is_deleted else ""
