"""CoreDNS on the target."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.judge.budgets import is_healthy
from chaos.preflight.check import Check, Diagnosis, ok, warning
from chaos.preflight.observations import ClusterObservations, Need, fault_groups


class CoreDns(Check):
    """Kubernetes' own label, k8s-app=kube-dns. Without DNS everything looks broken."""

    name = "coredns"
    summary = "cluster DNS has pods on other nodes too"

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        nodes = [
            pod.spec.node_name
            for pod in signs.view.pods
            if pod.spec and pod.metadata.namespace == "kube-system" and is_healthy(pod)
            if (pod.metadata.labels or {}).get("k8s-app") == "kube-dns"
        ]
        alone = [(host, group) for host, group in fault_groups(signs) if nodes and set(nodes) <= set(group)]
        for host, group in alone:
            told = f"all {len(nodes)} CoreDNS pod(s) run on {', '.join(group)}: without, names are not resolved"
            mend = "spread them over nodes, or choose another target"
            yield warning(told, mend, host, frozenset({Need.ENDS_PODS}))
        if not alone:
            yield ok(f"{len(nodes)} pod(s)" if nodes else "no pods of it, so nothing to lose")


CHECK = CoreDns()
