"""Pods that are said to be disrupted, and that nobody deletes."""

from __future__ import annotations

from chaos.actions._pods import PodAction, PodParams, is_evicted, prove_pods


class MarkDisruption(PodAction):
    """The trace of an eviction whose deletion never came, as when the API server dies between the two. The disruption
    controller takes the condition back after 2 minutes (pkg/controller/disruption/disruption.go,
    nonTerminatingPodHasStaleDisruptionCondition).
    """

    name = "mark-disruption"
    summary = "put DisruptionTarget=True on pods of the node, which run on"
    example = "{name: mark, action: mark-disruption, target: victim, with: {namespace: workload, name: held}}"
    params = PodParams
    verb = "mark-disruption"
    proofs = (prove_pods("marked", is_evicted, "are marked as evicted"),)


ACTION = MarkDisruption()
