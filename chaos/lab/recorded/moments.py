"""When recorded changes were made, as far as the recording itself shows: a watch that stalls delivers them late.

Three things show that a change was made before it came. The API server notes, in whole seconds, when it creates or
deletes an object and when it grants an eviction. A request that was answered was carried out before. And etcd numbers
all writes in order (resourceVersion): each was made before those with a greater number; but Events, and Leases, may
have an etcd of their own (--etcd-servers-overrides). Only what came in or just after a stall is moved: else it came
when it was made, and clocks are set, or those of several API servers differ. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile

from chaos.lab.objects import Object, condition, is_deleting, uid_of
from chaos.lab.recorded.recording import Observation, ReplayError, Request, Stall, to_epoch

_SECOND = 1.0  # metav1.Time has whole seconds
_LATE = 1.0  # seconds; what came sooner was received when it was made
_DATED = ("pods", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "poddisruptionbudgets")
_WITH_TIMES = ("leases", "events")  # of their own
_EVICTED = "EvictionByEvictionAPI"
_Observations = dict[str, list[Observation]]
_Change = tuple[Observation, Object | None]


def at_their_moments(observations: _Observations, requests: Iterable[Request], late: Iterable[Stall]) -> _Observations:
    """The same observations; those that came late are at the last moment at which they can have been made.

    ``late``: stalls, each with the time after it in which requests still took seconds. Leases and Events stay as they
    came: they have times of their own.
    """
    stalls = list(late)
    if not stalls or not _is_ordered(observations):
        return observations
    limits = _limits(observations, list(requests), stalls)
    return {
        plural: items if plural in _WITH_TIMES else _corrected(items, limits, stalls)
        for plural, items in observations.items()
    }


def made_by_server(item: Observation, before: Object | None) -> float | None:
    """The API server's own time, in whole epoch seconds, of a write that shows it; None if it does not.

    ``before`` is the object before. A version that has more in it than this one write shows only when that began.
    """
    obj = item.object
    if before is None:
        created = obj["metadata"].get("creationTimestamp")
        return _to_epoch(created) if item.type == "ADDED" and _is_untouched(obj) else None
    if is_deleting(obj) and _grace(obj) != _grace(before) and obj.get("status") == before.get("status"):
        if is_deleting(before) and _grace(obj):
            return None  # a shorter grace period counts from the first deletion (rest.BeforeDelete)
        ends = _to_epoch(obj["metadata"]["deletionTimestamp"])
        return None if ends is None else ends - (_grace(obj) or 0)
    target, old = (condition(it, "DisruptionTarget") or {} for it in (obj, before))
    is_evicted = target.get("reason") == _EVICTED != old.get("reason") and not is_deleting(obj)
    return _to_epoch(target.get("lastTransitionTime")) if is_evicted and _is_only_condition(obj, before) else None


def changes(items: list[Observation]) -> Iterator[_Change]:
    """Each observation with the object before; None for a new one."""
    before: dict[str, Object] = {}
    for item in items:
        yield item, before.get(uid_of(item.object))
        before[uid_of(item.object)] = item.object


def _is_ordered(observations: _Observations) -> bool:
    """Whether the resourceVersion of each object grows, as it does not across a restored etcd."""
    for items in observations.values():
        for item, before in changes(items):
            if before is not None and 0 < _version(item, before) < _number(before):
                return False
    return True


def _limits(observations: _Observations, requests: list[Request], late: list[Stall]) -> dict[int, float]:
    """The last moment at which each resourceVersion can have been written."""
    offset = _clock_offset(observations)
    bounds: dict[int, float] = {}
    for plural, items in observations.items():
        for item, before in changes(items) if plural not in _WITH_TIMES else ():
            version, limit = _version(item, before), item.t
            stall = _stall_of(item, late)
            if stall and offset is not None and plural in _DATED:
                limit = _dated_limit(item, before, offset, stall)
            answers = [it.answered for it in requests if it.answered is not None and it.wrote(item, before, plural)]
            bounds[version] = min(bounds.get(version, limit), limit, *answers)
    limits: dict[int, float] = {}
    last = float("inf")
    for version in sorted(bounds, reverse=True):
        last = limits[version] = min(last, bounds[version])
    limits.pop(0, None)
    return limits


def _stall_of(item: Observation, late: list[Stall]) -> Stall | None:
    return next((stall for stall in late if stall.begin < item.t <= stall.end), None)


def _dated_limit(item: Observation, before: Object | None, offset: float, stall: Stall) -> float:
    """By the API server's own time; as it came if that is before the stall, as of a clock that was set."""
    own = made_by_server(item, before)
    limit = item.t if own is None else own + _SECOND + offset
    return limit if stall.begin <= limit < item.t else item.t


def _clock_offset(observations: _Observations) -> float | None:
    """Seconds that the API server's clock is behind: the least delay of what it dated."""
    delays = [
        item.t - own
        for plural in _DATED
        for item, before in changes(observations.get(plural, []))
        if item.type != "LIST" and (own := made_by_server(item, before)) is not None
    ]
    return min(delays, default=None)


def _corrected(items: list[Observation], limits: dict[int, float], late: list[Stall]) -> list[Observation]:
    """Changes of one kind at their moments and in the order of these; the first list stays first."""
    versions = [_version(item, before) if item.type != "LIST" else 0 for item, before in changes(items)]
    moments, last = dict[int, float](), float("inf")
    for version, item in sorted(zip(versions, items, strict=True), key=lambda pair: pair[0], reverse=True):
        moments[version] = item.t
        if _stall_of(item, late):
            limit = limits.get(version, item.t)
            last = moments[version] = min(last, limit if item.t - limit > _LATE else item.t)
    moments.pop(0, None)
    moved = [replace(item, t=moments.get(version, item.t)) for version, item in zip(versions, items, strict=True)]
    first = len(list(takewhile(lambda item: item.type == "LIST", items)))
    return items if moved == items else [*moved[:first], *sorted(moved[first:], key=lambda item: item.t)]


def _version(item: Observation, before: Object | None) -> int:
    """Number of the write; 0 for an unknown one, as of a deletion that only the next list showed."""
    number = _number(item.object)
    return 0 if item.type == "DELETED" and before is not None and number == _number(before) else number


def _number(obj: Object) -> int:
    text = str(obj["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdecimal() else 0


def _is_untouched(obj: Object) -> bool:
    """Whether nothing has changed it since it was created: neither bound nor seen by a controller."""
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    return not status.get("conditions") and not status.get("observedGeneration") and not spec.get("nodeName")


def _grace(obj: Object) -> int | None:
    seconds = obj["metadata"].get("deletionGracePeriodSeconds") if is_deleting(obj) else None
    return seconds if isinstance(seconds, int) else None


def _to_epoch(text: str | None) -> float | None:
    """None without a time, and for one that is none: a recording may be anyone's."""
    try:
        return to_epoch(text) if text else None
    except ReplayError:
        return None


def _is_only_condition(obj: Object, before: Object) -> bool:
    """Whether nothing but conditions of the status changed."""
    new, old = ({**(it.get("status") or {}), "conditions": None} for it in (obj, before))
    return new == old
