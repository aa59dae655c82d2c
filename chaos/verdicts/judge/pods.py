"""Accessors of pods: node, owner, disruption, end and tolerations."""

from __future__ import annotations

import math
from collections.abc import Iterable

from chaos.core.kube import ContainerStatus, Pod, controller_of, is_finished, pod_condition
from chaos.core.timeline import History, Version

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def node_of(pod: Pod) -> str:
    """Name of the node that the pod is bound to, "" without one."""
    return (pod.spec.node_name if pod.spec else None) or ""


def is_ready(pod: Pod) -> bool:
    """Whether the condition Ready is True."""
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def disruption(pod: Pod) -> str:
    """Reason of the DisruptionTarget condition if its status is True, else ""."""
    found = pod_condition(pod, "DisruptionTarget")
    return (found.reason or "") if found and found.status == "True" else ""


def is_owned_by(pod: Pod, kind: str, name: str) -> bool:
    """Whether the controller is ``kind name``; a Deployment owns the pods of its ReplicaSets."""
    owner = controller_of(pod)
    if owner is None:
        return False
    if kind == "Deployment":
        template = (pod.metadata.labels or {}).get("pod-template-hash")
        return owner.kind == "ReplicaSet" and bool(template) and owner.name == f"{name}-{template}"
    return owner.kind == kind and owner.name == name


def finished_versions(history: Iterable[Version[Pod]]) -> dict[int, Version[Pod]]:
    """First finished version, by sequence number of each version from it on.

    That version has the reason of the end: taint eviction, for one, overwrites DisruptionTarget of a finished pod just
    before it deletes the pod.
    """
    first: Version[Pod] | None = None
    result = {}
    for version in history:
        if first is None and not version.final_state_unknown and is_finished(version.object):
            first = version
        if first is not None:
            result[version.seq] = first
    return result


def pod_facts(pod: Pod) -> dict[str, float | None]:
    """Facts of one pod for bounds; an endless toleration is infinite, a missing one 0."""
    grace = pod.spec.termination_grace_period_seconds if pod.spec else None
    return {
        "pod.terminationGracePeriodSeconds": None if grace is None else float(grace),
        "toleration(not-ready)": toleration(pod, NOT_READY),
        "toleration(unreachable)": toleration(pod, UNREACHABLE),
    }


def toleration(pod: Pod, taint: str) -> float | None:
    """Seconds for which ``taint:NoExecute`` is tolerated: the minimum of the matching tolerations.

    Like GetMinTolerationTime of pkg/controller/tainteviction. None if the tolerations are unknown.
    """
    if pod.spec is None:
        return None
    seconds: float | None = None
    for entry in pod.spec.tolerations or ():
        same_key = entry.key == taint or (not entry.key and entry.operator == "Exists")
        # The two taints have no value, so an Equal toleration matches only an empty one.
        same_value = entry.operator == "Exists" or not entry.value
        if entry.effect in (None, "", "NoExecute") and same_key and same_value:
            own = math.inf if entry.toleration_seconds is None else float(max(0, entry.toleration_seconds))
            seconds = own if seconds is None else min(seconds, own)
    return 0.0 if seconds is None else seconds


def pod_at(history: History[Pod], t: float) -> Pod | None:
    """State of the pod at ``t``; None if the pod did not exist then."""
    version = history.at(t)
    return None if version is None or version.is_deleted else version.object


def container_statuses(pod: Pod) -> list[ContainerStatus]:
    """Statuses of the containers, without init containers."""
    return (pod.status.container_statuses if pod.status else None) or []
