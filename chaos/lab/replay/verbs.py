"""Names of recorded actions, and their aliases."""

from __future__ import annotations

from typing import Any

API = "api"  # through the API server: module external_writes infers the changes from the objects

_HOST = {
    "poweroff": "power-button power-off shutdown graceful-poweroff graceful-shutdown",
    "reboot": "graceful-reboot restart-node node-reboot",
    "hard-reboot": "reset hard-reset power-reset power-cycle fast-reboot",
    "power-cut": "power-kill hard-poweroff cut-power kernel-crash crash panic",
    "power-on": "start-node boot",
    "prepare-for-shutdown": "emit-prepare-for-shutdown announce-shutdown",
    "schedule-shutdown": "shutdown-schedule",
    "cancel-shutdown": "cancel-shutdown-in-flight shutdown-cancel cancel-scheduled-shutdown",
    "kubelet-stop": "stop-kubelet",
    "kubelet-start": "start-kubelet",
    "kubelet-restart": "restart-kubelet",
    "kubelet-kill": "kill-kubelet",
    "kubelet-freeze": "freeze-kubelet kubelet-pause",
    "kubelet-thaw": "thaw-kubelet kubelet-unfreeze kubelet-resume kubelet-continue kubelet-cont",
    "runtime-stop": "stop-runtime containerd-stop container-runtime-stop",
    "runtime-start": "start-runtime containerd-start container-runtime-start",
    "runtime-restart": "restart-runtime containerd-restart container-runtime-restart",
    "dbus-restart": "restart-dbus",
    "logind-restart": "restart-logind",
    "partition": "network-partition",
    "heal": "partition-heal heal-partition unpartition",
    "drain": "kubectl-drain",
    "memory-pressure": "",
    "memory-available": "",
    "disk-pressure": "",
    "disk-available": "",
    "pid-pressure": "",
    "pid-available": "",
    "network-unavailable": "",
    "network-available": "",
    "clock-skew": "set-clock",
    "controller-manager-restart": "kcm-restart restart-controller-manager kube-controller-manager-restart",
}
_API = (
    "cordon uncordon taint untaint out-of-service in-service patch patch-budget scale rollout-restart preempt label "
    "unlabel annotate apply create create-pod delete delete-pod force-delete-pod evict evict-pod remove-finalizers "
    "delete-node create-node mark-disruption workload"
)
_NAMES = {
    **{name: name for name in _HOST},
    **{other: name for name, others in _HOST.items() for other in others.split()},
    **dict.fromkeys(_API.split(), API),
}
UNDO = {
    "partition": "heal",
    "kubelet-stop": "kubelet-start",
    "kubelet-freeze": "kubelet-thaw",
    "runtime-stop": "runtime-start",
    "poweroff": "power-on",
    "power-cut": "power-on",
    "memory-pressure": "memory-available",
    "disk-pressure": "disk-available",
    "pid-pressure": "pid-available",
    "network-unavailable": "network-available",
    "prepare-for-shutdown": "prepare-for-shutdown",
    "schedule-shutdown": "cancel-shutdown",
}
_UNDO_NAMES = ("heal", "undo", "restore", "recover")  # ends of the step that params.of names


def verb_of(action: str, params: dict[str, Any], steps: dict[str, str]) -> str:
    """Name of a recorded action; ``action`` itself if it is unknown. ``steps``: names of earlier steps."""
    name = action.lower().replace("_", "-")
    verb = steps.get(str(params.get("of", "")))
    if name in _UNDO_NAMES and verb in UNDO:
        return UNDO[verb]
    return _NAMES.get(name, action)
