"""What pods demand beyond their containers: the lab has containers only, so the first one demands it.

Kubernetes sums it up as ``PodRequests`` of k8s.io/component-helpers/resource/helpers.go does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from chaos.lab.objects.accessors import Object, parse_quantity

_UNITS = {"cpu": 1000, "memory": 1}  # milli-CPUs per CPU, bytes per byte


def fold_requests(spec: Object) -> None:
    """Add what init containers, overhead and the pod as a whole demand to the first container, in place.

    Removes overhead and the resources of the pod; init containers stay.
    """
    overhead, whole = spec.pop("overhead", None) or {}, _demanded(spec.pop("resources", None))
    containers = spec.get("containers") or []
    for resource, units in _UNITS.items():
        summed = sum(_amounts(containers, resource), Fraction(0))
        needed = max(summed, _while_starting(spec.get("initContainers") or [], summed, resource))
        if resource in whole:
            needed = max(summed, _amount(whole, resource))
        needed += _amount(overhead, resource)
        if containers and needed > summed:
            _add(containers[0], resource, ceil((needed - summed) * units))


def has_other_requests(spec: Object) -> bool:
    """Whether a container demands more than CPUs and memory."""
    return any(_demanded(item.get("resources")).keys() - _UNITS.keys() for item in spec.get("containers") or [])


def _while_starting(init_containers: Iterable[Object], containers: Fraction, resource: str) -> Fraction:
    """The most that is demanded at a time: sidecars stay, others run one after the other."""
    sidecars = most = Fraction(0)
    for item in init_containers:
        amount = next(_amounts([item], resource))
        if item.get("restartPolicy") == "Always":
            sidecars += amount
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + amount)
    return max(most, containers + sidecars)


def _add(container: Object, resource: str, amount: int) -> None:
    """``amount``: milli-CPUs or bytes."""
    before = ceil(next(_amounts([container], resource)) * _UNITS[resource])
    resources = container.get("resources") or {}
    shown = f"{before + amount}m" if resource == "cpu" else str(before + amount)
    container["resources"] = {**resources, "requests": {**(resources.get("requests") or {}), resource: shown}}


def _amounts(containers: Iterable[Object], resource: str) -> Iterator[Fraction]:
    return (_amount(_demanded(item.get("resources")), resource) for item in containers)


def _demanded(resources: Any) -> dict[str, Any]:
    """Requests, and limits of what has none."""
    found = resources if isinstance(resources, dict) else {}
    return {**(found.get("limits") or {}), **(found.get("requests") or {})}


def _amount(amounts: Mapping[str, Any], resource: str) -> Fraction:
    """0 for what is no quantity: the check of the workload rejects it."""
    try:
        return parse_quantity(amounts.get(resource, 0))
    except ValueError:
        return Fraction(0)
