"""Trees of allowed fields: what a leaf is, and the parts that several kinds share.

A tree maps each field to a subtree, for an object or a list of objects, or to a leaf. DROP is a field that is known and
left out; a field that is in no tree is left out and counted as unknown.
"""

from __future__ import annotations

from enum import Enum
from typing import Any


class Leaf(Enum):
    """Meaning of a field's value, by which it is anonymized."""

    DROP = "drop"
    KEEP = "keep"  # numbers, times, quantities, words of Kubernetes
    WORD = "word"  # type or reason of a condition or state, which components that are not Kubernetes' make up, too
    PRESENT = "present"  # only that there is something
    NAME = "name"  # of an object, a host, a container, a resource
    NAMES = "names"
    UID = "uid"
    IMAGE = "image"
    KIND = "kind"  # of an owner, and its apiVersion
    KEY = "key"  # of a label or taint
    KEYS = "keys"
    VALUES = "values"  # of labels
    LABELS = "labels"  # keys and values
    ANNOTATIONS = "annotations"  # only those of annotations.py
    AMOUNTS = "amounts"  # quantities by resource
    FINALIZERS = "finalizers"
    CLUSTER_IP = "clusterIP"  # None of a headless Service, no address
    SYSTEM = "system"  # version of an operating system or a component


Tree = dict[str, Any]  # of Tree or Leaf
DROP, KEEP, NAME, PRESENT = Leaf.DROP, Leaf.KEEP, Leaf.NAME, Leaf.PRESENT


def fields(leaf: Leaf, names: str) -> Tree:
    """The same leaf for each of ``names``, which spaces separate."""
    return dict.fromkeys(names.split(), leaf)


OWNER: Tree = {"apiVersion": Leaf.KIND, "kind": Leaf.KIND, "name": NAME, "uid": Leaf.UID, "controller": KEEP} | fields(
    DROP, "blockOwnerDeletion"
)
META: Tree = {
    **fields(NAME, "name namespace generateName"),
    "uid": Leaf.UID,
    **fields(KEEP, "creationTimestamp deletionTimestamp deletionGracePeriodSeconds generation"),
    "labels": Leaf.LABELS,
    "annotations": Leaf.ANNOTATIONS,
    "ownerReferences": OWNER,
    "finalizers": Leaf.FINALIZERS,
    **fields(DROP, "resourceVersion managedFields selfLink"),
}
TEMPLATE_META: Tree = {
    "labels": Leaf.LABELS,
    "annotations": Leaf.ANNOTATIONS,
    "finalizers": Leaf.FINALIZERS,
    **fields(DROP, "name namespace generateName uid creationTimestamp deletionTimestamp generation ownerReferences"),
    **fields(DROP, "deletionGracePeriodSeconds resourceVersion managedFields selfLink"),
}
HEAD: Tree = {"metadata": META, **fields(DROP, "apiVersion kind")}
CONDITIONS: Tree = {
    **fields(Leaf.WORD, "type reason"),
    **fields(KEEP, "status lastTransitionTime"),
    **fields(DROP, "message lastHeartbeatTime lastProbeTime lastUpdateTime observedGeneration"),
}
REQUIREMENT: Tree = {"key": Leaf.KEY, "operator": KEEP, "values": Leaf.VALUES}
NODE_TERM: Tree = {"matchExpressions": REQUIREMENT, "matchFields": REQUIREMENT}
SELECTOR: Tree = {"matchLabels": Leaf.LABELS, "matchExpressions": REQUIREMENT}
RESOURCES: Tree = {"requests": Leaf.AMOUNTS, "limits": Leaf.AMOUNTS, "claims": DROP}
TOLERATION: Tree = {"key": Leaf.KEY, "value": NAME, **fields(KEEP, "operator effect tolerationSeconds")}
REFERENCE: Tree = {
    **fields(NAME, "name namespace"),
    "uid": Leaf.UID,
    "apiVersion": Leaf.KIND,
    "kind": Leaf.KIND,
    **fields(DROP, "fieldPath resourceVersion"),
}


def kind(spec: Tree, status: Tree | None = None, **more: Any) -> Tree:
    """Tree of a kind with spec and status."""
    return HEAD | {"spec": spec} | ({"status": status} if status is not None else {"status": DROP}) | more
