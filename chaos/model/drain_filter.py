"""Which pods of a node kubectl drain evicts, leaves and refuses to touch. kubectl pkg/drain/filters.go; facts 8.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from chaos.model.api_fact import field
from chaos.model.command import DrainRules

RawPod = dict[str, Any]
_DAEMONSET = "they are managed by a DaemonSet (ignore-daemonsets leaves them alone)"
_ORPHAN = "their DaemonSet does not exist (force deletes them)"
_EMPTYDIR = "they have local storage (delete-emptydir-data deletes it)"
_BARE = "they declare no controller (force deletes them for good)"
_MIRROR = "/metadata/annotations/kubernetes.io~1config.mirror"


class DrainSelection(NamedTuple):
    """``refused``: pods (namespace/name) by the reason; if there are any, nothing is evicted."""

    to_evict: list[RawPod]
    to_skip: list[RawPod]
    refusals: dict[str, list[str]]

    @property
    def refusal_message(self) -> str:
        """What is refused, in words; "" if nothing is."""
        return "; ".join(f"{', '.join(pods)}: {why}" for why, pods in self.refusals.items())


def select_pods(
    pods: Iterable[RawPod], rules: DrainRules, daemonset_exists: Callable[[str, str], bool]
) -> DrainSelection:
    """``daemonset_exists`` is asked by namespace and name."""
    found = DrainSelection([], [], {})
    for pod in pods:
        refusal = _refusal(pod, rules, daemonset_exists)
        if refusal:
            found.refusals.setdefault(refusal, []).append(pod_name(pod))
        elif refusal is None:
            found.to_skip.append(pod)
        else:
            found.to_evict.append(pod)
    return found


def pod_name(pod: RawPod) -> str:
    """``namespace/name``."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def controller(pod: RawPod) -> dict[str, Any] | None:
    """The owner that manages the pod."""
    return next((owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")), None)


def _refusal(pod: RawPod, rules: DrainRules, daemonset_exists: Callable[[str, str], bool]) -> str | None:
    """Why it cannot be evicted, "" if it is, None if it is left alone. The order is kubectl's."""
    finished = field(pod, "/status/phase") in ("Succeeded", "Failed")
    owner = controller(pod)
    if owner and owner.get("kind") == "DaemonSet" and owner.get("apiVersion") == "apps/v1" and not finished:
        if not daemonset_exists(pod["metadata"]["namespace"], owner["name"]):
            return _local_storage_refusal(pod, rules) if rules.force else _ORPHAN
        return None if rules.ignore_daemonsets else _DAEMONSET
    if field(pod, _MIRROR) is not None:
        return None
    if finished:
        return ""
    return _local_storage_refusal(pod, rules) or (_BARE if owner is None and not rules.force else "")


def _local_storage_refusal(pod: RawPod, rules: DrainRules) -> str:
    has = any("emptyDir" in volume for volume in field(pod, "/spec/volumes") or ())
    return _EMPTYDIR if has and not rules.delete_emptydir_data else ""
