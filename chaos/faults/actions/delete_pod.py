"""Pods deleted with their grace period."""

from __future__ import annotations

from chaos.core.command import PodVerb
from chaos.faults.actions._pods import GraceParams, PodAction, is_terminating, prove_pods


class DeletePod(PodAction):
    """Budgets are not checked, and no DisruptionTarget condition is set."""

    name = "delete-pod"
    summary = "delete pods of the node, with their grace period"
    example = "{name: delete, action: delete-pod, target: victim, with: {namespace: default, selector: app=agent}}"
    params = GraceParams
    verb = PodVerb.DELETE
    proofs = (prove_pods("ended", is_terminating, "are being deleted"),)


ACTION = DeletePod()
