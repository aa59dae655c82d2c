"""Helpers of assertions: signals from histories and readings, text patterns, blind windows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, TypeVar

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


def source_time(text: str | None) -> float | None:
    """Parse a timestamp of an object (RFC 3339, mostly whole seconds) to epoch seconds; None if missing or invalid."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def from_history(history: Iterable[Version[T]], observe: Callable[[Version[T]], Observation]) -> Signal:
    """Make a signal with one sample per version; a version whose state is unknown is unknown."""
    samples = []
    for version in history:
        value, text = (None, "last state not observed") if version.final_state_unknown else observe(version)
        samples.append(Sample(version.t, value, version.seq, text))
    return Signal(tuple(samples))


def mask(signal: Signal, timeline: Timeline, *sources: str) -> Signal:
    """Make the signal unknown in every blind window of any of the sources."""
    return signal.mask(b for b in timeline.blind_windows if any(b.covers(source) for source in sources))


def mask_pods(signal: Signal, timeline: Timeline) -> Signal:
    """Make the signal unknown in blind windows of pods, and before the first observation of any pod.

    Raises Undecidable without any observation: then the absence of pods is unknown, too.
    """
    if not timeline.pods:
        raise Undecidable("no pods were observed")
    first = next(iter(timeline.pods.values()))  # entries are in order of time
    return mask_before(first.times[0], signal, timeline, "pods")


def mask_before(first: float, signal: Signal, timeline: Timeline, source: str) -> Signal:
    """Make the signal unknown in blind windows of the source, and before ``first``, the first observation of it."""
    return mask(signal.mask([BlindWindow(float("-inf"), first, "not watched yet", source)]), timeline, source)


def node_signal(
    timeline: Timeline, node: str, observe: Callable[[Version[T]], Observation], histories: dict[str, History[T]]
) -> Signal:
    """Signal of one Node object; unknown without any observation of it."""
    history = histories.get(node)
    return mask(from_history(history or (), observe), timeline, "nodes")
