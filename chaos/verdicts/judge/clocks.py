"""Clocks of the cluster: a time that another clock wrote counts only if the offset of that clock was measured."""

from __future__ import annotations

import math

import msgspec

from chaos.core.evidence import is_number
from chaos.core.time_bounds import CLOCK_OFFSETS, ClockOffset, source_time
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.signals import version_moments

RESOLUTION = 1.0  # seconds: most times in objects are whole seconds
_READING = 0.05  # seconds by which a reading of a clock may be off
_QUICK = 0.5  # seconds: the start of a reading that took no longer is not recorded
_RELIST = 1.0  # seconds after a blind window in which objects are listed one after the other
_PROMPT = 0.5  # seconds: of all renewals of a Lease, one is stored as soon as that
Bounds = tuple[float, float]
UNKNOWN: Bounds = (-math.inf, math.inf)


def recorded_offsets(timeline: Timeline) -> dict[str, ClockOffset]:
    """The offsets that the run measured, by source: ``API server``, ``host NODE``..."""
    try:
        return msgspec.convert(timeline.meta.get(CLOCK_OFFSETS, {}), dict[str, ClockOffset])
    except msgspec.ValidationError:  # the format of another recorder
        return {}


class Lists:
    """The times at which a source was listed again, after a window in which it was not observed."""

    def __init__(self, timeline: Timeline, source: str) -> None:
        self._windows = timeline.blind_windows_in([source], -math.inf, math.inf)

    def __contains__(self, t: float) -> bool:
        return any(window.start <= t and (window.end is None or t <= window.end + _RELIST) for window in self._windows)


def seconds_ahead(timeline: Timeline, node: str) -> Bounds:
    """The minimum and the maximum number of seconds by which the clock of a node is ahead of the clock of the run.

    It is measured by reading it on the host, else by the renewals of the node's Lease: none was stored before its
    renewTime, and at least one as soon as the slowest answer that this run got. Infinite where it was not measured, or
    was set meanwhile.
    """
    low, high = UNKNOWN
    if offset := recorded_offsets(timeline).get(f"host {node}"):
        low, high = offset.seconds - offset.within, offset.seconds + offset.within
    for reading in timeline.readings(node, "host-time"):
        if is_number(reading.value):
            low = max(low, reading.value - reading.t - _READING)
            began = reading.t - _QUICK if reading.since is None else reading.since
            high = min(high, reading.value - began + _READING)
    if (low, high) == UNKNOWN:
        low, high = _ahead_by_lease(timeline, node)
    return (low, high) if low <= high else UNKNOWN


def _ahead_by_lease(timeline: Timeline, node: str) -> Bounds:
    low = high = -math.inf
    before: str | None = None
    prompt = max(_PROMPT, timeline.currency.slowest)
    lists = Lists(timeline, "leases")
    history = timeline.leases.get(node)
    for version in history.peek() if history else ():
        text = version.object.spec.renew_time if version.object.spec else None
        renewed = source_time(text)
        if renewed is None or text == before or version.is_deleted:
            continue
        earliest, latest = version_moments(version)
        low = max(low, renewed - latest)
        if before is not None and version.t not in lists:  # what was listed may have been stored long before
            high = max(high, renewed - earliest + prompt)
        before = text
    return (low, high) if math.isfinite(high) else UNKNOWN


def moment_of(text: str | None, ahead: Bounds) -> Bounds:
    """The moments of the run between which a time of a clock lies that is ``ahead``; infinite if the offset is
    unknown.
    """
    t = source_time(text)
    if t is None or math.isinf(ahead[0]) or math.isinf(ahead[1]):
        return UNKNOWN
    resolution = 0.0 if text and "." in text else RESOLUTION
    return t - ahead[1], t + resolution - ahead[0]


def narrowed(observed: Bounds, measured: Bounds) -> Bounds:
    """The intersection of both intervals, or the observed interval if they contradict each other."""
    lo, hi = max(observed[0], measured[0]), min(observed[1], measured[1])
    return (lo, hi) if lo <= hi else observed
