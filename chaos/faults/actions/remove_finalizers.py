"""Finalizers removed from pods, so that their controllers cannot clean up."""

from __future__ import annotations

from chaos.core.command import PodVerb
from chaos.core.kube import Pod
from chaos.core.timeline import Version
from chaos.faults.actions._pods import PodAction, PodParams, prove_pods


def _has_no_finalizers(version: Version[Pod]) -> bool:
    return version.is_deleted or not version.object.metadata.finalizers


class RemoveFinalizers(PodAction):
    """A terminating pod that only waits for its finalizers is deleted at once."""

    name = "remove-finalizers"
    summary = "remove all finalizers from pods of the node"
    example = "{name: free, action: remove-finalizers, target: victim, with: {namespace: workload, name: held}}"
    params = PodParams
    verb = PodVerb.REMOVE_FINALIZERS
    proofs = (prove_pods("without-finalizers", _has_no_finalizers, "have no finalizers"),)


ACTION = RemoveFinalizers()
