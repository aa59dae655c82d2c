"""Node selectors and node affinity of a pod: pure. kube-scheduler's plugin NodeAffinity."""

from __future__ import annotations

from chaos.lab.objects.accessors import Object, expression_matches, labels_of, name_of


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
