"""Finalizers taken from pods: who set them does not get to finish."""

from __future__ import annotations

from chaos.actions._pods import PodAction, PodParams, pods_show
from chaos.model.kube import Pod
from chaos.model.timeline import Version


def _without(version: Version[Pod]) -> bool:
    return version.gone or not version.object.metadata.finalizers


class RemoveFinalizers(PodAction):
    """A pod that was only kept by them is gone at once."""

    name = "remove-finalizers"
    summary = "take all finalizers from pods of the node"
    example = "{name: free, action: remove-finalizers, target: victim, with: {namespace: workload, name: held}}"
    params = PodParams
    verb = "remove-finalizers"
    proofs = (pods_show("without-finalizers", _without, "have no finalizers"),)


ACTION = RemoveFinalizers()
