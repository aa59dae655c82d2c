"""Pods evicted through the eviction API."""

from __future__ import annotations

from chaos.core.command import PodVerb
from chaos.faults.actions._pods import REFUSED, GraceParams, PodAction, is_evicted, is_terminating, prove_pods


class EvictPod(PodAction):
    """The eviction API checks the pods' disruption budgets. A refusal is recorded as a result; only drain retries."""

    name = "evict-pod"
    summary = "evict pods of the node through the eviction API, as a drain does"
    example = "{name: evict, action: evict-pod, target: victim, with: {namespace: default, selector: app=agent}}"
    params = GraceParams
    verb = PodVerb.EVICT
    proofs = (
        prove_pods("evicted", is_evicted, "have DisruptionTarget EvictionByEvictionAPI"),
        prove_pods("ended", is_terminating, "are being deleted"),
        REFUSED,
    )


ACTION = EvictPod()
