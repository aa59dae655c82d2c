"""Resource requests of pods and allocatable resources of nodes: pure. kube-scheduler's plugin NodeResourcesFit."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from chaos.lab.objects.accessors import Object
from chaos.lab.objects.quantity import parse_quantity

_UNITS = {"cpu": 1000, "memory": 1}  # milli-CPUs per CPU, bytes per byte
_NONE = dict.fromkeys(("pods", *_UNITS), 0)


def requests_of(pod: Object) -> dict[str, int]:
    """Sum of the containers' requests: ``cpu`` in milli-CPUs, ``memory`` in bytes."""
    cpus, memories = [], []
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        cpus.append(str(requests.get("cpu", 0)))
        memories.append(str(requests.get("memory", 0)))
    return {"cpu": _sum(tuple(cpus), _UNITS["cpu"]), "memory": _sum(tuple(memories), _UNITS["memory"])}


def allocatable_pods(node: Object) -> int:
    """Number of pods that the node takes; 0 if its kubelet never posted a status."""
    return int(_allocatable(node)["pods"])


def allocatable_amount(node: Object, resource: str) -> int:
    """Allocatable milli-CPUs or bytes of the node; 0 if its kubelet never posted a status."""
    return _amount(_allocatable(node)[resource], _UNITS[resource])


def _allocatable(node: Object) -> Object:
    found: Object = node["status"].get("allocatable") or _NONE
    return found


@lru_cache(maxsize=4096)
def _sum(quantities: tuple[str, ...], units: int) -> int:
    return ceil(sum(map(parse_quantity, quantities), Fraction(0)) * units)


@lru_cache(maxsize=4096, typed=True)
def _amount(quantity: str | int | float, units: int) -> int:
    return floor(parse_quantity(quantity) * units)
