"""A node that takes no new pods: cordon and uncordon, and drain, which evicts its pods as kubectl does."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from pydantic import Field

from chaos.core.action import (
    NODE_NAME,
    Action,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    UndoKind,
)
from chaos.core.api_fact import pods_path
from chaos.core.command import DrainRules, PodsCommand, PodSelector, PodVerb
from chaos.core.drain_filter import select_pods
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof
from chaos.core.field_types import DurationText, Flag, Model
from chaos.core.kube_names import LabelSelector
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, origin_of
from chaos.core.permission import PATCH_NODES, permissions_on
from chaos.core.timeline import Timeline
from chaos.faults.actions._nodes import (
    CORDONED,
    READ_NODE,
    UNCORDONED,
    check_cordoned,
    cordon,
    cordon_mark,
    is_cordoned,
    mark_annotations,
    restore_cordon,
)
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._pods import affected_pods, is_disrupted, pods_matching, refusals


class CordonState(Struct, frozen=True):
    """Whether the node was cordoned before the step."""

    node: NodeName
    cordoned: bool
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return cordon_mark(self.origin, self.cordoned)


def _set_schedulable(unschedulable: bool, state: CordonState) -> Program:
    """Set ``unschedulable``; undo restores the previous value."""
    patch = cordon(state.node, unschedulable, mark_annotations(state.mark))
    return Program((patch,), restore_cordon(state.node, state.cordoned, state.mark))


def _prepare(target: Target, _: NoParams) -> CordonState:
    return CordonState(target.node, is_cordoned(target), origin_of(target))


CORDON = Action(
    name="cordon",
    summary="cordon the node: no new pod is scheduled there",
    description="Pods on the node stay. Undo leaves a node cordoned that was cordoned before.",
    example="{name: cordon, action: cordon, target: victim}",
    params=NoParams,
    state=CordonState,
    undo_kind=UndoKind.RESTORES,
    on_host=False,
    proofs=(CORDONED,),
    needs=Needs(objects=READ_NODE, permissions=PATCH_NODES),
    prepare=_prepare,
    program=partial(_set_schedulable, True),
)
UNCORDON = Action(
    name="uncordon",
    summary="uncordon the node: pods are scheduled there again",
    description="""
    Use it for a node that a drain or another tool cordoned. If the node was cordoned before, the undo cordons it
    again.
    """,
    example="{name: uncordon, action: uncordon, target: victim}",
    params=NoParams,
    state=CordonState,
    undo_kind=UndoKind.RESTORES,
    on_host=False,
    proofs=(UNCORDONED,),
    needs=Needs(objects=READ_NODE, permissions=PATCH_NODES),
    prepare=_prepare,
    program=partial(_set_schedulable, False),
)


class DrainParams(Model):
    """Flags of kubectl drain, with its defaults except for timeout."""

    ignore_daemonsets: Flag = Field(
        False, alias="ignore-daemonsets", description="Leave the pods of DaemonSets on the node."
    )
    delete_emptydir_data: Flag = Field(
        False, alias="delete-emptydir-data", description="Also evict pods with emptyDir volumes. Their data is lost."
    )
    force: Flag = Field(False, description="Also evict pods without a controller. They do not come back.")
    disable_eviction: Flag = Field(
        False,
        alias="disable-eviction",
        description="Delete pods instead of evicting them. No budget is checked and no DisruptionTarget is set.",
    )
    selector: LabelSelector = Field("", description="Evict only pods with these labels.")
    grace: int | None = Field(
        None, ge=0, description="The grace period for each pod in seconds. By default, the pod's own."
    )
    timeout: DurationText = Field(
        "5m", description="How long to retry refused evictions and to wait for pods to terminate."
    )


def _check_drained(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven when the node is cordoned and its pods were evicted, or their eviction refused."""
    node_cordoned = check_cordoned(timeline, step)
    if node_cordoned.status is not ProofStatus.PROVEN:
        return node_cordoned
    evicted, refused = pods_matching(timeline, step, is_disrupted), refusals(timeline, step)
    affected = affected_pods(timeline, step)
    if not evicted and not refused and (affected is None or affected.pods):
        return no_proof(f"{step.node} is cordoned, but no pod of it was seen to be evicted")
    parts = [node_cordoned.because, f"{len(evicted)} pods evicted"]
    if refused:
        parts.append(f"{len(refused)} refusals, the first: {refused[0]['message']}")
    seqs = (*node_cordoned.evidence, *(affected.seqs if affected else ()), *evicted)
    return ProofResult(ProofStatus.PROVEN, "; ".join(parts), seqs)


class DrainState(Struct, frozen=True):
    """Which pods to evict and how; ``timeout`` in seconds; whether the node was cordoned before."""

    node: NodeName
    cordoned: bool
    rules: DrainRules
    disable_eviction: bool
    selector: LabelSelector
    grace: int | None
    timeout: float
    origin: StepOrigin | None = None

    @property
    def mark(self) -> NodeMark | None:
        return cordon_mark(self.origin, self.cordoned)


def _drain_needs(params: DrainParams) -> Needs:
    evict = ("pods", "delete") if params.disable_eviction else ("pods/eviction", "create")
    reads = (*permissions_on("pods", "get"), *permissions_on("daemonsets", "get", group="apps"))
    return Needs(
        objects=(*READ_NODE, pods_path(NODE_NAME)), permissions=(*PATCH_NODES, *reads, *permissions_on(*evict))
    )


def _prepare_drain(target: Target, params: DrainParams) -> DrainState:
    rules = DrainRules(params.force, params.ignore_daemonsets, params.delete_emptydir_data)
    pods = (target.objects.get(pods_path(target.node)) or {}).get("items") or ()
    found = select_pods(pods, rules, lambda _namespace, _name: True) if not params.selector else None
    if found and found.refusals:
        raise Unsupported(
            f"{target.node} cannot be drained: {found.refusal_message}", hint="see the parameters of drain"
        )
    return DrainState(
        target.node,
        is_cordoned(target),
        rules,
        params.disable_eviction,
        params.selector,
        params.grace,
        parse_duration(params.timeout),
        origin_of(target),
    )


def _drain(state: DrainState) -> Program:
    verb = PodVerb.DELETE if state.disable_eviction else PodVerb.EVICT
    pods = PodSelector(node=state.node, selector=state.selector)
    evict = PodsCommand(verb, pods, state.grace, state.timeout, state.rules)
    patch = cordon(state.node, True, mark_annotations(state.mark))
    return Program((patch, evict), restore_cordon(state.node, state.cordoned, state.mark))


DRAIN = Action(
    name="drain",
    summary="drain the node as kubectl does: cordon it and evict its pods",
    description="""
    Like kubectl drain, the action evicts no pod at all if there is a pod that it must not evict. The undo uncordons
    the node, but pods that were replaced elsewhere do not move back. If a budget refuses an eviction, that is a
    result and not a failure of the step.
    """,
    example="{name: drain, action: drain, target: victim, with: {ignore-daemonsets: true, timeout: 2m}}",
    params=DrainParams,
    state=DrainState,
    undo_kind=UndoKind.RESTORES,
    irreversible_params=("force", "delete-emptydir-data"),
    on_host=False,
    proofs=(Proof("drained", _check_drained),),
    needs=_drain_needs,
    prepare=_prepare_drain,
    program=_drain,
)
