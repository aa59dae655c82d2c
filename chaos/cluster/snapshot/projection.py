"""Projection of an object on its allowed fields: trees of them, and the parts that several kinds share.

A tree maps each field to a subtree, for an object or a list of objects, or to a leaf. DROP is a field that is known and
left out; a field that is in no tree is left out and counted as unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

Convert = Callable[[Any], Any]  # value of a leaf to what is written; OMIT leaves the field out
OMIT: Any = object()
_SCALARS = (str, int, float, bool)
# Annotations that decide what the cluster does; others hold anything, as manifests with their environment.
_MIRROR = "kubernetes.io/config.mirror"
_ANNOTATIONS = frozenset(
    {
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "controller.kubernetes.io/pod-deletion-cost",
        "deployment.kubernetes.io/revision",
        "deprecated.daemonset.template.generation",
        "kubernetes.io/config.source",
        *(f"lab.nodefall.dev/{name}" for name in ("starts-after", "ready-after", "runs-for", "stops-after")),
        *(f"lab.nodefall.dev/{name}" for name in ("exit-code", "ignores-sigterm")),
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "pv.kubernetes.io/provisioned-by",
        "storageclass.kubernetes.io/is-default-class",
        "volume.kubernetes.io/selected-node",
        "volume.kubernetes.io/storage-provisioner",
    }
)


class Leaf(Enum):
    """The meaning of a field's value, which decides how it is anonymized."""

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


class Projector:
    """Copies the allowed fields of objects of one kind; ``unknown`` counts fields that are in no tree, by path.

    ``convert``: by leaf. Values that have not the type of their leaf are left out.
    """

    def __init__(self, plural: str, tree: Tree, convert: Mapping[Leaf, Convert]) -> None:
        self._plural = plural
        self._tree = _compile(tree, convert)
        self.unknown: Counter[str] = Counter()

    def project(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """The allowed fields of ``obj``."""
        return self._object(obj, self._tree, self._plural)

    def _object(self, value: Mapping[str, Any], tree: dict[str, Any], path: str) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            sub = tree.get(key, OMIT)
            if sub is OMIT:
                self.unknown[f"{path}.{key}"] += 1
            elif sub is None or item is None:
                continue
            elif type(sub) is not dict:
                if (converted := sub(item)) is not OMIT:
                    result[key] = converted
            elif type(item) is dict:
                result[key] = self._object(item, sub, f"{path}.{key}")
            elif type(item) is list:
                result[key] = [self._object(each, sub, f"{path}.{key}") for each in item if type(each) is dict]
        return result


def _compile(tree: Tree, convert: Mapping[Leaf, Convert]) -> dict[str, Any]:
    """The tree with functions for leaves; None for leaves that are dropped."""
    return {
        key: _compile(sub, convert) if isinstance(sub, dict) else None if sub is Leaf.DROP else convert[sub]
        for key, sub in tree.items()
    }


def plain_conversions() -> dict[Leaf, Convert]:
    """Conversions that only check types and keep only the allowed annotations."""
    scalars = (Leaf.NAME, Leaf.WORD, Leaf.UID, Leaf.IMAGE, Leaf.KIND, Leaf.KEY, Leaf.SYSTEM)
    lists = (Leaf.NAMES, Leaf.KEYS, Leaf.VALUES, Leaf.FINALIZERS)
    return {
        **dict.fromkeys(scalars, scalar),
        **dict.fromkeys(lists, scalar_list),
        Leaf.KEEP: lambda value: scalar_list(value) if type(value) is list else scalar(value),
        Leaf.PRESENT: lambda _: {},
        Leaf.LABELS: scalar_map,
        Leaf.AMOUNTS: scalar_map,
        Leaf.ANNOTATIONS: lambda value: allowed_annotations(value) or OMIT,
        Leaf.CLUSTER_IP: lambda value: value if value == "None" else OMIT,
    }


def scalar(value: Any) -> Any:
    """A string, number or boolean."""
    return value if isinstance(value, _SCALARS) else OMIT


def scalar_list(value: Any) -> Any:
    """A list of strings, numbers and booleans."""
    return [item for item in value if isinstance(item, _SCALARS)] if isinstance(value, list) else OMIT


def scalar_map(value: Any) -> Any:
    """A map to strings, numbers and booleans."""
    if not isinstance(value, dict):
        return OMIT
    return {key: item for key, item in value.items() if isinstance(item, _SCALARS)}


def allowed_annotations(value: Any) -> dict[str, str]:
    """The allowed annotations; of the mirror of a static pod only that it is one, as its value is a hash."""
    if not isinstance(value, dict):
        return {}
    found = {key: str(item) for key, item in value.items() if item is not None and key in _ANNOTATIONS}
    return found | {_MIRROR: "mirror"} if _MIRROR in value else found
