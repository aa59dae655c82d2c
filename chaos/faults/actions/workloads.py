"""Workloads and their budgets: replicas, rollouts, and what a PodDisruptionBudget allows."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from msgspec import Struct
from pydantic import Field, model_validator

from chaos.core.action import (
    NAMESPACE,
    Action,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    Scope,
    StepRun,
    Target,
    UndoKind,
)
from chaos.core.api_path import resource_path
from chaos.core.command import MERGE_PATCH, KubeCommand
from chaos.core.evidence import no_proof
from chaos.core.kube import controller_of
from chaos.core.node_mark import BudgetPath, Tag, WorkloadPath
from chaos.core.permission import permissions_on
from chaos.core.timeline import Timeline
from chaos.faults.actions._pods import explicit_namespace
from chaos.faults.actions._workloads import (
    ObjectParams,
    PreviousFields,
    WorkloadParams,
    capture_fields,
    check_stored,
    plural,
    restore_patch,
    versions_after,
    workload_path,
    workload_permissions,
)

_REPLICAS = "/spec/replicas"
_KEY = "nodefall.dev/restarted"
_POINTER = "/spec/template/metadata/annotations/" + _KEY.replace("/", "~1")
_MIN, _MAX = "/spec/minAvailable", "/spec/maxUnavailable"
Amount = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=r"^\d+%$")]


class ScaleParams(ObjectParams):
    """The workload, and the number of replicas."""

    kind: Literal["deployment", "statefulset"]
    replicas: int = Field(ge=0)


def _check_scaled(timeline: Timeline, step: StepRun) -> ProofResult:
    _, versions = versions_after(timeline, step)
    for version in versions:
        if version.object.spec and version.object.spec.replicas == step.params.get("replicas"):
            return ProofResult(ProofStatus.PROVEN, f"it wants {version.object.spec.replicas} replicas", (version.seq,))
    return no_proof("its number of replicas was not seen to change")


def _check_replicas_stored(timeline: Timeline, step: StepRun) -> ProofResult:
    wanted = step.params.get("replicas")
    return check_stored(timeline, step, _REPLICAS, wanted, f"{wanted} replicas")


class ScaleState(Struct, frozen=True):
    """The workload's API path, the number of replicas to set, and the previous number."""

    path: WorkloadPath
    replicas: int
    previous: PreviousFields


def _prepare_scale(target: Target, params: ScaleParams) -> ScaleState:
    path = workload_path(params, target.namespace)
    return ScaleState(path, params.replicas, capture_fields(target, params, path, (_REPLICAS,)))


def _scale(state: ScaleState) -> Program:
    body = {"spec": {"replicas": state.replicas}}
    patch = KubeCommand("PATCH", f"{state.path}/scale", body, MERGE_PATCH, evidence_pointers=(_REPLICAS,))
    replicas = (state.previous or {}).get(_REPLICAS)
    return Program((patch,), restore_patch(state.path, state.previous, {"spec": {"replicas": replicas}}))


SCALE = Action(
    name="scale",
    summary="set the number of replicas of a Deployment or StatefulSet",
    description="Patches the subresource scale, as kubectl. Undo sets the previous number; deleted pods are replaced.",
    example="{name: scale, action: scale, with: {kind: deployment, namespace: default, name: web, replicas: 2}}",
    params=ScaleParams,
    state=ScaleState,
    undo_kind=UndoKind.RESTORES,
    scope=Scope.CLUSTER,
    on_host=False,
    proofs=(Proof("replicas", _check_scaled), Proof("stored", _check_replicas_stored)),
    needs=lambda params: Needs(
        objects=(workload_path(params, NAMESPACE),),
        permissions=workload_permissions(params, plural(params.kind), "/scale"),
    ),
    prepare=_prepare_scale,
    program=_scale,
)


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
    """The workload's API path, the annotation value to set, and the previous value."""

    path: WorkloadPath
    tag: Tag
    previous: PreviousFields


def _prepare_restart(target: Target, params: WorkloadParams) -> RestartState:
    path = workload_path(params, target.namespace)
    return RestartState(path, target.tag, capture_fields(target, params, path, (_POINTER,)))


def _annotate(value: str | None) -> dict[str, Any]:
    return {"spec": {"template": {"metadata": {"annotations": {_KEY: value}}}}}


def _restart(state: RestartState) -> Program:
    former = _annotate((state.previous or {}).get(_POINTER))
    return Program(
        (KubeCommand("PATCH", state.path, _annotate(state.tag), MERGE_PATCH),),
        restore_patch(state.path, state.previous, former),
    )


ROLLOUT_RESTART = Action(
    name="rollout-restart",
    summary="restart all pods of a Deployment, StatefulSet or DaemonSet by a rollout",
    description="""
    Annotates the pod template, as kubectl rollout restart does. Undo removes the annotation, which causes another
    rollout.
    """,
    example="{name: restart, action: rollout-restart, with: {kind: deployment, namespace: default, name: web}}",
    params=WorkloadParams,
    state=RestartState,
    undo_kind=UndoKind.RESTORES,
    scope=Scope.CLUSTER,
    on_host=False,
    proofs=(Proof("new-pods", _check_new_pods), Proof("generation", _check_generation)),
    needs=lambda params: Needs(
        objects=(workload_path(params, NAMESPACE),), permissions=workload_permissions(params, plural(params.kind))
    ),
    prepare=_prepare_restart,
    program=_restart,
)


class BudgetParams(ObjectParams):
    """The budget, and one of its two limits."""

    min_available: Amount | None = Field(None, alias="min-available", description="A number or a percentage.")
    max_unavailable: Amount | None = Field(None, alias="max-unavailable", description="A number or a percentage.")

    @model_validator(mode="after")
    def _validate_one_limit(self) -> Self:
        if (self.min_available is None) == (self.max_unavailable is None):
            raise ValueError("give either min-available or max-unavailable")
        return self


def _check_budget_stored(timeline: Timeline, step: StepRun) -> ProofResult:
    minimum, maximum = step.params.get("min-available"), step.params.get("max-unavailable")
    if minimum is not None:
        return check_stored(timeline, step, _MIN, minimum, f"minAvailable {minimum}")
    return check_stored(timeline, step, _MAX, maximum, f"maxUnavailable {maximum}")


class BudgetState(Struct, frozen=True):
    """The budget's API path, the limits to set (None: remove), and the previous limits."""

    path: BudgetPath
    min_available: int | str | None
    max_unavailable: int | str | None
    previous: PreviousFields


def _budget_path(params: BudgetParams, namespace: str) -> str:
    inside = namespace if params.namespace == "workload" else params.namespace
    return resource_path("policy/v1", "poddisruptionbudgets", inside, params.name)


def _budget_needs(params: BudgetParams) -> Needs:
    inside = explicit_namespace(params.namespace)
    return Needs(
        objects=(_budget_path(params, NAMESPACE),),
        permissions=permissions_on("poddisruptionbudgets", "get", "patch", group="policy", namespace=inside),
    )


def _prepare_budget(target: Target, params: BudgetParams) -> BudgetState:
    path = _budget_path(params, target.namespace)
    previous = capture_fields(target, params, path, (_MIN, _MAX))
    return BudgetState(path, params.min_available, params.max_unavailable, previous)


def _patch_budget(state: BudgetState) -> Program:
    spec = _spec(state.min_available, state.max_unavailable)
    former = _spec(*((state.previous or {}).get(pointer) for pointer in (_MIN, _MAX)))
    return Program(
        (KubeCommand("PATCH", state.path, spec, MERGE_PATCH, evidence_pointers=(_MIN, _MAX)),),
        restore_patch(state.path, state.previous, former),
    )


def _spec(minimum: Any, maximum: Any) -> dict[str, Any]:
    return {"spec": {"minAvailable": minimum, "maxUnavailable": maximum}}


PATCH_BUDGET = Action(
    name="patch-budget",
    summary="change what a PodDisruptionBudget allows",
    description="""
    The disruption controller updates the status of the budget at once. The other limit is removed, because a budget
    has only one.
    """,
    example="{name: tighten, action: patch-budget, with: {namespace: default, name: web, max-unavailable: 0}}",
    params=BudgetParams,
    state=BudgetState,
    undo_kind=UndoKind.RESTORES,
    scope=Scope.CLUSTER,
    on_host=False,
    proofs=(Proof("stored", _check_budget_stored),),
    needs=_budget_needs,
    prepare=_prepare_budget,
    program=_patch_budget,
)
