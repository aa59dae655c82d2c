"""More or fewer replicas of a workload."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from pydantic import Field

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
from chaos.core.node_mark import WorkloadPath
from chaos.core.permission import Permission
from chaos.core.timeline import Timeline
from chaos.faults.actions._workloads import (
    ObjectParams,
    PreviousFields,
    capture_fields,
    check_stored,
    plural,
    restore_patch,
    versions_after,
    workload_path,
    workload_permissions,
)

_REPLICAS = "/spec/replicas"


class Params(ObjectParams):
    """Which workload, and the number of replicas."""

    kind: Literal["deployment", "statefulset"]
    replicas: int = Field(ge=0)


def _check_scaled(timeline: Timeline, step: StepRun) -> ProofResult:
    _, versions = versions_after(timeline, step)
    for version in versions:
        if version.object.spec and version.object.spec.replicas == step.params.get("replicas"):
            return ProofResult(ProofStatus.PROVEN, f"it wants {version.object.spec.replicas} replicas", (version.seq,))
    return no_proof("its number of replicas was not seen to change")


def _check_stored(timeline: Timeline, step: StepRun) -> ProofResult:
    wanted = step.params.get("replicas")
    return check_stored(timeline, step, _REPLICAS, wanted, f"{wanted} replicas")


class ScaleState(Struct, frozen=True):
    """Path of the workload, the number of replicas to set, and the previous one."""

    path: WorkloadPath
    replicas: int
    previous: PreviousFields


class Scale(Action[Params, ScaleState]):
    """Patches the subresource scale, as kubectl. Undo sets the previous number; deleted pods are replaced."""

    name = "scale"
    summary = "set the number of replicas of a Deployment or StatefulSet"
    example = "{name: scale, action: scale, with: {kind: deployment, namespace: default, name: web, replicas: 2}}"
    params = Params
    state = ScaleState
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("replicas", _check_scaled), Proof("stored", _check_stored))
    scope = Scope.CLUSTER
    on_host = False

    def api_reads(self, node: str, params: Params, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - no node
        return (workload_path(params, namespace),)

    def permissions(self, params: Params) -> tuple[Permission, ...]:
        return workload_permissions(params, plural(params.kind), "/scale")

    def prepare(self, target: Target, params: Params) -> ScaleState:
        path = workload_path(params, target.namespace)
        return ScaleState(path, params.replicas, capture_fields(target, params, path, (_REPLICAS,)))

    def inject(self, state: ScaleState) -> tuple[Command, ...]:
        body = {"spec": {"replicas": state.replicas}}
        return (KubeCommand("PATCH", f"{state.path}/scale", body, MERGE_PATCH, evidence_pointers=(_REPLICAS,)),)

    def undo(self, state: ScaleState) -> Undo:
        replicas = (state.previous or {}).get(_REPLICAS)
        return restore_patch(state.path, state.previous, {"spec": {"replicas": replicas}})


ACTION = Scale()
