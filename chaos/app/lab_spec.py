"""The LabSpec of a lab that an inventory describes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chaos.core.inventory import Lab, Rule

CONTROL_PLANE = "control-plane"


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
    taints = [taint.model_dump() for taint in lab.register_with_taints]
    workers = {**common, "role": "worker", "taints": taints, "failSwapOn": lab.fail_swap_on}
    workers |= {"swap": lab.swap, "swappedOff": lab.swapped_off}
    nodes: list[dict[str, Any]] = [{**common, **item} for item in _control_planes(lab)]
    for index in range(lab.workers):
        zone = lab.zones[index % len(lab.zones)] if lab.zones else ""
        nodes.append({**workers, "name": f"worker-{index + 1}", "zone": zone})
    windows = {**common, "role": "worker", "taints": taints, "os": "windows", "kubeletService": lab.kubelet_service}
    windows |= {"preshutdownTimeout": lab.preshutdown_timeout or ""}
    for index in range(lab.windows_workers):
        zone = lab.zones[index % len(lab.zones)] if lab.zones else ""
        nodes.append({**windows, "name": f"windows-{index + 1}", "zone": zone})
    return {
        "nodes": nodes,
        "kubernetes": lab.kubernetes,
        "inhibitorLostAfterCancel": lab.inhibitor_lost_after_cancel,
        "controllers": {"disableForceDetachOnTimeout": lab.disable_force_detach_on_timeout},
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
