"""Single pods of a node: deleted, evicted, marked, or freed of their finalizers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec import Struct

from chaos.core.action import Action, Needs, Program, Proof, Target, UndoKind
from chaos.core.command import PodsCommand, PodSelector, PodVerb
from chaos.core.kube import Pod
from chaos.core.kube_names import AnyObjectName, LabelSelector, Namespace
from chaos.core.node_mark import NodeName
from chaos.core.permission import permissions_on
from chaos.core.timeline import Version
from chaos.faults.actions._pods import (
    ACCEPTED,
    REFUSED,
    GraceParams,
    PodParams,
    explicit_namespace,
    is_evicted,
    is_gone,
    is_terminating,
    namespace_of,
    prove_pods,
)

P = TypeVar("P", bound=PodParams)
# Resource and verb of the permission, by verb of the PodsCommand.
_PERMISSIONS = {
    PodVerb.EVICT: ("pods/eviction", "create"),
    PodVerb.DELETE: ("pods", "delete"),
    PodVerb.REMOVE_FINALIZERS: ("pods", "patch"),
    PodVerb.MARK_DISRUPTION: ("pods/status", "patch"),
}


class PodState(Struct, frozen=True):
    """The selection of pods, and their grace period."""

    node: NodeName
    namespace: Namespace
    name: AnyObjectName
    selector: LabelSelector
    grace: int | None = None


def _prepare(target: Target, params: PodParams, grace: int | None = None) -> PodState:
    namespace = namespace_of(target, params.namespace)
    return PodState(target.node, namespace, params.name, params.selector, grace)


def _prepare_with_grace(target: Target, params: GraceParams) -> PodState:
    return _prepare(target, params, params.grace)


def _program(verb: PodVerb, state: PodState) -> Program:
    """The program selects pods when the command is sent. There is no undo: only a controller replaces a deleted pod."""
    selector = PodSelector(state.node, state.namespace, state.name, state.selector)
    return Program((PodsCommand(verb, selector, state.grace),))


def _needs(verb: PodVerb, params: PodParams) -> Needs:
    resource, api_verb = _PERMISSIONS[verb]
    return Needs(permissions=permissions_on(resource, api_verb, namespace=explicit_namespace(params.namespace)))


def _has_no_finalizers(version: Version[Pod]) -> bool:
    return version.is_deleted or not version.object.metadata.finalizers


def _pod_action(
    verb: PodVerb,
    params: type[P],
    prepare: Callable[[Target, P], PodState],
    *proofs: Proof,
    name: str,
    summary: str,
    description: str,
    example: str,
) -> Action[P, PodState]:
    return Action(
        name=name,
        summary=summary,
        description=description,
        example=example,
        params=params,
        state=PodState,
        undo_kind=UndoKind.IRREVERSIBLE,
        on_host=False,
        proofs=proofs,
        needs=partial(_needs, verb),
        prepare=prepare,
        program=partial(_program, verb),
    )


_ENDED = prove_pods("ended", is_terminating, "are being deleted")
DELETE_POD = _pod_action(
    PodVerb.DELETE,
    GraceParams,
    _prepare_with_grace,
    _ENDED,
    REFUSED,
    name="delete-pod",
    summary="delete pods of the node, with their grace period",
    description="""
    Budgets are not checked, and no DisruptionTarget condition is set. A refusal is recorded as a result.
    """,
    example="{name: delete, action: delete-pod, target: victim, with: {namespace: default, selector: app=agent}}",
)
FORCE_DELETE_POD = _pod_action(
    PodVerb.DELETE,
    PodParams,
    partial(_prepare, grace=0),
    prove_pods("gone", is_gone, "are gone from the API"),
    ACCEPTED,
    name="force-delete-pod",
    summary="delete pods of the node with grace period 0: their containers may still run",
    description="""
    With grace period 0, the containers may keep running beside their replacement, and the API does not show them
    (facts 10).
    """,
    example="{name: force, action: force-delete-pod, target: victim, with: {namespace: default, selector: app=agent}}",
)
EVICT_POD = _pod_action(
    PodVerb.EVICT,
    GraceParams,
    _prepare_with_grace,
    *(prove_pods("evicted", is_evicted, "have DisruptionTarget EvictionByEvictionAPI"), _ENDED, REFUSED),
    name="evict-pod",
    summary="evict pods of the node through the eviction API, as a drain does",
    description="""
    The eviction API checks the disruption budgets of the pods. A refusal is recorded as a result. Only drain retries.
    """,
    example="{name: evict, action: evict-pod, target: victim, with: {namespace: default, selector: app=agent}}",
)
REMOVE_FINALIZERS = _pod_action(
    PodVerb.REMOVE_FINALIZERS,
    PodParams,
    _prepare,
    prove_pods("without-finalizers", _has_no_finalizers, "have no finalizers"),
    ACCEPTED,
    name="remove-finalizers",
    summary="remove all finalizers from pods of the node",
    description="A terminating pod that only waits for its finalizers is deleted at once.",
    example="{name: free, action: remove-finalizers, target: victim, with: {namespace: workload, name: held}}",
)
MARK_DISRUPTION = _pod_action(
    PodVerb.MARK_DISRUPTION,
    PodParams,
    _prepare,
    prove_pods("marked", is_evicted, "are marked as evicted"),
    name="mark-disruption",
    summary="set DisruptionTarget=True on pods of the node, which keep running",
    description="""
    Simulates an eviction that lost its deletion, for example because the API server crashed between the two. The
    disruption controller removes the condition after 2 min (pkg/controller/disruption/disruption.go,
    nonTerminatingPodHasStaleDisruptionCondition).
    """,
    example="{name: mark, action: mark-disruption, target: victim, with: {namespace: workload, name: held}}",
)
