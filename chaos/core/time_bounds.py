"""Bounds of the moments at which versions happened: from the order of their resourceVersions, and from their writers.

The writers of an object put times into it: a version is not older than the newest of them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

from msgspec import Struct

from chaos.core.kube import Event, Job, Lease, Node, Pod
from chaos.core.kube.meta import Condition

_RESOLUTION = 0.01  # seconds by which a bound may be wider, so that an hour of many changes takes little memory
_SAVED = 50_000  # parsed timestamps: most of an object are those of its version before


class OrderBounds:
    """What is known of the moments of all changes in one store, whose numbers grow with each.

    ``is_consistent``: no two readings contradict each other, as they do if the numbers are of several stores.
    """

    def __init__(self) -> None:
        self.is_consistent = True
        self._floors: tuple[list[int], list[float]] = ([], [])  # both ascending: of what is newer than the number
        self._ceilings: tuple[list[int], list[float]] = ([], [])  # both ascending: of what is not newer

    def __bool__(self) -> bool:
        return self.is_consistent and bool(self._floors[0])

    def add_read(self, order: int, begin: float, answered: float) -> None:
        """A read that was sent at ``begin`` had everything up to ``order``, and nothing after it."""
        orders, times = self._floors
        at = bisect_right(orders, order)
        if not at or times[at - 1] < begin:
            start, end = bisect_left(orders, order), bisect_right(times, begin, lo=at)
            orders[start:end], times[start:end] = [order], [begin]
        above = bisect_right(self._ceilings[0], order)
        if above < len(self._ceilings[0]) and self._ceilings[1][above] < begin:
            self.is_consistent = False  # it had less than was known before
        self.add_ceiling(order, answered)

    def add_ceiling(self, order: int, t: float) -> None:
        """Note that everything up to ``order`` happened by ``t``."""
        orders, times = self._ceilings
        if not orders or (orders[-1] < order and times[-1] < t):  # as usual: the newest
            if len(times) > 1 and t - times[-2] < _RESOLUTION:
                orders[-1], times[-1] = order, t
            else:
                orders.append(order)
                times.append(t)
        else:
            at = bisect_left(orders, order)
            if at == len(orders) or times[at] > t:
                start, end = bisect_left(times, t, hi=at), bisect_right(orders, order)
                orders[start:end], times[start:end] = [order], [t]
        if self._floor(order) > t:
            self.is_consistent = False

    def interval(self, order: int) -> tuple[float, float]:
        """The moments between which the change ``order`` happened; infinite where nothing is known."""
        orders, times = self._ceilings
        if orders and orders[-1] == order:  # as usual: the newest
            return self._floor(order), times[-1]
        by = bisect_left(orders, order)
        return self._floor(order), times[by] if by < len(times) else math.inf

    def _floor(self, order: int) -> float:
        orders, times = self._floors
        if orders and orders[-1] < order:  # as usual: newer than all that was read
            return times[-1]
        at = bisect_left(orders, order)
        return times[at - 1] if at else -math.inf


@lru_cache(_SAVED)
def source_time(text: str | None) -> float | None:
    """Parse a timestamp of an object (RFC 3339, mostly whole seconds) to epoch seconds; None if missing or invalid."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def newest_time(obj: Any, until: float) -> float:
    """The newest time in the object that is not after ``until``, by the clock of its writer; -inf if there is none."""
    newest = float("-inf")
    for text in _texts(obj):
        t = source_time(text) if text else None
        if t is not None and newest < t <= until:
            newest = t
    metadata = obj.metadata
    created, deleted = source_time(metadata.creation_timestamp), source_time(metadata.deletion_timestamp)
    if created is not None and newest < created <= until:
        newest = created
    if deleted is not None and metadata.deletion_grace_period_seconds is not None:
        deleted -= metadata.deletion_grace_period_seconds  # the timestamp is that of its end
        newest = deleted if newest < deleted <= until else newest
    return newest


def _texts(obj: Any) -> Iterator[str | None]:
    if isinstance(obj, Pod):
        yield from _pod_texts(obj)
    elif isinstance(obj, Node):
        yield from _condition_texts(obj.status.conditions if obj.status else None)
        yield from (manager.time for manager in obj.metadata.managed_fields or ())
        yield from (taint.time_added for taint in (obj.spec.taints if obj.spec else None) or ())
    elif isinstance(obj, Lease):
        yield obj.spec.renew_time if obj.spec else None
    elif isinstance(obj, Event):
        yield from (obj.last_timestamp, obj.event_time, obj.first_timestamp)
    elif isinstance(obj, Job) and obj.status:
        yield from (obj.status.start_time, obj.status.completion_time)


def _pod_texts(pod: Pod) -> Iterator[str | None]:
    status = pod.status
    if status is None:
        return
    yield status.start_time
    yield from _condition_texts(status.conditions)
    for container in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
        state = container.state
        if state and state.running:
            yield state.running.started_at
        if state and state.terminated:
            yield state.terminated.finished_at


def _condition_texts(conditions: list[Condition] | None) -> Iterator[str | None]:
    for condition in conditions or ():
        yield condition.last_transition_time
        yield condition.last_heartbeat_time


CLOCK_OFFSETS = "clockOffsets"  # key of the meta entry: ClockOffset by source


class ClockOffset(Struct, frozen=True):
    """``seconds`` ahead of the run's clock, with an uncertainty of ``within`` seconds."""

    seconds: float
    within: float


class ClockOffsetBounds:
    """Intersection of the readings of one clock, each a minimum and a maximum of its offset.

    A reading that is disjoint from the intersection means that one of the clocks was set: it starts a new one.
    """

    def __init__(self) -> None:
        self._low, self._high = float("-inf"), float("inf")

    def add(self, low: float, high: float) -> None:
        if low > self._high or high < self._low:
            self._low, self._high = low, high
        self._low, self._high = max(low, self._low), min(high, self._high)

    def offset(self) -> ClockOffset | None:
        """The estimate, None before the first reading."""
        if self._low == float("-inf"):
            return None
        return ClockOffset(round((self._low + self._high) / 2, 3), round((self._high - self._low) / 2, 3))
