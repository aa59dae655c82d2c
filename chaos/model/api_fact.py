"""Facts that the Kubernetes API tells of any object, by name: what checks of actions that only use the API look at."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class PseudoFact(StrEnum):
    """Facts that no host is asked for: of the power control and of the Node object."""

    MACHINE = "machine"  # a PowerState, from the power control
    RESTART_POLICY = "restart-policy"  # from the power control
    BOOT_POSTED = "boot-posted"  # whether the Node object names the boot that the host is in
    NODE_READY = "node-ready"  # whether the Node is Ready


OBJECT, TAINT, CONDITION = "object", "taint/", "condition/"  # prefixes of facts
NAMESPACE = "namespace/"  # prefix: whether a namespace exists


def object_fact(path: str, pointer: str) -> str:
    """A field of the object at an API path, by JSON pointer (RFC 6901); None where either is not there."""
    return f"{OBJECT}{path}#{pointer}"


def taint_fact(key: str, effect: str) -> str:
    """The value of a taint of the node that is asked about, "" if it has none; None where there is no such taint."""
    return f"{TAINT}{key}:{effect}"


def condition_fact(type_: str) -> str:
    """The status of a condition of the node that is asked about; None where it has no such condition."""
    return f"{CONDITION}{type_}"


def unschedulable_fact(node: str) -> str:
    """True while the node is cordoned, else None: the API server leaves false out."""
    return object_fact(node_path(node), "/spec/unschedulable")


def node_path(node: str) -> str:
    """Where a Node object is."""
    return f"/api/v1/nodes/{node}"


def pods_path(node: str) -> str:
    """Where the pods on a node are listed."""
    return f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"


def field(obj: Any, pointer: str) -> Any:
    """What a JSON pointer points to in ``obj``; None where nothing is."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(obj, list):
            obj = obj[int(name)] if name.isdigit() and int(name) < len(obj) else None
        else:
            obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def taint_value(node: Any, name: str) -> str | None:
    """The value of a node's taint ``KEY:EFFECT``."""
    for taint in field(node, "/spec/taints") or ():
        if f"{taint.get('key')}:{taint.get('effect')}" == name:
            return str(taint.get("value") or "")
    return None


def condition_status(node: Any, type_: str) -> str | None:
    """The status of a node's condition."""
    for condition in field(node, "/status/conditions") or ():
        if condition.get("type") == type_:
            return str(condition.get("status"))
    return None
