"""Replica counts in a Deployment's rolling update: pure. pkg/controller/deployment/rolling.go and util."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from chaos.lab.objects.accessors import Object, name_of


@dataclass(frozen=True, slots=True)
class Limits:
    """``surge``: allowed pods above ``replicas``; ``unavailable``: allowed available pods below ``replicas``."""

    replicas: int
    surge: int
    unavailable: int


def limits_of(deployment: Object) -> Limits:
    """Limits of a Deployment: maxSurge rounds up, maxUnavailable down; not both are 0. Recreate allows neither."""
    spec = deployment["spec"]
    replicas: int = spec["replicas"]
    rolling = (spec.get("strategy") or {}).get("rollingUpdate")
    if rolling is None:
        return Limits(replicas, 0, 0)
    surge = _amount(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = _amount(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    if surge == unavailable == 0:
        unavailable = 1
    return Limits(replicas, surge, min(unavailable, replicas))


def new_replicas(limits: Limits, new: int, total: int) -> int:
    """Replicas of the new set, which has ``new`` of the ``total`` of all sets. NewRSNewReplicas."""
    if new >= limits.replicas:
        return limits.replicas
    room = limits.replicas + limits.surge - total
    return new + max(0, min(room, limits.replicas - new))


def old_replicas(limits: Limits, new: Object, old: list[Object]) -> dict[str, int]:
    """Replicas of old sets to scale down, by name; unhealthy pods and oldest sets first. reconcileOldReplicaSets."""
    replicas_by_name = {name_of(item): int(item["spec"]["replicas"]) for item in old}
    minimum = limits.replicas - limits.unavailable
    total = new["spec"]["replicas"] + sum(replicas_by_name.values())
    room = total - minimum - (new["spec"]["replicas"] - _available_replicas(new))
    for item in old:
        unhealthy = min(replicas_by_name[name_of(item)] - _available_replicas(item), room)
        if unhealthy > 0:
            replicas_by_name[name_of(item)] -= unhealthy
            room -= unhealthy
    spare = min(sum(_available_replicas(item) for item in (new, *old)) - minimum, room)
    for item in old:
        down = min(replicas_by_name[name_of(item)], spare)
        if down > 0:
            replicas_by_name[name_of(item)] -= down
            spare -= down
    return replicas_by_name


def _available_replicas(item: Object) -> int:
    return int(item["status"].get("availableReplicas", 0))


def _amount(value: int | str, total: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * total / 100
    return ceil(exact) if up else floor(exact)
