"""Pods of a node that kubectl drain evicts, skips and refuses: kubectl pkg/drain/filters.go, facts 8.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from chaos.core.api_fact import field
from chaos.core.command import DrainRules
from chaos.core.labels import HELPER_LABEL

RawPod = dict[str, Any]
_DAEMONSET = "they are managed by a DaemonSet (ignore-daemonsets skips them)"
_ORPHAN = "their DaemonSet does not exist (force deletes them)"
_EMPTYDIR = "they have local storage (delete-emptydir-data deletes it)"
_BARE = "they declare no controller (force deletes them for good)"
_MIRROR = "/metadata/annotations/kubernetes.io~1config.mirror"


class DrainSelection(NamedTuple):
    """``refusals``: pods (namespace/name) by reason; with any refusal, nothing is evicted."""

    to_evict: list[RawPod]
    to_skip: list[RawPod]
    refusals: dict[str, list[str]]

    @property
    def refusal_message(self) -> str:
        """All refusals as one text, "" if there are none."""
        return "; ".join(f"{', '.join(pods)}: {why}" for why, pods in self.refusals.items())


def select_pods(
    pods: Iterable[RawPod], rules: DrainRules, daemonset_exists: Callable[[str, str], bool]
) -> DrainSelection:
    """Sort the pods by what drain does to them. ``daemonset_exists`` takes namespace and name."""
    selection = DrainSelection([], [], {})
    for pod in pods:
        refusal = _refusal(pod, rules, daemonset_exists)
        if refusal:
            selection.refusals.setdefault(refusal, []).append(pod_name(pod))
        elif refusal is None:
            selection.to_skip.append(pod)
        else:
            selection.to_evict.append(pod)
    return selection


def pod_name(pod: RawPod) -> str:
    """``namespace/name``."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def controller(pod: RawPod) -> dict[str, Any] | None:
    """The owner reference of the pod's controller, or None."""
    return next((owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")), None)


def _refusal(pod: RawPod, rules: DrainRules, daemonset_exists: Callable[[str, str], bool]) -> str | None:
    """Why drain refuses the pod, "" if drain evicts it, None if drain skips it. The order is kubectl's."""
    finished = field(pod, "/status/phase") in ("Succeeded", "Failed")
    owner = controller(pod)
    if owner and owner.get("kind") == "DaemonSet" and owner.get("apiVersion") == "apps/v1" and not finished:
        if not daemonset_exists(pod["metadata"]["namespace"], owner["name"]):
            return _local_storage_refusal(pod, rules) if rules.force else _ORPHAN
        return None if rules.ignore_daemonsets else _DAEMONSET
    if field(pod, _MIRROR) is not None or HELPER_LABEL in (pod["metadata"].get("labels") or {}):
        return None  # a helper pod is nodefall's own: what is drained is reached through it
    if finished:
        return ""
    return _local_storage_refusal(pod, rules) or (_BARE if owner is None and not rules.force else "")


def _local_storage_refusal(pod: RawPod, rules: DrainRules) -> str:
    has = any("emptyDir" in volume for volume in field(pod, "/spec/volumes") or ())
    return _EMPTYDIR if has and not rules.delete_emptydir_data else ""
