"""What assertions share: signals from histories and readings, text patterns, blind windows."""

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
            raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_check_pattern), Field(description="a substring, or /a regular expression/")]


def matches(pattern: str, text: str | None) -> bool:
    """Substring, or between slashes a regular expression found anywhere in the text."""
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        return re.search(pattern[1:-1], text or "") is not None
    return pattern in (text or "")


def source_time(text: str | None) -> float | None:
    """When something happened as its source tells (RFC 3339, mostly whole seconds); None if it does not."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def from_history(history: Iterable[Version[T]], tell: Callable[[Version[T]], Observation]) -> Signal:
    """One sample per version; a version whose state is a guess is unknown."""
    samples = []
    for version in history:
        value, seen = (None, "its last state was not seen") if version.final_state_unknown else tell(version)
        samples.append(Sample(version.t, value, version.seq, seen))
    return Signal(tuple(samples))


def mask(signal: Signal, timeline: Timeline, *sources: str) -> Signal:
    """Unknown inside every blind window of any of the sources."""
    return signal.mask(b for b in timeline.blind_windows if any(b.covers(source) for source in sources))


def mask_pods(signal: Signal, timeline: Timeline) -> Signal:
    """Unknown while pods could not be seen: in blind windows, and before any pod was seen at all.

    Raises Undecidable if none ever was: then "no pod" is not known either.
    """
    first = min((history.times[0] for history in timeline.pods.values()), default=None)
    if first is None:
        raise Undecidable("no pod was seen anywhere")
    return mask_before(first, signal, timeline, "pods")


def mask_before(first: float, signal: Signal, timeline: Timeline, source: str) -> Signal:
    """Unknown inside the source's blind windows, and before ``first``, when something of it was first seen."""
    return mask(signal.mask([BlindWindow(float("-inf"), first, "they were not watched yet", source)]), timeline, source)


def node_signal(
    timeline: Timeline, node: str, tell: Callable[[Version[T]], Observation], histories: dict[str, History[T]]
) -> Signal:
    """The signal of one Node object; nothing but unknown if it was never seen."""
    history = histories.get(node)
    return mask(from_history(history or (), tell), timeline, "nodes")
