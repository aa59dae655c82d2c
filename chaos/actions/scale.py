"""More or fewer replicas of a workload."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._workloads import (
    ObjectParams,
    capture_fields,
    check_stored,
    plural,
    restore_patch,
    versions_after,
    workload_path,
    workload_permissions,
)
from chaos.model.action import (
    Action,
    Proof,
    ProofResult,
    ProofStatus,
    Scope,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoState,
)
from chaos.model.command import MERGE_PATCH, Command, KubeCommand
from chaos.model.evidence import no_proof
from chaos.model.permission import Permission
from chaos.model.timeline import Timeline

_REPLICAS = "/spec/replicas"


class Params(ObjectParams):
    """Which workload, and how many."""

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


class Scale(Action):
    """The subresource scale, as kubectl. Undo sets the number from before; pods that went come back as others."""

    name = "scale"
    summary = "set the number of replicas of a Deployment or StatefulSet"
    example = "{name: scale, action: scale, with: {kind: deployment, namespace: default, name: web, replicas: 2}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("replicas", _check_scaled), Proof("stored", _check_stored))
    scope = Scope.CLUSTER
    on_host = False

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - no node
        return (workload_path(params, namespace),)

    def permissions(self, params: Any) -> tuple[Permission, ...]:
        return workload_permissions(params, plural(params.kind), "/scale")

    def prepare(self, target: Target, params: Params) -> UndoState:
        path = workload_path(params, target.namespace)
        return {
            "path": path,
            "replicas": params.replicas,
            "before": capture_fields(target, params, path, (_REPLICAS,)),
        }

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        body = {"spec": {"replicas": memory["replicas"]}}
        return (KubeCommand("PATCH", f"{memory['path']}/scale", body, MERGE_PATCH, evidence_pointers=(_REPLICAS,)),)

    def undo(self, memory: UndoState) -> Undo:
        return restore_patch(memory, {"spec": {"replicas": (memory["before"] or {}).get(_REPLICAS)}})


ACTION = Scale()
