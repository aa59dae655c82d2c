"""Pods evicted through the eviction API."""

from __future__ import annotations

from chaos.actions._pods import REFUSED, GraceParams, PodAction, is_evicted, is_terminating, prove_pods


class EvictPod(PodAction):
    """It asks the pods' disruption budgets. A refusal is a result, kept with its message; only drain tries again."""

    name = "evict-pod"
    summary = "evict pods of the node through the eviction API, as a drain does"
    example = "{name: evict, action: evict-pod, target: victim, with: {namespace: default, selector: app=agent}}"
    params = GraceParams
    verb = "evict"
    proofs = (
        prove_pods("evicted", is_evicted, "have DisruptionTarget EvictionByEvictionAPI"),
        prove_pods("ended", is_terminating, "are being deleted"),
        REFUSED,
    )


ACTION = EvictPod()
