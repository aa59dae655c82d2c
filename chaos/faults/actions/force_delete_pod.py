"""Pods deleted from the API at once, without their kubelet's confirmation."""

from __future__ import annotations

from msgspec import structs

from chaos.core.action import Target
from chaos.core.command import PodVerb
from chaos.faults.actions._pods import PodAction, PodParams, PodState, is_gone, prove_pods


class ForceDeletePod(PodAction):
    """Grace period 0: the containers may keep running, unseen by the API, beside their replacement (facts 10)."""

    name = "force-delete-pod"
    summary = "delete pods of the node with grace period 0: their containers may still run"
    example = "{name: force, action: force-delete-pod, target: victim, with: {namespace: default, selector: app=agent}}"
    params = PodParams
    verb = PodVerb.DELETE
    proofs = (prove_pods("gone", is_gone, "are gone from the API"),)

    def prepare(self, target: Target, params: PodParams) -> PodState:
        return structs.replace(super().prepare(target, params), grace=0)


ACTION = ForceDeletePod()
