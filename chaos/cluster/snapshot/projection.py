"""Projection of an object on its allowed fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from chaos.cluster.snapshot.trees import Leaf, Tree

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
    """The tree with functions for leaves, None for those that are dropped."""
    return {
        key: _compile(sub, convert) if isinstance(sub, dict) else None if sub is Leaf.DROP else convert[sub]
        for key, sub in tree.items()
    }


def plain_conversions() -> dict[Leaf, Convert]:
    """Conversions that only check types, and drop all but the allowed annotations."""
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
