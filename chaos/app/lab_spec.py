"""The LabSpec of a lab that an inventory describes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chaos.core.lab_settings import Lab, Rule

CONTROL_PLANE = "control-plane"
_UNUSED_TAINT = {"key": "example.com/unregistered", "effect": "NoSchedule"}  # of a kubelet that registers no Node


def lab_spec(lab: Lab, seed: int | None, now: float) -> dict[str, Any]:
    """The LabSpec as JSON: the control planes, and the workers in alternating zones, those with Linux first."""
    common: dict[str, Any] = {
        "shutdownGracePeriod": lab.shutdown_grace_period,
        "shutdownGracePeriodCriticalPods": lab.shutdown_grace_period_critical_pods,
        "shutdownGracePeriodByPodPriority": [
            item.model_dump(by_alias=True) for item in lab.shutdown_grace_period_by_pod_priority
        ],
        "featureGates": lab.feature_gates,
        "systemd": lab.systemd,
    }
    nodes = [{**common, **item} for item in (*_control_planes(lab), *_workers(lab))]
    return {
        "nodes": nodes,
        "kubernetes": lab.kubernetes,
        "inhibitorLostAfterCancel": lab.inhibitor_lost_after_cancel,
        "controllers": {
            "disableForceDetachOnTimeout": lab.disable_force_detach_on_timeout,
            "allocateNodeCidrs": lab.allocate_node_cidrs,
        },
        "breakages": lab.breakages,
        "sharedIdentity": lab.shared_identity,
        "kubeletIdentity": lab.kubelet_identity,
        "machineIdPerBoot": lab.machine_id_per_boot,
        "perBoot": lab.per_boot,
        "powerLies": lab.power_lies,
        "users": [] if lab.rights is None else [_user(lab.rights)],
        "seed": lab.seed if seed is None else seed,
        "start": float(int(now)),  # reports show the date
    }


def _workers(lab: Lab) -> Iterator[dict[str, Any]]:
    taints = [taint.model_dump() for taint in lab.register_with_taints]
    workers = {"role": "worker", "taints": taints, "failSwapOn": lab.fail_swap_on, "labels": lab.node_labels}
    linux = {**workers, "swap": lab.swap, "swappedOff": lab.swapped_off}
    for index in range(lab.workers):
        yield {**linux, "name": f"worker-{index + 1}", "zone": _zone(lab, index)}
    unregistered = {**linux, "taints": [_UNUSED_TAINT], "registerNode": False}
    for index in range(lab.unregistered_workers):
        yield {**unregistered, "name": f"unregistered-{index + 1}"}
    windows = {"role": "worker", "taints": taints, "os": "windows", "kubeletService": lab.kubelet_service}
    windows |= {"preshutdownTimeout": lab.preshutdown_timeout or ""}
    for index in range(lab.windows_workers):
        yield {**windows, "name": f"windows-{index + 1}", "zone": _zone(lab, index)}


def _zone(lab: Lab, index: int) -> str:
    return lab.zones[index % len(lab.zones)] if lab.zones else ""


def _control_planes(lab: Lab) -> Iterator[dict[str, Any]]:
    """Several have etcd as kubeadm runs it; the only one has none, as nothing can be shown with it."""
    control_plane = {"role": "control-plane", "labels": lab.control_plane_labels}
    if lab.control_planes == 1:
        yield {"name": CONTROL_PLANE, **control_plane}
        return
    labels = {"component": "etcd", "tier": "control-plane"}  # kubeadm: app/util/staticpod/utils.go
    etcd = {"name": "etcd", "labels": labels, "priorityClassName": "system-node-critical"}
    for number in range(1, lab.control_planes + 1):
        yield {"name": f"{CONTROL_PLANE}-{number}", **control_plane, "staticPods": [etcd]}


def _user(rights: Sequence[Rule]) -> dict[str, Any]:
    return {"name": "nodefall", "rules": [rule.model_dump(by_alias=True) for rule in rights]}
