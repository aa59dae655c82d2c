"""More or fewer replicas of a workload."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._workloads import (
    NamedParams,
    answer_shows,
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
from chaos.model.right import Right
from chaos.model.timeline import Timeline

_REPLICAS = "/spec/replicas"


class Params(NamedParams):
    """Which workload, and how many."""

    kind: Literal["deployment", "statefulset"]
    replicas: int = Field(ge=0)


def _scaled(timeline: Timeline, step: StepRun) -> Finding:
    _, versions = versions_after(timeline, step)
    for version in versions:
        if version.object.spec and version.object.spec.replicas == step.params.get("replicas"):
            return Finding(Shown.PROVEN, f"it wants {version.object.spec.replicas} replicas", (version.seq,))
    return not_shown("its number of replicas was not seen to change")


def _stored(timeline: Timeline, step: StepRun) -> Finding:
    wanted = step.params.get("replicas")
    return answer_shows(timeline, step, _REPLICAS, wanted, f"{wanted} replicas")


class Scale(Action):
    """The subresource scale, as kubectl. Undo sets the number from before; pods that went come back as others."""

    name = "scale"
    summary = "set the number of replicas of a Deployment or StatefulSet"
    example = "{name: scale, action: scale, with: {kind: deployment, namespace: default, name: web, replicas: 2}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("replicas", _scaled), Proof("stored", _stored))
    scope = Scope.CLUSTER
    on_host = False

    def reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - no node
        return (workload_path(params, namespace),)

    def rights(self, params: Any) -> tuple[Right, ...]:
        return workload_rights(params, plural(params.kind), "/scale")

    def prepare(self, target: Target, params: Params) -> Memory:
        path = workload_path(params, target.namespace)
        return {
            "path": path,
            "replicas": params.replicas,
            "before": fields_before(target, params, path, (_REPLICAS,)),
        }

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        body = {"spec": {"replicas": memory["replicas"]}}
        return (KubeCommand("PATCH", f"{memory['path']}/scale", body, MERGE_PATCH, shows=(_REPLICAS,)),)

    def undo(self, memory: Memory) -> Undo:
        return patch_back(memory, {"spec": {"replicas": (memory["before"] or {}).get(_REPLICAS)}})


ACTION = Scale()
