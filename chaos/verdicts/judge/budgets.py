"""Pods that a PodDisruptionBudget selects, and which of them are healthy (facts 8.2)."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.core.kube import LabelSelector, Pod, Requirement, pod_condition


def selects(selector: LabelSelector | None, pod: Pod) -> bool:
    """Whether the selector selects the pod. As in policy/v1, None selects nothing and an empty selector every pod."""
    return selector is not None and matches(selector, pod.metadata.labels or {})


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether the labels match the selector, like metav1.LabelSelectorAsSelector."""
    equal = all(labels.get(key) == value for key, value in (selector.match_labels or {}).items())
    return equal and all(_meets(labels, requirement) for requirement in selector.match_expressions or ())


def _meets(labels: Mapping[str, str], requirement: Requirement) -> bool:
    exists, values = requirement.key in labels, requirement.values or ()
    if requirement.operator == "Exists":
        return exists
    if requirement.operator == "DoesNotExist":
        return not exists
    is_listed = exists and labels[requirement.key] in values
    return is_listed if requirement.operator == "In" else not is_listed


def is_healthy(pod: Pod) -> bool:
    """Whether the pod is Ready and not being deleted."""
    ready = pod_condition(pod, "Ready")
    return pod.metadata.deletion_timestamp is None and ready is not None and ready.status == "True"
