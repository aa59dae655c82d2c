"""Affinity between pods in pod specs: validation, and the keys of labels that the API server merges into selectors."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.lab.objects import Object

_KINDS = ("podAffinity", "podAntiAffinity")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_KEYS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def affinity_problems(spec: Object) -> Iterator[str]:
    """What is wrong with the affinities of a pod spec to other pods. validatePodAffinityTerm."""
    for where, weight, term in _terms(spec):
        if weight is not None and weight not in range(1, 101):
            yield f"{where}.weight: Invalid value: {weight}: must be in the range 1-100"
        if not term.get("topologyKey"):
            yield f"{where}.topologyKey: Required value: can not be empty"
        if term.get("labelSelector") is None and any(term.get(key) for key in _KEYS):
            yield f"{where}.labelSelector: Required value: must be set with matchLabelKeys or mismatchLabelKeys"
        for selector in (term.get("labelSelector"), term.get("namespaceSelector")):
            for item in (selector or {}).get("matchExpressions") or []:
                if item.get("operator") not in _OPERATORS:
                    yield f"{where}: {item.get('operator')!r} is not a valid label selector operator"


def merge_label_keys(spec: Object, labels: dict[str, str]) -> Object:
    """The spec with matchLabelKeys and mismatchLabelKeys as expressions of the selectors, for a pod with these labels.

    pkg/registry/core/pod/strategy.go applyMatchLabelKeysAndMismatchLabelKeys
    """
    affinity = spec.get("affinity") or {}
    if not any(term.get(key) for _, _, term in _terms(spec) for key in _KEYS):
        return spec
    merged = {kind: {**rules} for kind, rules in affinity.items() if rules}
    for kind in _KINDS:
        rules = merged.get(kind) or {}
        if terms := rules.get(_REQUIRED):
            rules[_REQUIRED] = [_merged(term, labels) for term in terms]
        if items := rules.get(_PREFERRED):
            rules[_PREFERRED] = [
                {**item, "podAffinityTerm": _merged(item["podAffinityTerm"], labels)} for item in items
            ]
    return {**spec, "affinity": merged}


def _merged(term: Object, labels: dict[str, str]) -> Object:
    expressions = [
        {"key": name, "operator": operator, "values": [labels[name]]}
        for key, operator in _KEYS.items()
        for name in term.get(key) or []
        if name in labels
    ]
    selector = term.get("labelSelector")
    if selector is None or not expressions:
        return term
    all_expressions = [*(selector.get("matchExpressions") or []), *expressions]
    return {**term, "labelSelector": {**selector, "matchExpressions": all_expressions}}


def _terms(spec: Object) -> Iterator[tuple[str, int | None, Object]]:
    """Each term with its field, and its weight if it is preferred."""
    for kind in _KINDS:
        rules = (spec.get("affinity") or {}).get(kind) or {}
        for index, term in enumerate(rules.get(_REQUIRED) or []):
            yield f"spec.affinity.{kind}.{_REQUIRED}[{index}]", None, term
        for index, item in enumerate(rules.get(_PREFERRED) or []):
            where = f"spec.affinity.{kind}.{_PREFERRED}[{index}]"
            yield where, item.get("weight") or 0, item.get("podAffinityTerm") or {}
