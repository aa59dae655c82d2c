"""Pods removed from the API at once, without asking their kubelet."""

from __future__ import annotations

from chaos.actions._pods import PodAction, PodParams, is_gone, prove_pods
from chaos.model.action import UndoState
from chaos.model.command import Command


class ForceDeletePod(PodAction):
    """Grace period 0: the containers may run on where nobody hears of it, beside their replacement (facts 10)."""

    name = "force-delete-pod"
    summary = "delete pods of the node with grace period 0: their containers may still run"
    example = "{name: force, action: force-delete-pod, target: victim, with: {namespace: default, selector: app=agent}}"
    params = PodParams
    verb = "delete"
    proofs = (prove_pods("gone", is_gone, "are gone from the API"),)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return super().inject({**memory, "grace": 0})


ACTION = ForceDeletePod()
