"""What scheduler and kubelets evaluate of a pod in the same way.

Node selectors and node affinity of a pod: pure. kube-scheduler's plugin NodeAffinity.
Resource requests of pods and allocatable resources of nodes: pure. kube-scheduler's plugin NodeResourcesFit.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from chaos.lab.objects import Object, expression_matches, labels_of, name_of, parse_quantity


def matches_node(pod: Object, node: Object) -> bool:
    """Whether nodeSelector and required node affinity match: any term, with all of its expressions and fields."""
    labels = labels_of(node)
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    required = _required_affinity(pod)
    if required is None:
        return True
    fields = {"metadata.name": name_of(node)}
    return any(
        all(expression_matches(item, labels) for item in term.get("matchExpressions") or [])
        and all(expression_matches(item, fields) for item in term.get("matchFields") or [])
        for term in required["nodeSelectorTerms"]
    )


def named_nodes(pod: Object) -> set[str] | None:
    """Names of the only nodes that the pod's affinity can match, as its PreFilter finds them; None for any node."""
    required = _required_affinity(pod)
    if required is None:
        return None
    names: set[str] = set()
    for term in required["nodeSelectorTerms"]:
        fields = [item["values"] for item in term.get("matchFields") or [] if _is_name_requirement(item)]
        if not fields:
            return None
        names.update(fields[0])
    return names


def _required_affinity(pod: Object) -> Object | None:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required: Object | None = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required


def _is_name_requirement(field: Object) -> bool:
    return bool(field["key"] == "metadata.name" and field["operator"] == "In")


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
