"""Pod counts of Deployments, StatefulSets and DaemonSets."""

from __future__ import annotations

from chaos.core.kube import Workload

KINDS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}


def counts(plural: str, workload: Workload) -> tuple[int, int]:
    """Numbers of available pods (of a StatefulSet: ready pods) and of desired pods."""
    status = workload.status
    if plural == "daemonsets":
        return (status.number_available or 0, status.desired_number_scheduled or 0) if status else (0, 0)
    replicas = workload.spec.replicas if workload.spec else None
    ready = (status.available_replicas if plural == "deployments" else status.ready_replicas) if status else None
    return ready or 0, 1 if replicas is None else replicas
