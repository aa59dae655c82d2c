"""Small questions asked of, and small edits made to, Kubernetes objects as plain JSON dictionaries."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

Object = dict[str, Any]

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_TERMINAL = ("Succeeded", "Failed")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand


def name_of(obj: Object) -> str:
    """The object's name."""
    return str(obj["metadata"]["name"])


def namespace_of(obj: Object) -> str:
    """The object's namespace; empty for one that is cluster-wide."""
    return str(obj["metadata"].get("namespace", ""))


def uid_of(obj: Object) -> str:
    """The object's uid."""
    return str(obj["metadata"]["uid"])


def labels_of(obj: Object) -> dict[str, str]:
    """The object's labels; maybe none."""
    return obj["metadata"].get("labels") or {}


def node_of(pod: Object) -> str:
    """The node that a pod is bound to, or an empty string."""
    return str(pod["spec"].get("nodeName") or "")


def claims_of(pod: Object) -> list[str]:
    """Names of the PersistentVolumeClaims that the pod uses."""
    volumes = pod["spec"].get("volumes") or []
    return [item["persistentVolumeClaim"]["claimName"] for item in volumes if item.get("persistentVolumeClaim")]


def condition(obj: Object, type_: str) -> Object | None:
    """The condition of that type, if any."""
    for item in obj.get("status", {}).get("conditions") or []:
        if item["type"] == type_:
            found: Object = item
            return found
    return None


def condition_status(obj: Object, type_: str) -> str:
    """True, False, Unknown, or an empty string if there is no such condition."""
    item = condition(obj, type_)
    return str(item["status"]) if item else ""


def set_condition(obj: Object, new: Object, now: str) -> None:
    """Put a condition into a new list in the status; its lastTransitionTime moves only when its status does."""
    status = obj.setdefault("status", {})
    status["conditions"] = conditions = list(status.get("conditions") or ())
    for index, old in enumerate(conditions):
        if old["type"] == new["type"]:
            changed = old["status"] != new["status"]
            conditions[index] = {**new, "lastTransitionTime": now if changed else old["lastTransitionTime"]}
            return
    conditions.append({**new, "lastTransitionTime": now})


def is_terminal(pod: Object) -> bool:
    """Whether the pod's phase is Succeeded or Failed."""
    return pod.get("status", {}).get("phase") in _TERMINAL


def is_deleting(obj: Object) -> bool:
    """Whether deletionTimestamp is set."""
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Object) -> bool:
    """As pkg/controller/controller_utils.go IsPodActive."""
    return "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") not in _TERMINAL


def is_terminating(pod: Object) -> bool:
    """As pkg/controller/controller_utils.go IsPodTerminating."""
    return not is_terminal(pod) and is_deleting(pod)


def is_ready(pod: Object) -> bool:
    """Whether the pod's Ready condition is True."""
    for item in pod.get("status", {}).get("conditions") or ():
        if item["type"] == "Ready":
            return bool(item["status"] == "True")
    return False


def controller_of(obj: Object) -> Object | None:
    """The owner reference that controls the object."""
    for reference in obj["metadata"].get("ownerReferences") or []:
        if reference.get("controller"):
            found: Object = reference
            return found
    return None


def owner_reference(api_version: str, kind: str, owner: Object) -> Object:
    """A controlling reference to the owner."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def selector_matches(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a LabelSelector selects these labels; none selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if not wanted.items() <= labels.items():
        return False
    return all(expression_matches(item, labels) for item in selector.get("matchExpressions") or [])


def expression_matches(item: Object, labels: dict[str, str]) -> bool:
    """One requirement of a selector: In, NotIn, Exists, DoesNotExist. Raises ValueError for another operator."""
    key, operator, values = item["key"], item["operator"], item.get("values") or []
    if operator == "In":
        return bool(labels.get(key) in values)
    if operator == "NotIn":
        return bool(labels.get(key) not in values)
    if operator in ("Exists", "DoesNotExist"):
        return bool((key in labels) == (operator == "Exists"))
    raise ValueError(f"selector operator {operator} is not simulated")


def tolerates(toleration: Object, taint: Object) -> bool:
    """As k8s.io/component-helpers ToleratesTaint with the operators Equal and Exists."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key") and toleration.get("value", "") == taint.get("value", ""))


def untolerated(pod: Object, taints: Iterable[Object], effects: tuple[str, ...]) -> list[Object]:
    """The taints of these effects that the pod does not tolerate."""
    tolerations = pod["spec"].get("tolerations") or []
    return [t for t in taints if t["effect"] in effects and not any(tolerates(item, t) for item in tolerations)]


def taints_of(node: Object) -> list[Object]:
    """The node's taints; maybe none."""
    return node.get("spec", {}).get("taints") or []


def has_taint(node: Object, key: str, effect: str) -> bool:
    """Whether the node has a taint of this key and effect."""
    return any(taint["key"] == key and taint["effect"] == effect for taint in taints_of(node))


def random_suffix(rng: random.Random, length: int = 5) -> str:
    """As the API server ends generated names."""
    return "".join(rng.choice(_ALPHABET) for _ in range(length))


def generated_name(base: str, rng: random.Random) -> str:
    """A name for a generateName. k8s.io/apiserver/pkg/storage/names."""
    return base[:58] + random_suffix(rng)


def template_hash(template: Object) -> str:
    """A safe-encoded FNV-1a of the template: the shape of pod-template-hash, not its value in a real cluster."""
    return _hash(json.dumps(template, sort_keys=True))


@lru_cache(maxsize=1024)
def _hash(text: str) -> str:
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_ALPHABET[int(digit)] if digit.isdigit() else digit for digit in str(value))
