"""What can be asked for: faults in plain words, the steps that come before them, and what should hold after them.

Every action and assertion has an example; these tables say what a skeleton needs beyond it. An action or assertion of a
plug-in has no row, and its example is used as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

# The menu: a question's answer in plain words, and the action.
MENU: Mapping[str, str] = {
    "poweroff": "a machine is powered off as planned",
    "reboot": "a machine is rebooted as planned",
    "power-cut": "a machine loses its power",
    "kernel-crash": "the kernel of a machine crashes",
    "kubelet-stop": "the kubelet stops, its containers run on",
    "runtime-stop": "the container runtime stops",
    "partition": "a node loses its connection to the control plane",
    "drain": "a node is drained for maintenance",
    "cordon": "a node takes no new pods",
    "taint": "a node gets a taint",
    "memory-pressure": "a node has no memory left",
    "disk-pressure": "a node has no disk space left",
}
# The action without which another one has no effect, or is refused.
BEFORE: Mapping[str, str] = {
    "cancel-shutdown": "schedule-shutdown",
    "cancel-shutdown-in-flight": "poweroff",
    "kubelet-start": "kubelet-stop",
    "out-of-service": "power-cut",
    "power-on": "poweroff",
    "uncordon": "cordon",
    "untaint": "taint",
}
WORKLOAD = "workload"  # in parameters, the namespace of the experiment's workload
_STAYS = ("StatefulSet", "DaemonSet")  # whose pods have no replacement while their node is silent
LATER = "60s"  # after the step before, where the action's example does not say when
# Parameters instead of those of the action's example.
STEP_PARAMS: Mapping[str, Mapping[str, Any]] = {
    "partition": {"from": "control-plane"},  # until it is undone, and not for 100 s
    "delete-pod": {"namespace": "workload", "selector": "app=web"},
    "evict-pod": {"namespace": "workload", "selector": "app=web"},
    "force-delete-pod": {"namespace": "workload", "selector": "app=web"},
}
_WORKLOAD_PODS = {"node": "victim", "namespace": "workload", "except": ["daemonset", "static"]}
_REPLACED = "every pod is replaced on another node"
_AVAILABLE = "the workload is available again, and stays so"
_UNREACHABLE = "controller.nodeMonitorGracePeriod"
_CONDITIONS = {"memory-pressure": "MemoryPressure", "disk-pressure": "DiskPressure", "pid-pressure": "PIDPressure"}
# Keys instead of those of the assertion's example: after any fault, and after one with this effect.
_ALWAYS: Mapping[str, Mapping[str, Any]] = {
    "budget-respected": {"name": "no eviction violates a disruption budget"},
    "grace-respected": {"name": "every pod gets its grace period"},
    "nodes-ready": {
        "name": "at most one node is not Ready",
        "with": {"not-ready-at-most": 1},
        "always": {"for": "2m"},
    },
    "pods-evicted": {"name": "every pod is evicted", "with": _WORKLOAD_PODS},
    "pods-rescheduled": {
        "name": _REPLACED,
        "with": _WORKLOAD_PODS,
        "within": "2m",
        "timing": "loose",
    },
    "pods-started": {"name": "no pod starts on the node", "never": {"for": "1m"}},
    "workload-available": {"name": _AVAILABLE, "within": "5m", "for": "30s"},
}


class Effect(StrEnum):
    """What the rest of the cluster notices of a fault."""

    SHUTDOWN = "shutdown"  # the machine goes down with notice
    SILENCE = "silence"  # the node reports nothing any longer
    EVICTION = "eviction"  # pods leave the node through the API
    NO_NEW_PODS = "no new pods"
    PRESSURE = "pressure"
    OTHER = "other"


EFFECTS: Mapping[str, Effect] = {
    **dict.fromkeys(("poweroff", "power-button", "reboot"), Effect.SHUTDOWN),
    **dict.fromkeys(("power-cut", "kernel-crash", "kubelet-stop", "kubelet-freeze", "partition"), Effect.SILENCE),
    **dict.fromkeys(("drain", "evict-pod"), Effect.EVICTION),
    **dict.fromkeys(("cordon", "taint"), Effect.NO_NEW_PODS),
    **dict.fromkeys(("memory-pressure", "disk-pressure", "pid-pressure"), Effect.PRESSURE),
}


SUGGESTED: Mapping[Effect, tuple[str, ...]] = {
    Effect.SHUTDOWN: ("pods-rescheduled", "workload-available", "node-condition", "grace-respected"),
    Effect.SILENCE: ("node-condition", "node-taint", "pods-rescheduled", "workload-available"),
    Effect.EVICTION: ("workload-available", "pods-evicted", "budget-respected", "pods-rescheduled"),
    Effect.NO_NEW_PODS: ("pods-started", "workload-available"),
    Effect.PRESSURE: ("node-condition", "node-taint", "workload-available"),
    Effect.OTHER: ("workload-available", "nodes-ready"),
}


_BY_EFFECT: Mapping[tuple[Effect, str], Mapping[str, Any]] = {
    (Effect.SHUTDOWN, "node-condition"): {"name": "the kubelet announces the shutdown"},
    (Effect.SILENCE, "node-condition"): {
        "name": "the node becomes Unknown",
        "with": {"node": "victim", "type": "Ready", "status": "Unknown"},
        "within": f"{_UNREACHABLE} + 15s",
    },
    (Effect.SILENCE, "node-taint"): {
        "name": "the node gets the taint that evicts pods",
        "with": {"node": "victim", "key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
        "within": f"{_UNREACHABLE} + 25s",
    },
    (Effect.SILENCE, "pods-rescheduled"): {
        "name": _REPLACED,
        "with": _WORKLOAD_PODS,
        "within": f"{_UNREACHABLE} + 35s + toleration(unreachable)",
        "timing": "loose",
    },
    (Effect.SILENCE, "workload-available"): {"name": _AVAILABLE, "within": "10m", "for": "30s"},
}


def effect_of(action: str) -> Effect:
    """The effect of an action; OTHER for one that has no row."""
    return EFFECTS.get(action, Effect.OTHER)


def suggestions(action: str, kind: str = "") -> tuple[str, ...]:
    """Assertions that are worth asking for after a fault, the most useful first. ``kind``: of the workload, if known.

    The pods of a DaemonSet are not replaced elsewhere, and those of a StatefulSet not while their node is silent.
    """
    found = SUGGESTED[effect_of(action)]
    if kind == "DaemonSet":
        return tuple(name for name in found if name not in ("pods-rescheduled", "pods-evicted"))
    if kind == "StatefulSet" and effect_of(action) is Effect.SILENCE:
        return tuple("pods-stuck" if name == "pods-rescheduled" else name for name in found)
    return found


_STUCK = {
    "name": "the pods of the node are not replaced: they may still run",
    "with": _WORKLOAD_PODS,
    "after": "fault",
    "within": f"{_UNREACHABLE} + 35s + toleration(unreachable)",
    "for": "30s",
}
_FEW = {
    "name": "all but one pod stay available",
    "with": {"namespace": WORKLOAD, "unavailable-at-most": 1},
    "always": {"for": "2m"},
}


def expectation_keys(action: str, assertion: str, kind: str = "") -> Mapping[str, Any]:
    """Keys that replace those of the assertion's example after this fault; empty if the example fits."""
    if assertion == "pods-stuck" and effect_of(action) is Effect.SILENCE:
        return _STUCK
    if assertion == "workload-available" and effect_of(action) is Effect.SILENCE and kind in _STAYS:
        return _FEW
    if (condition := _CONDITIONS.get(action)) and assertion == "node-condition":
        params = {"node": "victim", "type": condition, "status": "True"}
        return {"name": f"the node reports {condition}", "with": params, "within": "2m"}
    if condition and assertion == "node-taint":
        taint = {"node": "victim", "key": f"node.kubernetes.io/{action}", "effect": "NoSchedule"}
        return {"name": "the node gets the taint of the pressure", "with": taint, "within": "2m"}
    return _BY_EFFECT.get((effect_of(action), assertion)) or _ALWAYS.get(assertion, {})
