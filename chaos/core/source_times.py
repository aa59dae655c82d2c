"""Times that the writers of an object put into it: a version is not older than the newest of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

from chaos.core.kube import Event, Job, Lease, Node, Pod
from chaos.core.kube.meta import Condition

_SAVED = 50_000  # parsed timestamps: most of an object are those of its version before


@lru_cache(_SAVED)
def source_time(text: str | None) -> float | None:
    """Parse a timestamp of an object (RFC 3339, mostly whole seconds) to epoch seconds; None if missing or invalid."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def newest_time(obj: Any, until: float) -> float:
    """The newest time in the object that is not after ``until``, by the clock of its writer; -inf without one."""
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
