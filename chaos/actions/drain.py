"""kubectl drain: cordon, then evict what may be evicted, and try again where a budget refuses."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from chaos.actions._nodes import check_cordoned, cordon, is_cordoned, restore_cordon
from chaos.actions._pods import affected_pods, is_evicted, is_terminating, pods_matching, refusals
from chaos.model.action import Action, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.api_fact import node_path, pods_path
from chaos.model.command import Command, DrainRules, PodsCommand, PodSelector
from chaos.model.drain_filter import select_pods
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.evidence import no_proof
from chaos.model.experiment import DurationText, Model
from chaos.model.permission import PATCH_NODES, Permission, permissions_on
from chaos.model.timeline import Timeline


class Params(Model):
    """kubectl's flags, with its defaults but for the time."""

    ignore_daemonsets: bool = Field(False, alias="ignore-daemonsets", description="leave pods of DaemonSets alone")
    delete_emptydir_data: bool = Field(
        False, alias="delete-emptydir-data", description="evict pods with emptyDir volumes as well; the data is lost"
    )
    force: bool = Field(False, description="evict pods without a controller as well; they do not come back")
    disable_eviction: bool = Field(
        False, alias="disable-eviction", description="delete instead: no budget is asked, no DisruptionTarget written"
    )
    selector: str = Field("", description="only pods with these labels")
    grace: int | None = Field(None, ge=0, description="seconds for each pod; its own if left out")
    timeout: DurationText = Field("5m", description="how long refusals are tried again and the pods' end is awaited")


def _check_drained(timeline: Timeline, step: StepRun) -> ProofResult:
    """The node is cordoned, and what was on it was evicted, or its eviction refused."""
    cordon_ = check_cordoned(timeline, step)
    if cordon_.status is not ProofStatus.PROVEN:
        return cordon_
    ends = is_terminating if step.params.get("disable-eviction") else is_evicted
    evicted, said = pods_matching(timeline, step, ends), refusals(timeline, step)
    asked = affected_pods(timeline, step)
    if not evicted and not said and (asked is None or asked.pods):
        return no_proof(f"{step.node} is cordoned, but no pod of it was seen to be evicted")
    parts = [cordon_.because, f"{len(evicted)} pods evicted"]
    if said:
        parts.append(f"{len(said)} refusals, the first: {said[0]['message']}")
    return ProofResult(
        ProofStatus.PROVEN, "; ".join(parts), (*cordon_.evidence, *(asked.seqs if asked else ()), *evicted)
    )


class Drain(Action):
    """Everything is refused where one pod may not be evicted, as kubectl does. A pod that is replaced elsewhere does
    not move back with undo, which uncordons the node. A refusal by a budget is a result, not a failure of the step.
    """

    name = "drain"
    summary = "drain the node as kubectl does: cordon it and evict its pods"
    example = "{name: drain, action: drain, target: victim, with: {ignore-daemonsets: true, timeout: 2m}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    irreversible_params = ("force", "delete-emptydir-data")
    proofs = (Proof("drained", _check_drained),)
    on_host = False

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node), pods_path(node))

    def permissions(self, params: Any) -> tuple[Permission, ...]:
        ends = (
            permissions_on("pods", "delete") if params.disable_eviction else permissions_on("pods/eviction", "create")
        )
        return (*PATCH_NODES, *permissions_on("pods", "get"), *permissions_on("daemonsets", "get", group="apps"), *ends)

    def prepare(self, target: Target, params: Params) -> UndoState:
        rules = _rules(params.model_dump())
        pods = (target.objects.get(pods_path(target.node)) or {}).get("items") or ()
        found = select_pods(pods, rules, lambda _namespace, _name: True) if not params.selector else None
        if found and found.refusals:
            raise Unsupported(
                f"{target.node} cannot be drained: {found.refusal_message}", hint="see the parameters of drain"
            )
        return {"node": target.node, "cordoned": is_cordoned(target), "params": params.model_dump()}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        node, params = memory["node"], memory["params"]
        evict = PodsCommand(
            "delete" if params["disable_eviction"] else "evict",
            PodSelector(node=node, selector=params["selector"]),
            params["grace"],
            parse_duration(params["timeout"]),
            _rules(params),
        )
        return (cordon(node, True), evict)

    def undo(self, memory: UndoState) -> Undo:
        return restore_cordon(memory["node"], memory["cordoned"])


def _rules(params: dict[str, Any]) -> DrainRules:
    return DrainRules(params["force"], params["ignore_daemonsets"], params["delete_emptydir_data"])


ACTION = Drain()
