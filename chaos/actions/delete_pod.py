"""Pods deleted, with their grace period."""

from __future__ import annotations

from chaos.actions._pods import GraceParams, PodAction, is_ended, pods_show


class DeletePod(PodAction):
    """No budget is asked, and no DisruptionTarget written."""

    name = "delete-pod"
    summary = "delete pods of the node, with their grace period"
    example = "{name: delete, action: delete-pod, target: victim, with: {namespace: default, selector: app=agent}}"
    params = GraceParams
    verb = "delete"
    proofs = (pods_show("ended", is_ended, "are being deleted"),)


ACTION = DeletePod()
