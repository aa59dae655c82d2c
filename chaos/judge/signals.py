"""Helpers of assertions: signals from histories and readings, text patterns, blind windows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from chaos.model.assertion import Undecidable
from chaos.model.recording import BlindWindow
from chaos.model.signal import Sample, Signal
from chaos.model.timeline import History, Timeline, Version

T = TypeVar("T")
Observation = tuple[bool | None, str]


def _check_pattern(text: str) -> str:
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        try:
            re.compile(text[1:-1])
        except re.error as error:
            raise ValueError(f"invalid regular expression {text!r}: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_check_pattern), Field(description="a substring, or /a regular expression/")]


def matches(pattern: str, text: str | None) -> bool:
    """Whether the text contains the pattern: a substring, or between slashes a regular expression."""
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        return re.search(pattern[1:-1], text or "") is not None
    return pattern in (text or "")


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
    windows = (b for b in timeline.blind_windows if b.hides(uid) and any(b.covers(source) for source in sources))
    masked = signal.mask(windows)
    until, source = min(((timeline.currency.until(s, uid), s) for s in sources), default=(math.inf, ""))
    return masked.mask_lag(until, source)


def mask_pods(signal: Signal, timeline: Timeline, uid: str = "") -> Signal:
    """Make the signal unknown in blind windows of pods, and before the first observation of any pod.

    Raises Undecidable without any observation: then the absence of pods is unknown, too.
    """
    if not timeline.pods:
        raise Undecidable("no pods were observed")
    first = next(iter(timeline.pods.values()))  # entries are in order of time
    return mask_before(first.times[0], signal, timeline, "pods", uid)


def mask_before(first: float, signal: Signal, timeline: Timeline, source: str, uid: str = "") -> Signal:
    """Make the signal unknown in blind windows of the source, and before ``first``, the first observation of it."""
    unwatched = BlindWindow(float("-inf"), first, "not watched yet", source)
    return mask(signal.mask([unwatched]), timeline, source, uid=uid)


def mask_late(signal: Signal, timeline: Timeline, *sources: str) -> Signal:
    """Make the signal unknown where changes came late: for signals whose times are taken as exact."""
    return signal.mask(b for source in sources for b in timeline.currency.late_windows(source))


def node_signal(
    timeline: Timeline, node: str, observe: Callable[[Version[T]], Observation], histories: dict[str, History[T]]
) -> Signal:
    """Signal of one Node object; unknown without any observation of it."""
    history = histories.get(node)
    return mask(from_history(history or (), observe), timeline, "nodes", uid=uid_of(history))


def uid_of(history: History[Any] | None) -> str:
    """The uid of the object, "" if it had several, or was deleted: another of the same name may follow it."""
    uids = {version.object.metadata.uid for version in history or ()}
    return uids.pop() if history and len(uids) == 1 and not history.last.is_deleted else ""
