"""Kubernetes objects as plain JSON dictionaries: accessors, quantities, node affinity and resource requests of pods."""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any

Object = dict[str, Any]

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
TERMINAL = ("Succeeded", "Failed")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand


def name_of(obj: Object) -> str:
    """Name of the object."""
    return str(obj["metadata"]["name"])


def namespace_of(obj: Object) -> str:
    """Namespace of the object; empty for a cluster-wide object."""
    return str(obj["metadata"].get("namespace", ""))


def uid_of(obj: Object) -> str:
    """UID of the object."""
    return str(obj["metadata"]["uid"])


def labels_of(obj: Object) -> dict[str, str]:
    """Labels of the object, empty if it has none."""
    return obj["metadata"].get("labels") or {}


def node_of(pod: Object) -> str:
    """Name of the node that the pod is bound to, empty if unbound."""
    return str(pod["spec"].get("nodeName") or "")


def claims_of(pod: Object) -> list[str]:
    """Names of the PersistentVolumeClaims that the pod uses."""
    volumes = pod["spec"].get("volumes") or []
    return [item["persistentVolumeClaim"]["claimName"] for item in volumes if item.get("persistentVolumeClaim")]


def condition(obj: Object, type_: str) -> Object | None:
    """Condition of this type, None if there is none."""
    for item in obj.get("status", {}).get("conditions") or []:
        if item["type"] == type_:
            found: Object = item
            return found
    return None


def condition_status(obj: Object, type_: str) -> str:
    """Status of the condition: True, False, Unknown; empty if there is no such condition."""
    item = condition(obj, type_)
    return str(item["status"]) if item else ""


def set_condition(obj: Object, new: Object, now: str) -> None:
    """Set a condition, in a new list; lastTransitionTime changes only with the condition's status."""
    status = obj.setdefault("status", {})
    status["conditions"] = conditions = list(status.get("conditions") or ())
    for index, old in enumerate(conditions):
        if old["type"] == new["type"]:
            since = old.get("lastTransitionTime") if old["status"] == new["status"] else None
            conditions[index] = {**new, "lastTransitionTime": since or now}
            return
    conditions.append({**new, "lastTransitionTime": now})


def is_terminal(pod: Object) -> bool:
    """Whether the pod's phase is Succeeded or Failed."""
    return pod.get("status", {}).get("phase") in TERMINAL


def is_deleting(obj: Object) -> bool:
    """Whether deletionTimestamp is set."""
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Object) -> bool:
    """Whether the pod is neither terminal nor deleted. pkg/controller/controller_utils.go IsPodActive."""
    return "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") not in TERMINAL


def is_terminating(pod: Object) -> bool:
    """Whether the pod is deleted but not terminal. pkg/controller/controller_utils.go IsPodTerminating."""
    return not is_terminal(pod) and is_deleting(pod)


def is_ready(pod: Object) -> bool:
    """Whether the pod's Ready condition is True."""
    for item in pod.get("status", {}).get("conditions") or ():
        if item["type"] == "Ready":
            return bool(item["status"] == "True")
    return False


def controller_of(obj: Object) -> Object | None:
    """Owner reference of the object's controller, None if there is none."""
    for reference in obj["metadata"].get("ownerReferences") or []:
        if reference.get("controller"):
            found: Object = reference
            return found
    return None


def owner_reference(api_version: str, kind: str, owner: Object) -> Object:
    """Owner reference to a controller."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def selector_matches(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a LabelSelector selects these labels: None selects nothing, an empty selector everything."""
    if selector is None:
        return False
    match_labels = selector.get("matchLabels") or {}
    if not match_labels.items() <= labels.items():
        return False
    return all(expression_matches(item, labels) for item in selector.get("matchExpressions") or [])


def expression_matches(item: Object, labels: dict[str, str]) -> bool:
    """Whether the labels meet a requirement with In, NotIn, Exists or DoesNotExist. Raises ValueError for others."""
    key, operator, values = item["key"], item["operator"], item.get("values") or []
    if operator == "In":
        return bool(labels.get(key) in values)
    if operator == "NotIn":
        return bool(labels.get(key) not in values)
    if operator in ("Exists", "DoesNotExist"):
        return bool((key in labels) == (operator == "Exists"))
    raise ValueError(f"selector operator {operator} is not simulated")


def taints_of(node: Object) -> list[Object]:
    """Taints of the node, empty if it has none."""
    return node.get("spec", {}).get("taints") or []


def has_taint(node: Object, key: str, effect: str) -> bool:
    """Whether the node has a taint with this key and effect."""
    return any(taint["key"] == key and taint["effect"] == effect for taint in taints_of(node))


def random_suffix(rng: random.Random, length: int = 5) -> str:
    """Random suffix of a generated name."""
    return "".join(rng.choice(_ALPHABET) for _ in range(length))


def generated_name(base: str, rng: random.Random) -> str:
    """Name for a generateName. k8s.io/apiserver/pkg/storage/names."""
    return base[:58] + random_suffix(rng)


def template_hash(template: Object) -> str:
    """Safe-encoded FNV-1a of the template: in the format of pod-template-hash, not the value of a real cluster."""
    return _hash(json.dumps(template, sort_keys=True))


@lru_cache(maxsize=1024)
def _hash(text: str) -> str:
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_ALPHABET[int(digit)] if digit.isdigit() else digit for digit in str(value))


_PATTERN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)", re.ASCII)
_FACTORS: dict[str | None, Fraction] = {None: Fraction(1), "m": Fraction(1, 1000)}
_FACTORS |= {unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", start=1)}
_FACTORS |= {f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", start=1)}


@lru_cache(maxsize=4096, typed=True)
def parse_quantity(text: str | int | float) -> Fraction:
    """Exact value of a quantity or JSON number. Raises ValueError."""
    found = _PATTERN.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, exponent, unit = found.groups()
    return Fraction(f"{number}{exponent or ''}") * _FACTORS[unit]


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
