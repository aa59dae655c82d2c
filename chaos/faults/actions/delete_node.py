"""A Node object deleted while its kubelet runs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from pydantic import Field

from chaos.core.action import (
    Action,
    FactCheck,
    FailsafeTimer,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_unit,
)
from chaos.core.api_fact import PseudoFact, field, labels_fact, node_path, taint_fact, unschedulable_fact
from chaos.core.command import MERGE_PATCH, Command, KubeCommand, TaintsCommand
from chaos.core.evidence import no_proof
from chaos.core.field_types import Model
from chaos.core.node_mark import NodeName, NodeUnit, Tag
from chaos.core.permission import PATCH_NODES, Permission, permissions_on
from chaos.core.timeline import Timeline
from chaos.faults.actions._nodes import cordon, node_object
from chaos.faults.actions._service import systemctl

_REGISTRATION_SECONDS = 20.0  # in which a restarted kubelet registers
# Prefixes of taints that the control plane manages.
_CONTROL_PLANE_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class Params(Model):
    """Whether the machine is off, so that no command can be sent to it."""

    machine: Literal["on", "off"] = Field(
        "on", description="off: no timer is armed and nothing is restarted there; its kubelet registers when it boots"
    )


def _check_deleted(timeline: Timeline, step: StepRun) -> ProofResult:
    for version in timeline.nodes.get(step.node) or ():
        if version.is_deleted and step.begin <= version.t <= step.until:
            return ProofResult(ProofStatus.PROVEN, f"the Node object of {step.node} is gone", (version.seq,))
    return no_proof(f"the Node object of {step.node} was not seen to go")


class DeleteNodeState(Struct, frozen=True):
    """The Node's previous labels, taints and cordon; the kubelet's unit; the failsafe timer."""

    node: NodeName
    machine: Literal["on", "off"]
    unit: NodeUnit
    labels: dict[str, str]
    taints: list[dict[str, str]]
    cordoned: bool
    tag: Tag
    seconds: float


class DeleteNode(Action[Params, DeleteNodeState]):
    """A kubelet registers once per process (facts 11), so undo restarts it, then restores labels, taints and cordon;
    uid and age are new. Pod GC removes the node's pods 40 s to 80 s after the deletion.
    """

    name = "delete-node"
    summary = "delete the Node object; the kubelet keeps running and does not register again by itself"
    example = "{name: delete, action: delete-node, target: victim}"
    params = Params
    state = DeleteNodeState
    undo_kind = UndoKind.RESTORES
    stops_exec = True
    proofs = (Proof("deleted", _check_deleted),)
    facts = ("kubelet-unit",)

    def api_reads(self, node: str, params: Params, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Params) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return (*PATCH_NODES, *permissions_on("nodes", "delete"))

    def prepare(self, target: Target, params: Params) -> DeleteNodeState:
        node = node_object(target)
        taints = [t for t in field(node, "/spec/taints") or () if not t["key"].startswith(_CONTROL_PLANE_TAINTS)]
        return DeleteNodeState(
            node=target.node,
            machine=params.machine,
            unit=target.require_fact("kubelet-unit", "only a restart of the kubelet registers the node again"),
            labels=field(node, "/metadata/labels") or {},
            taints=[{"key": t["key"], "value": t.get("value") or "", "effect": t["effect"]} for t in taints],
            cordoned=bool(field(node, "/spec/unschedulable")),
            tag=target.tag,
            seconds=target.max_duration,
        )

    def inject(self, state: DeleteNodeState) -> tuple[Command, ...]:
        return (KubeCommand("DELETE", node_path(state.node)),)

    def failsafe_timer(self, state: DeleteNodeState) -> FailsafeTimer | None:
        if state.machine == "off":
            return None
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, ("systemctl", "restart", state.unit))

    def undo(self, state: DeleteNodeState) -> Undo:
        node, ready = state.node, FactCheck(PseudoFact.NODE_READY, True)
        labels = FactCheck(labels_fact(sorted(state.labels)), state.labels)
        relabel = KubeCommand("PATCH", node_path(node), {"metadata": {"labels": state.labels}}, MERGE_PATCH)
        steps = [UndoStep(relabel, unless=labels, grace_seconds=_REGISTRATION_SECONDS)]
        if state.machine == "on":
            steps.insert(0, UndoStep(systemctl("restart", state.unit), unless=ready))
        proof = [ready, labels]
        for taint in state.taints:
            proof.append(FactCheck(taint_fact(taint["key"], taint["effect"]), taint["value"]))
            steps.append(
                UndoStep(TaintsCommand(node, add=(taint,)), unless=proof[-1], grace_seconds=_REGISTRATION_SECONDS)
            )
        if state.cordoned:
            proof.append(FactCheck(unschedulable_fact(node), True))
            steps.append(UndoStep(cordon(node, True), unless=proof[-1], grace_seconds=_REGISTRATION_SECONDS))
        return Undo(tuple(steps), tuple(proof), disarm=failsafe_unit(state.tag) if state.machine == "on" else "")


ACTION = DeleteNode()
