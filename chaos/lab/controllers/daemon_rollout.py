"""Rolling update of daemon pods: pure. pkg/controller/daemon/update.go rollingUpdate, without surge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil

from chaos.lab.controllers.revisions import revision_of
from chaos.lab.objects.accessors import Object, is_deleting


def max_unavailable(owner: Object, desired: int) -> int:
    """Number of pods for maxUnavailable of ``desired`` pods; percentages round up."""
    value: int | str = owner["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
    return value if isinstance(value, int) else ceil(int(value.removesuffix("%")) * desired / 100)


def pods_to_replace(
    nodes: Iterable[list[Object]], revision: str, limit: int, is_available: Callable[[Object], bool]
) -> list[Object]:
    """Pods to delete: old unavailable ones, and other old ones up to ``limit`` unavailable nodes."""
    unavailable, unhealthy, candidates = 0, [], []
    for pods in nodes:
        active = [pod for pod in pods if not is_deleting(pod)]
        if len(active) != 1:
            unavailable += 1  # the sync of the node creates or deletes pods
        elif revision_of(active[0]) == revision:
            unavailable += not is_available(active[0])
        elif not is_available(active[0]):
            unhealthy.append(active[0])
        elif unavailable < limit:
            candidates.append(active[0])
    return [*unhealthy, *candidates[: max(0, limit - unavailable)]]
