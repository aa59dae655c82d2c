"""Finalizers taken from pods: who set them does not get to finish."""

from __future__ import annotations

from chaos.actions._pods import PodAction, PodParams, prove_pods
from chaos.model.kube import Pod
from chaos.model.timeline import Version


def _has_no_finalizers(version: Version[Pod]) -> bool:
    return version.is_deleted or not version.object.metadata.finalizers


class RemoveFinalizers(PodAction):
    """A pod that was only kept by them is gone at once."""

    name = "remove-finalizers"
    summary = "take all finalizers from pods of the node"
    example = "{name: free, action: remove-finalizers, target: victim, with: {namespace: workload, name: held}}"
    params = PodParams
    verb = "remove-finalizers"
    proofs = (prove_pods("without-finalizers", _has_no_finalizers, "have no finalizers"),)


ACTION = RemoveFinalizers()
