"""Of components, what a snapshot has: flags of the control plane, a kubelet's configuration, facts read on a host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chaos.cluster.snapshot.projection import KEEP, Leaf, Tree, fields

_MANAGER = (
    "node-monitor-period node-monitor-grace-period node-eviction-rate secondary-node-eviction-rate "
    "large-cluster-size-threshold unhealthy-zone-threshold terminated-pod-gc-threshold disable-force-detach-on-timeout"
)
_SERVER = "default-not-ready-toleration-seconds default-unreachable-toleration-seconds"
FLAGS = {"kube-controller-manager": frozenset(_MANAGER.split()), "kube-apiserver": frozenset(_SERVER.split())}
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


def visible_flags(pod: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Component and known flags, in camel case, of a pod of the control plane; None for other pods."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    component = (metadata.get("labels") or {}).get("component")
    if metadata.get("namespace") != "kube-system" or component not in FLAGS:
        return None
    found: dict[str, Any] = {}
    for container in spec.get("containers") or []:
        for argument in [*(container.get("command") or []), *(container.get("args") or [])]:
            name, sign, value = str(argument).removeprefix("--").partition("=")
            if sign and name in FLAGS[component]:
                found[_camel(name)] = _value(value)
    return component, found


def _camel(name: str) -> str:
    first, *others = name.split("-")
    return first + "".join(word.capitalize() for word in others)


def _value(text: str) -> Any:
    """A boolean, a number, or the text of a duration."""
    if text in ("true", "false"):
        return text == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def kubelet_service(command_line: Any) -> str:
    """``nssm`` or ``service``: whether Windows notifies the kubelet itself. Nothing else of it is stored."""
    return "nssm" if "nssm" in str(command_line).lower() else "service"


# By system: key in the snapshot, fact of the host, and what of its value is stored.
FACTS: Mapping[str, tuple[str, str, Callable[[Any], Any]]] = {
    "linux": ("systemd", "systemd-version", int),
    "windows": ("kubeletService", "kubelet-binary", kubelet_service),
}
