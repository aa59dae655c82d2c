"""Allowed fields of a kubelet's configuration, and the facts that are read on a host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chaos.cluster.snapshot.trees import KEEP, Leaf, Tree, fields

_THRESHOLDS: Tree = fields(
    KEEP,
    "memory.available nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree containerfs.available "
    "containerfs.inodesFree pid.available allocatableMemory.available",
)
# k8s.io/kubelet/config/v1beta1/types.go. Everything else is left out, as it names addresses, files and users.
KUBELET: Tree = {
    **fields(KEEP, "shutdownGracePeriod shutdownGracePeriodCriticalPods nodeLeaseDurationSeconds failSwapOn maxPods"),
    **fields(KEEP, "nodeStatusUpdateFrequency nodeStatusReportFrequency runtimeRequestTimeout serializeImagePulls"),
    **fields(KEEP, "maxParallelImagePulls evictionPressureTransitionPeriod evictionMaxPodGracePeriod"),
    "shutdownGracePeriodByPodPriority": fields(KEEP, "priority shutdownGracePeriodSeconds"),
    **dict.fromkeys(("evictionHard", "evictionSoft", "evictionSoftGracePeriod"), _THRESHOLDS),
    "registerWithTaints": {"key": Leaf.KEY, "value": Leaf.NAME, "effect": KEEP},
    "crashLoopBackOff": fields(KEEP, "maxContainerRestartPeriod"),
}


def kubelet_service(command_line: Any) -> str:
    """``nssm`` or ``service``: whether Windows notifies the kubelet itself. Nothing else of it is stored."""
    return "nssm" if "nssm" in str(command_line).lower() else "service"


# By system: key in the snapshot, fact of the host, and what of its value is stored.
FACTS: Mapping[str, tuple[str, str, Callable[[Any], Any]]] = {
    "linux": ("systemd", "systemd-version", int),
    "windows": ("kubeletService", "kubelet-binary", kubelet_service),
}
