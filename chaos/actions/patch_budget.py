"""A PodDisruptionBudget made stricter or laxer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from chaos.actions._pods import explicit_namespace
from chaos.actions._workloads import ObjectParams, capture_fields, check_stored, restore_patch
from chaos.model.action import Action, Proof, ProofResult, Scope, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.command import MERGE_PATCH, Command, KubeCommand
from chaos.model.permission import Permission, permissions_on
from chaos.model.timeline import Timeline

_MIN, _MAX = "/spec/minAvailable", "/spec/maxUnavailable"
Amount = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=r"^\d+%$")]


class Params(ObjectParams):
    """Which budget, and one of the two."""

    min_available: Amount | None = Field(None, alias="min-available", description="a number or a percentage")
    max_unavailable: Amount | None = Field(None, alias="max-unavailable", description="a number or a percentage")

    @model_validator(mode="after")
    def _validate_one_limit(self) -> Self:
        if (self.min_available is None) == (self.max_unavailable is None):
            raise ValueError("give either min-available or max-unavailable")
        return self


def _check_stored(timeline: Timeline, step: StepRun) -> ProofResult:
    lowest, most = step.params.get("min-available"), step.params.get("max-unavailable")
    if lowest is not None:
        return check_stored(timeline, step, _MIN, lowest, f"minAvailable {lowest}")
    return check_stored(timeline, step, _MAX, most, f"maxUnavailable {most}")


class PatchBudget(Action):
    """The budget's controller counts anew at once. The one that is not given is taken away: a budget has one."""

    name = "patch-budget"
    summary = "change what a PodDisruptionBudget allows"
    example = "{name: tighten, action: patch-budget, with: {namespace: default, name: web, max-unavailable: 0}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("stored", _check_stored),)
    scope = Scope.CLUSTER
    on_host = False

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - no node
        return (_path(params, namespace),)

    def permissions(self, params: Any) -> tuple[Permission, ...]:
        inside = explicit_namespace(params.namespace)
        return permissions_on("poddisruptionbudgets", "get", "patch", group="policy", namespace=inside)

    def prepare(self, target: Target, params: Params) -> UndoState:
        path = _path(params, target.namespace)
        before = capture_fields(target, params, path, (_MIN, _MAX))
        return {"path": path, "min": params.min_available, "max": params.max_unavailable, "before": before}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (
            KubeCommand(
                "PATCH",
                memory["path"],
                _spec(memory["min"], memory["max"]),
                MERGE_PATCH,
                evidence_pointers=(_MIN, _MAX),
            ),
        )

    def undo(self, memory: UndoState) -> Undo:
        before = memory["before"] or {}
        return restore_patch(memory, _spec(before.get(_MIN), before.get(_MAX)))


def _path(params: Any, namespace: str) -> str:
    inside = namespace if params.namespace == "workload" else params.namespace
    return f"/apis/policy/v1/namespaces/{inside}/poddisruptionbudgets/{params.name}"


def _spec(lowest: Any, most: Any) -> dict[str, Any]:
    return {"spec": {"minAvailable": lowest, "maxUnavailable": most}}


ACTION = PatchBudget()
