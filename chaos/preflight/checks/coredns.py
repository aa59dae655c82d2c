"""Cluster DNS on the target."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.judge.budgets import is_healthy
from chaos.preflight.check import Check, Diagnosis, ok, warning
from chaos.preflight.observations import ClusterObservations, Need, fault_groups


class CoreDns(Check):
    """Pods with Kubernetes' label k8s-app=kube-dns. Without DNS everything appears broken."""

    name = "coredns"
    summary = "cluster DNS has pods on other nodes too"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        nodes = [
            pod.spec.node_name
            for pod in observations.view.pods
            if pod.spec and pod.metadata.namespace == "kube-system" and is_healthy(pod)
            if (pod.metadata.labels or {}).get("k8s-app") == "kube-dns"
        ]
        groups = [(host, group) for host, group in fault_groups(observations) if nodes and set(nodes) <= set(group)]
        for host, group in groups:
            message = f"all {len(nodes)} CoreDNS pod(s) run on {', '.join(group)}: names are not resolved without them"
            hint = "spread them over nodes, or choose another target"
            yield warning(message, hint, host, frozenset({Need.ENDS_PODS}))
        if not groups:
            yield ok(f"{len(nodes)} pod(s)" if nodes else "no CoreDNS pods")


CHECK = CoreDns()
