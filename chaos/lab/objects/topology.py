"""Labels that pods take over from their nodes. plugin/pkg/admission/podtopologylabels, on by default since v1.35."""

from __future__ import annotations

from functools import lru_cache

from chaos.lab.objects.accessors import Object, labels_of
from chaos.lab.spec import LabSpec

_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_Items = tuple[tuple[str, str], ...]


def add_topology_labels(pod: Object, node: Object | None, spec: LabSpec, *, is_binding: bool) -> None:
    """Add region and zone of its node to a pod that is bound, or created with a node, whose own labels then stay."""
    labels = labels_of(node) if node else {}
    found = tuple((key, labels[key]) for key in _LABELS if key in labels)
    if found and spec.has_feature("topology-labels"):
        own = tuple(labels_of(pod).items())
        merged = _merge(own, found) if is_binding else _merge(found, own)
        pod["metadata"] = {**pod["metadata"], "labels": merged}


@lru_cache(maxsize=4096)
def _merge(first: _Items, second: _Items) -> dict[str, str]:
    """Labels shared by all pods with equal ones; never changed in place."""
    return {**dict(first), **dict(second)}
