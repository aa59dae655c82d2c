"""What the status of a helper pod says: whether commands can be run in it, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.core.api_fact import field

# What does not get better by itself: pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime/kuberuntime_container.go.
_HOPELESS = frozenset({"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"})
Pod = Mapping[str, Any]


def is_ready(pod: Pod) -> bool:
    """Whether its container runs."""
    conditions = field(pod, "/status/conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def is_finished(pod: Pod) -> bool:
    """Whether all its containers have ended for good."""
    return field(pod, "/status/phase") in ("Succeeded", "Failed")


def is_over(pod: Pod) -> bool:
    """Whether it has ended for good, or is about to."""
    return is_finished(pod) or bool(field(pod, "/metadata/deletionTimestamp"))


def why_not_ready(pod: Pod) -> str:
    """The reasons that its status gives."""
    return "; ".join(_reasons(pod)) or f"its phase is {field(pod, '/status/phase') or 'unknown'}"


def is_hopeless(pod: Pod) -> bool:
    """Whether it will not become Ready."""
    return is_over(pod) or any(waits.get("reason") in _HOPELESS for waits in _waiting(pod))


def _reasons(pod: Pod) -> Iterator[str]:
    status = field(pod, "/status") or {}
    for each in (status, *_waiting(pod)):
        if text := ": ".join(filter(None, (str(each.get("reason") or ""), str(each.get("message") or "")))):
            yield text


def _waiting(pod: Pod) -> Iterator[Mapping[str, Any]]:
    for container in field(pod, "/status/containerStatuses") or ():
        if waits := (container.get("state") or {}).get("waiting"):
            yield waits
