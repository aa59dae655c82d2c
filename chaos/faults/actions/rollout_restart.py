"""A rollout that replaces all pods of a workload."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from chaos.core.action import (
    Action,
    Proof,
    ProofResult,
    ProofStatus,
    Scope,
    StepRun,
    Target,
    Undo,
    UndoKind,
)
from chaos.core.command import MERGE_PATCH, Command, KubeCommand
from chaos.core.evidence import no_proof
from chaos.core.kube import controller_of
from chaos.core.node_mark import Tag, WorkloadPath
from chaos.core.permission import Permission
from chaos.core.timeline import Timeline
from chaos.faults.actions._workloads import (
    PreviousFields,
    WorkloadParams,
    capture_fields,
    plural,
    restore_patch,
    versions_after,
    workload_path,
    workload_permissions,
)

_KEY = "nodefall.dev/restarted"
_POINTER = "/spec/template/metadata/annotations/" + _KEY.replace("/", "~1")


def _check_new_pods(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a new generation and a younger pod of the workload, directly or through a new ReplicaSet."""
    generation = _check_generation(timeline, step)
    if generation.status is not ProofStatus.PROVEN:
        return generation
    before, versions = versions_after(timeline, step)
    workload = (before or versions[0]).object if before or versions else None
    uids = {workload.metadata.uid} if workload else set()
    for (resource, _, _), history in timeline.workloads.items():
        owners = {owner.uid for owner in history.last.object.metadata.owner_references or ()}
        if resource == "replicasets" and owners & uids and history.first_time >= step.begin:
            uids = {*uids, history.last.object.metadata.uid}
    for pods in timeline.pods.values():
        first = pods.first
        owner = controller_of(first.object)
        if step.begin <= first.t <= step.until and owner and owner.uid in uids:
            because = f"its pods are replaced, the first by {first.object.metadata.name}"
            return ProofResult(ProofStatus.PROVEN, because, (*generation.evidence, first.seq))
    return no_proof("no new pod of it was seen")


def _check_generation(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a higher generation of the workload."""
    before, versions = versions_after(timeline, step)
    old = before.object.metadata.generation if before else None
    new = next((v for v in versions if old and (v.object.metadata.generation or 0) > old), None)
    if before and new:
        because = f"its generation went from {old} to {new.object.metadata.generation}"
        return ProofResult(ProofStatus.PROVEN, because, (before.seq, new.seq))
    return no_proof("its generation was not seen to change")


class RestartState(Struct, frozen=True):
    """Path of the workload, value of the annotation to set, and the previous one."""

    path: WorkloadPath
    tag: Tag
    previous: PreviousFields


class RolloutRestart(Action[WorkloadParams, RestartState]):
    """Annotates the pod template, as kubectl rollout restart. Undo removes the annotation, which is another rollout."""

    name = "rollout-restart"
    summary = "restart all pods of a Deployment, StatefulSet or DaemonSet by a rollout"
    example = "{name: restart, action: rollout-restart, with: {kind: deployment, namespace: default, name: web}}"
    params = WorkloadParams
    state = RestartState
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("new-pods", _check_new_pods), Proof("generation", _check_generation))
    scope = Scope.CLUSTER
    on_host = False

    def api_reads(self, node: str, params: WorkloadParams, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - no node
        return (workload_path(params, namespace),)

    def permissions(self, params: WorkloadParams) -> tuple[Permission, ...]:
        return workload_permissions(params, plural(params.kind))

    def prepare(self, target: Target, params: WorkloadParams) -> RestartState:
        path = workload_path(params, target.namespace)
        return RestartState(path, target.tag, capture_fields(target, params, path, (_POINTER,)))

    def inject(self, state: RestartState) -> tuple[Command, ...]:
        return (KubeCommand("PATCH", state.path, _annotate(state.tag), MERGE_PATCH),)

    def undo(self, state: RestartState) -> Undo:
        return restore_patch(state.path, state.previous, _annotate((state.previous or {}).get(_POINTER)))


def _annotate(value: str | None) -> dict[str, Any]:
    return {"spec": {"template": {"metadata": {"annotations": {_KEY: value}}}}}


ACTION = RolloutRestart()
