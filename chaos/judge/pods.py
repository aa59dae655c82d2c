"""Pods as assertions see them: who owns them, how they ended, what they tolerate."""

from __future__ import annotations

import math
from collections.abc import Iterable

from chaos.model.kube import ContainerStatus, Pod, controller_of, is_finished, pod_condition
from chaos.model.timeline import History, Version

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def node_of(pod: Pod) -> str:
    """The node it is bound to, "" if none."""
    return (pod.spec.node_name if pod.spec else None) or ""


def disruption(pod: Pod) -> str:
    """Reason of the DisruptionTarget condition if that is True, else ""."""
    found = pod_condition(pod, "DisruptionTarget")
    return (found.reason or "") if found and found.status == "True" else ""


def is_owned_by(pod: Pod, kind: str, name: str) -> bool:
    """True if the controller is ``kind name``; a Deployment owns through its ReplicaSets."""
    owner = controller_of(pod)
    if owner is None:
        return False
    if kind == "Deployment":
        template = (pod.metadata.labels or {}).get("pod-template-hash")
        return owner.kind == "ReplicaSet" and bool(template) and owner.name == f"{name}-{template}"
    return owner.kind == kind and owner.name == name


def finished_versions(history: Iterable[Version[Pod]]) -> dict[int, Version[Pod]]:
    """For each version (by seq) from the pod's end on, the first finished one: how it ended.

    What cleans finished pods up, as taint eviction, overwrites DisruptionTarget just before the object goes.
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
    """The facts of one pod that bounds may use; an endless toleration is infinite, a missing one 0."""
    grace = pod.spec.termination_grace_period_seconds if pod.spec else None
    return {
        "pod.terminationGracePeriodSeconds": None if grace is None else float(grace),
        "toleration(not-ready)": toleration(pod, NOT_READY),
        "toleration(unreachable)": toleration(pod, UNREACHABLE),
    }


def toleration(pod: Pod, taint: str) -> float | None:
    """Seconds for which ``taint:NoExecute`` is tolerated: the least that any matching toleration gives.

    As pkg/controller/tainteviction GetMinTolerationTime. None if the pod's tolerations were not seen.
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
    """The pod as it was at ``t``; None if it did not exist then, or no more."""
    version = history.at(t)
    return None if version is None or version.is_deleted else version.object


def container_statuses(pod: Pod) -> list[ContainerStatus]:
    """The states of its containers, those that begin it aside."""
    return (pod.status.container_statuses if pod.status else None) or []
