"""The name of kube-controller-manager, and its metrics that are recorded (facts 4)."""

from __future__ import annotations

import re

CONTROLLER_MANAGER = "kube-controller-manager"
LEADER_STATUS = 'leader_election_master_status{name="kube-controller-manager"}'  # absent without leader election
METRIC_PREFIXES = (
    LEADER_STATUS,
    "attach_detach_controller_attachdetach_controller_forced_detaches{",
    "node_collector_evictions_total{",
    "node_collector_unhealthy_nodes_in_zone{",
    "node_collector_zone_health{",
    "node_collector_zone_size{",
    "pod_gc_collector_force_delete_pod_errors_total{",
    "pod_gc_collector_force_delete_pods_total{",
    "taint_eviction_controller_pod_deletions_total",
)
_REASONS = "terminated|out-of-service|orphaned|unscheduled"
# Absent until the first count: pkg/controller/volume/attachdetach/metrics and podgc/metrics.
_FROM_ZERO = re.compile(
    r'attach_detach_controller_attachdetach_controller_forced_detaches\{reason="(timeout|out-of-service)"\}'
    rf'|pod_gc_collector_force_delete_pod(s|_errors)_total\{{namespace="[^"]+",reason="({_REASONS})"\}}'
)


def starts_at_zero(name: str) -> bool:
    """Whether the absence of a metric means zero."""
    return bool(_FROM_ZERO.fullmatch(name))
