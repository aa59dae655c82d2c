"""Names of facts about Kubernetes objects, for checks of actions through the API."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from chaos.core.api_path import quote_segment, resource_path


class PseudoFact(StrEnum):
    """Facts that no command on the host reads, but its connection, its power control or its Node object."""

    MACHINE = "machine"  # a PowerState, from the power control
    STOPPING = "machine-stopping"  # whether the power control has accepted a stop that is not over; False if not shown
    RESTART_POLICY = "restart-policy"  # from the power control
    HOST_KEY = "host-key"  # that the host presents to every connection of the run; the ID of a container
    POWER_IDENTITY = "power-identity"  # PowerIdentity.key, from the power control
    CONNECTION_PEERS = "connection-peers"  # [ClientIP] over WinRM; over SSH a fact that a program reads
    SSH_PEER = "ssh-peer"  # of transport pod the connection of exec; over SSH a fact that a program reads
    WINRM_QUOTAS = "winrm-quotas"  # by name in winrm/config, from the WinRM service; {} over SSH
    ADDRESSES = "machine-addresses"  # that the machine has now, from the power control of a container
    NODE_NAME = "node-name"  # name of the Node object, which may be another than the host's
    BOOT_POSTED = "boot-posted"  # whether the Node object names the boot that the host is in
    NODE_READY = "node-ready"  # whether the Node is Ready
    OWN_CORDON = "cordoned-by-nodefall"  # whether the Node is cordoned, by nodefall or an unknown field manager


_WORDS: dict[str, tuple[Any, str]] = {
    PseudoFact.BOOT_POSTED: (True, "the Node object has the current boot ID"),
    PseudoFact.NODE_READY: (True, "the node is Ready"),
    "preparing-for-shutdown": ("b false", "no shutdown is in progress"),
    "kubelet-state": ("active", "the kubelet is active"),
}


def fact_text(fact: str, value: Any) -> str:
    """``the node is Ready``, or for most facts ``NAME is VALUE``."""
    if fact.startswith(NAMESPACE) and value == "there":
        return f"{fact} still exists"
    if fact == PseudoFact.MACHINE:
        return f"the machine is {value}"
    expected, words = _WORDS.get(fact, (None, ""))
    return words if words and value == expected else f"{fact} is {value}"


OBJECT, TAINT, CONDITION, LABELS = "object", "taint/", "condition/", "labels/"  # prefixes of facts
NAMESPACE = "namespace/"  # prefix: whether a namespace exists


def object_fact(path: str, pointer: str) -> str:
    """Fact: a field of the object at an API path, by JSON pointer (RFC 6901). None without object or field."""
    return f"{OBJECT}{path}#{pointer}"


def taint_fact(key: str, effect: str) -> str:
    """Fact: the value of a taint of the node, "" for a taint without value, None without the taint."""
    return f"{TAINT}{key}:{effect}"


def labels_fact(keys: Iterable[str]) -> str:
    """Fact: the labels of the node with these keys. Other labels may have been added in the meantime."""
    return f"{LABELS}{','.join(keys)}"


def condition_fact(type_: str) -> str:
    """Fact: the status of a condition of the node, None without the condition."""
    return f"{CONDITION}{type_}"


def unschedulable_fact(node: str) -> str:
    """Fact: True while the node is cordoned, else None, as the API server omits false."""
    return object_fact(node_path(node), "/spec/unschedulable")


def node_path(node: str) -> str:
    """API path of a Node."""
    return resource_path("v1", "nodes", name=node)


def pods_path(node: str) -> str:
    """API path of the list of pods on a node."""
    return f"/api/v1/pods?fieldSelector=spec.nodeName%3D{quote_segment(node)}"


def field(obj: Any, pointer: str) -> Any:
    """The value at a JSON pointer in ``obj``, or None."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(obj, list):
            obj = obj[int(name)] if name in map(str, range(len(obj))) else None
        else:
            obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def taint_value(node: Any, name: str) -> str | None:
    """Value of a node's taint ``KEY:EFFECT``, None without the taint."""
    for taint in field(node, "/spec/taints") or ():
        if f"{taint.get('key')}:{taint.get('effect')}" == name:
            return str(taint.get("value") or "")
    return None


def condition_status(node: Any, type_: str) -> str | None:
    """Status of a node's condition, None without the condition."""
    for condition in field(node, "/status/conditions") or ():
        if condition.get("type") == type_:
            return str(condition.get("status"))
    return None
