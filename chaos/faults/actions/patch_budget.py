"""A PodDisruptionBudget made stricter or laxer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from msgspec import Struct
from pydantic import Field, model_validator

from chaos.core.action import Action, Proof, ProofResult, Scope, StepRun, Target, Undo, UndoKind
from chaos.core.command import MERGE_PATCH, Command, KubeCommand
from chaos.core.node_mark import BudgetPath
from chaos.core.permission import Permission, permissions_on
from chaos.core.timeline import Timeline
from chaos.faults.actions._pods import explicit_namespace
from chaos.faults.actions._workloads import ObjectParams, PreviousFields, capture_fields, check_stored, restore_patch

_MIN, _MAX = "/spec/minAvailable", "/spec/maxUnavailable"
Amount = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=r"^\d+%$")]


class Params(ObjectParams):
    """Which budget, and one of the two limits."""

    min_available: Amount | None = Field(None, alias="min-available", description="a number or a percentage")
    max_unavailable: Amount | None = Field(None, alias="max-unavailable", description="a number or a percentage")

    @model_validator(mode="after")
    def _validate_one_limit(self) -> Self:
        if (self.min_available is None) == (self.max_unavailable is None):
            raise ValueError("give either min-available or max-unavailable")
        return self


def _check_stored(timeline: Timeline, step: StepRun) -> ProofResult:
    minimum, maximum = step.params.get("min-available"), step.params.get("max-unavailable")
    if minimum is not None:
        return check_stored(timeline, step, _MIN, minimum, f"minAvailable {minimum}")
    return check_stored(timeline, step, _MAX, maximum, f"maxUnavailable {maximum}")


class BudgetState(Struct, frozen=True):
    """Path of the budget, the limits to set (None: remove), and the previous ones."""

    path: BudgetPath
    min_available: int | str | None
    max_unavailable: int | str | None
    previous: PreviousFields


class PatchBudget(Action[Params, BudgetState]):
    """The disruption controller updates the budget's status at once. The other limit is removed: a budget has one."""

    name = "patch-budget"
    summary = "change what a PodDisruptionBudget allows"
    example = "{name: tighten, action: patch-budget, with: {namespace: default, name: web, max-unavailable: 0}}"
    params = Params
    state = BudgetState
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("stored", _check_stored),)
    scope = Scope.CLUSTER
    on_host = False

    def api_reads(self, node: str, params: Params, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - no node
        return (_path(params, namespace),)

    def permissions(self, params: Params) -> tuple[Permission, ...]:
        inside = explicit_namespace(params.namespace)
        return permissions_on("poddisruptionbudgets", "get", "patch", group="policy", namespace=inside)

    def prepare(self, target: Target, params: Params) -> BudgetState:
        path = _path(params, target.namespace)
        previous = capture_fields(target, params, path, (_MIN, _MAX))
        return BudgetState(path, params.min_available, params.max_unavailable, previous)

    def inject(self, state: BudgetState) -> tuple[Command, ...]:
        spec = _spec(state.min_available, state.max_unavailable)
        return (KubeCommand("PATCH", state.path, spec, MERGE_PATCH, evidence_pointers=(_MIN, _MAX)),)

    def undo(self, state: BudgetState) -> Undo:
        previous = state.previous or {}
        return restore_patch(state.path, state.previous, _spec(previous.get(_MIN), previous.get(_MAX)))


def _path(params: Params, namespace: str) -> str:
    inside = namespace if params.namespace == "workload" else params.namespace
    return f"/apis/policy/v1/namespaces/{inside}/poddisruptionbudgets/{params.name}"


def _spec(minimum: Any, maximum: Any) -> dict[str, Any]:
    return {"spec": {"minAvailable": minimum, "maxUnavailable": maximum}}


ACTION = PatchBudget()
