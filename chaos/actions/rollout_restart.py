"""All pods of a workload replaced by a rollout."""

from __future__ import annotations

from typing import Any

from chaos.actions._workloads import (
    WorkloadParams,
    fields_before,
    patch_back,
    plural,
    versions_after,
    workload_path,
    workload_rights,
)
from chaos.model.action import Action, Finding, Memory, Proof, Scope, Shown, StepRun, Target, Undo, UndoKind
from chaos.model.command import MERGE_PATCH, Command, KubeCommand
from chaos.model.evidence import not_shown
from chaos.model.kube import controller_of
from chaos.model.right import Right
from chaos.model.timeline import Timeline

_KEY = "nodefall.dev/restarted"
_POINTER = "/spec/template/metadata/annotations/" + _KEY.replace("/", "~1")


def _new_pods(timeline: Timeline, step: StepRun) -> Finding:
    """A new generation, and a pod that is younger and owned by it, directly or through a new ReplicaSet."""
    generation = _generation(timeline, step)
    if generation.shown is not Shown.PROVEN:
        return generation
    before, versions = versions_after(timeline, step)
    workload = (before or versions[0]).object if before or versions else None
    uids = {workload.metadata.uid} if workload else set()
    for (resource, _, _), history in timeline.workloads.items():
        owners = {owner.uid for owner in history.last.object.metadata.owner_references or ()}
        if resource == "replicasets" and owners & uids and history.versions[0].t >= step.begin:
            uids = {*uids, history.last.object.metadata.uid}
    for pods in timeline.pods.values():
        first = pods.versions[0]
        owner = controller_of(first.object)
        if step.begin <= first.t <= step.until and owner and owner.uid in uids:
            because = f"its pods are replaced, the first by {first.object.metadata.name}"
            return Finding(Shown.PROVEN, because, (*generation.evidence, first.seq))
    return not_shown("no new pod of it was seen")


def _generation(timeline: Timeline, step: StepRun) -> Finding:
    before, versions = versions_after(timeline, step)
    old = before.object.metadata.generation if before else None
    new = next((v for v in versions if old and (v.object.metadata.generation or 0) > old), None)
    if before and new:
        because = f"its generation went from {old} to {new.object.metadata.generation}"
        return Finding(Shown.PROVEN, because, (before.seq, new.seq))
    return not_shown("its generation was not seen to change")


class RolloutRestart(Action):
    """An annotation of the pod template, as kubectl rollout restart. Undo takes it away, which is a rollout too."""

    name = "rollout-restart"
    summary = "restart all pods of a Deployment, StatefulSet or DaemonSet by a rollout"
    example = "{name: restart, action: rollout-restart, with: {kind: deployment, namespace: default, name: web}}"
    params = WorkloadParams
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("new-pods", _new_pods), Proof("generation", _generation))
    scope = Scope.CLUSTER
    on_host = False

    def reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - no node
        return (workload_path(params, namespace),)

    def rights(self, params: Any) -> tuple[Right, ...]:
        return workload_rights(params, plural(params.kind))

    def prepare(self, target: Target, params: WorkloadParams) -> Memory:
        path = workload_path(params, target.namespace)
        return {"path": path, "tag": target.tag, "before": fields_before(target, params, path, (_POINTER,))}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (KubeCommand("PATCH", memory["path"], _annotate(memory["tag"]), MERGE_PATCH),)

    def undo(self, memory: Memory) -> Undo:
        return patch_back(memory, _annotate((memory["before"] or {}).get(_POINTER)))


def _annotate(value: str | None) -> dict[str, Any]:
    return {"spec": {"template": {"metadata": {"annotations": {_KEY: value}}}}}


ACTION = RolloutRestart()
