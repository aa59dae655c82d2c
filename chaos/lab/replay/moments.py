"""When recorded changes were made, as far as the recording itself shows: a watch that stalls delivers them late.

Three things tell that a change was made before it came. The API server notes, in whole seconds, when it creates or
deletes an object and when it grants an eviction. A request that was answered was carried out before. And etcd numbers
all writes of a cluster in order (resourceVersion): each was made before those with a greater number. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from chaos.lab.objects.accessors import Object, condition, is_deleting, uid_of
from chaos.lab.replay.recording import Observation, to_epoch
from chaos.lab.replay.requests import Request

_SECOND = 1.0  # metav1.Time has whole seconds
_LATE = 1.0  # seconds; what came sooner was received when it was made
_DATED = ("pods", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "poddisruptionbudgets")
_WITH_TIMES = ("leases", "events")  # of their own
_EVICTED = "EvictionByEvictionAPI"
_Observations = dict[str, list[Observation]]
_Change = tuple[Observation, Object | None]


def at_their_moments(observations: _Observations, requests: Iterable[Request]) -> _Observations:
    """The same observations; those that came late are at the last moment at which they can have been made.

    Leases and Events stay as they came: they have times of their own.
    """
    if not _is_ordered(observations):
        return observations
    limits = _limits(observations, list(requests))
    return {
        plural: items
        if plural in _WITH_TIMES
        else _in_order([_corrected(*change, limits) for change in changes(items)])
        for plural, items in observations.items()
    }


def made_by_server(item: Observation, before: Object | None) -> float | None:
    """The API server's own time, in whole epoch seconds, of a write that shows it; None if it does not.

    ``before`` is the object before. A version that has more in it than this one write shows only when that began.
    """
    obj = item.object
    if before is None:
        created = obj["metadata"].get("creationTimestamp")
        return to_epoch(created) if item.type == "ADDED" and created and _is_untouched(obj) else None
    if is_deleting(obj) and _grace(obj) != _grace(before) and obj.get("status") == before.get("status"):
        if is_deleting(before) and _grace(obj):
            return None  # a shorter grace period counts from the first deletion (rest.BeforeDelete)
        return to_epoch(obj["metadata"]["deletionTimestamp"]) - (_grace(obj) or 0)
    target, old = (condition(it, "DisruptionTarget") or {} for it in (obj, before))
    is_evicted = target.get("reason") == _EVICTED != old.get("reason") and not is_deleting(obj)
    return to_epoch(target["lastTransitionTime"]) if is_evicted and _is_only_condition(obj, before) else None


def changes(items: list[Observation]) -> Iterator[_Change]:
    """Each observation with the object before; None for a new one."""
    before: dict[str, Object] = {}
    for item in items:
        yield item, before.get(uid_of(item.object))
        before[uid_of(item.object)] = item.object


def _is_ordered(observations: _Observations) -> bool:
    """Whether resourceVersions grow in each watch, as they do not across a restored etcd."""
    for items in observations.values():
        versions = [_version(item, before) for item, before in changes(items) if item.type != "LIST"]
        if any(after < before for before, after in pairwise(filter(None, versions))):
            return False
    return True


def _limits(observations: _Observations, requests: list[Request]) -> dict[int, float]:
    """The last moment at which each resourceVersion can have been written."""
    offset = _clock_offset(observations)
    bounds: dict[int, float] = {}
    for plural, items in observations.items():
        for item, before in changes(items):
            version, limit = _version(item, before), item.t
            if offset is not None and plural in _DATED and (own := made_by_server(item, before)) is not None:
                limit = min(limit, own + _SECOND + offset)
            answers = [it.answered for it in requests if it.answered is not None and it.wrote(item, before, plural)]
            bounds[version] = min(bounds.get(version, limit), limit, *answers)
    limits: dict[int, float] = {}
    last = float("inf")
    for version in sorted(bounds, reverse=True):
        last = limits[version] = min(last, bounds[version])
    limits.pop(0, None)
    return limits


def _clock_offset(observations: _Observations) -> float | None:
    """Seconds that the API server's clock is behind: the least delay of what it dated."""
    delays = [
        item.t - own
        for plural in _DATED
        for item, before in changes(observations.get(plural, []))
        if item.type != "LIST" and (own := made_by_server(item, before)) is not None
    ]
    return min(delays, default=None)


def _corrected(item: Observation, before: Object | None, limits: dict[int, float]) -> Observation:
    limit = limits.get(_version(item, before), item.t)
    return replace(item, t=limit) if item.type != "LIST" and item.t - limit > _LATE else item


def _in_order(items: list[Observation]) -> list[Observation]:
    """The same, none later than the next: a watch is in order."""
    result, last = [], float("inf")
    for item in reversed(items):
        if item.type != "LIST":
            last = min(last, item.t)
        result.append(item if item.t <= last else replace(item, t=last))
    return result[::-1]


def _version(item: Observation, before: Object | None) -> int:
    """Number of the write; 0 for an unknown one, as of a deletion that only the next list showed."""
    text, old = (str(it["metadata"].get("resourceVersion", "")) if it else "" for it in (item.object, before))
    return int(text) if text.isdecimal() and not (item.type == "DELETED" and text == old) else 0


def _is_untouched(obj: Object) -> bool:
    """Whether it is as it was created: neither bound nor seen by a controller."""
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    return not status.get("conditions") and not status.get("observedGeneration") and not spec.get("nodeName")


def _grace(obj: Object) -> int | None:
    return obj["metadata"].get("deletionGracePeriodSeconds") if is_deleting(obj) else None


def _is_only_condition(obj: Object, before: Object) -> bool:
    """Whether nothing but conditions of the status changed."""
    new, old = ({**(it.get("status") or {}), "conditions": None} for it in (obj, before))
    return new == old
