"""Settings of the control plane and of kubelets, as a recording or a snapshot has them, for a LabSpec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from chaos.lab.objects.accessors import Object, labels_of
from chaos.lab.spec import ControllerSpec, NodeSpec, PriorityGrace, parse_duration

_CONTROL_PLANE, _ZONE = "node-role.kubernetes.io/control-plane", "topology.kubernetes.io/zone"


def control_plane(meta: Mapping[str, Any], defaults: Mapping[str, Any]) -> ControllerSpec:
    """Flags of kube-controller-manager and kube-apiserver in ``meta``, by their names in a LabSpec, else ``defaults``.

    Raises ValueError, TypeError and msgspec.ValidationError for a value that the lab cannot have.
    """
    known = {field.encode_name for field in msgspec.structs.fields(ControllerSpec)}
    flags = {**(meta.get("controllerManager") or {}), **(meta.get("apiServer") or {})}
    found = {key: parse_duration(value) if isinstance(value, str) else value for key, value in flags.items()}
    known_flags = {key: value for key, value in found.items() if key in known}
    return msgspec.convert({**defaults, **known_flags}, ControllerSpec, strict=False)


def is_control_plane(node: Object) -> bool:
    """Whether the Node has the label of kubeadm."""
    return _CONTROL_PLANE in labels_of(node)


def zone_of(node: Object) -> str:
    """The Node's zone; "" without one."""
    return str(labels_of(node).get(_ZONE, ""))


def set_grace(spec: NodeSpec, config: Object) -> None:
    """Graceful shutdown by a kubelet's configuration: by priorities, or by two periods."""
    buckets = config.get("shutdownGracePeriodByPodPriority") or []
    spec.shutdown_grace_period_by_pod_priority = [
        PriorityGrace(priority=item["priority"], shutdown_grace_period_seconds=item["shutdownGracePeriodSeconds"])
        for item in buckets
    ]
    spec.shutdown_grace_period = "0s" if buckets else config.get("shutdownGracePeriod", "0s")
    spec.shutdown_grace_period_critical_pods = "0s" if buckets else config.get("shutdownGracePeriodCriticalPods", "0s")
