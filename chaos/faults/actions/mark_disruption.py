"""Pods with the condition DisruptionTarget that are not deleted."""

from __future__ import annotations

from chaos.core.command import PodVerb
from chaos.faults.actions._pods import PodAction, PodParams, is_evicted, prove_pods


class MarkDisruption(PodAction):
    """What remains of an eviction without its deletion, as when the API server crashes between the two. The disruption
    controller removes the condition after 2 min (pkg/controller/disruption/disruption.go,
    nonTerminatingPodHasStaleDisruptionCondition).
    """

    name = "mark-disruption"
    summary = "set DisruptionTarget=True on pods of the node, which keep running"
    example = "{name: mark, action: mark-disruption, target: victim, with: {namespace: workload, name: held}}"
    params = PodParams
    verb = PodVerb.MARK_DISRUPTION
    proofs = (prove_pods("marked", is_evicted, "are marked as evicted"),)


ACTION = MarkDisruption()
