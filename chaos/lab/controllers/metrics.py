"""Metrics of kube-controller-manager. Facts 4.

Sources: pkg/controller/nodelifecycle/metrics.go, tainteviction/metrics, podgc/metrics, volume/attachdetach/metrics, and
k8s.io/component-base/metrics/prometheus/clientgo/leaderelection. Labelled metrics exist from their first count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from chaos.lab.node.kubelet.metrics import family

if TYPE_CHECKING:
    from chaos.lab.controllers import Controllers


def format_metrics(controllers: Controllers) -> str:
    """Format the metrics of the only instance, which is the leader."""
    lifecycle, pod_gc = controllers.node_lifecycle, controllers.pod_gc
    evictions, zones = lifecycle.evictions.items(), lifecycle.zones.items()
    forced = {f'{{reason="{reason}"}}': n for reason, n in sorted(controllers.attach_detach.forced_detaches.items())}
    health = {
        _zone(zone): 100 * ready / (ready + not_ready) if ready + not_ready else 100
        for zone, (ready, not_ready) in zones
    }
    lines = [
        *family("attach_detach_controller_attachdetach_controller_forced_detaches", "counter", forced),
        *family("leader_election_master_status", "gauge", {'{name="kube-controller-manager"}': 1}),
        *family("node_collector_evictions_total", "counter", {_zone(zone): n for zone, n in evictions}),
        *family("node_collector_unhealthy_nodes_in_zone", "gauge", {_zone(zone): n for zone, (_, n) in zones}),
        *family("node_collector_zone_health", "gauge", health),
        *family("node_collector_zone_size", "gauge", {_zone(zone): sum(counts) for zone, counts in zones}),
        *family("pod_gc_collector_force_delete_pod_errors_total", "counter", _by_reason(pod_gc.errors)),
        *family("pod_gc_collector_force_delete_pods_total", "counter", _by_reason(pod_gc.deletions)),
        *family("taint_eviction_controller_pod_deletions_total", "counter", {"": controllers.taint_eviction.deletions}),
    ]
    return "\n".join(lines) + "\n"


def _zone(key: str) -> str:
    return f'{{zone="{key}"}}'


def _by_reason(counts: Counter[tuple[str, str]]) -> dict[str, float]:
    return {f'{{namespace="{namespace}",reason="{reason}"}}': n for (namespace, reason), n in sorted(counts.items())}
