"""What a PodDisruptionBudget selects, and how many of its pods are healthy (facts 8.2)."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.model.kube import LabelSelector, Pod, Requirement, pod_condition


def selects(selector: LabelSelector | None, pod: Pod) -> bool:
    """As policy/v1: no selector selects nothing, an empty one every pod of the namespace."""
    return selector is not None and matches(selector, pod.metadata.labels or {})


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """As metav1.LabelSelectorAsSelector."""
    same = all(labels.get(key) == value for key, value in (selector.match_labels or {}).items())
    return same and all(_meets(labels, requirement) for requirement in selector.match_expressions or ())


def _meets(labels: Mapping[str, str], requirement: Requirement) -> bool:
    there, values = requirement.key in labels, requirement.values or ()
    if requirement.operator == "Exists":
        return there
    if requirement.operator == "DoesNotExist":
        return not there
    one_of = there and labels[requirement.key] in values
    return one_of if requirement.operator == "In" else not one_of


def is_healthy(pod: Pod) -> bool:
    """Ready and not being deleted."""
    ready = pod_condition(pod, "Ready")
    return pod.metadata.deletion_timestamp is None and ready is not None and ready.status == "True"
