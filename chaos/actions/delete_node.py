"""The Node object deleted under a kubelet that runs on."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._nodes import cordon, node_object
from chaos.actions._service import systemctl, timer_unit
from chaos.model.action import (
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
    UndoState,
    UndoStep,
)
from chaos.model.api_fact import field, node_path, object_fact, taint_fact, unschedulable_fact
from chaos.model.command import MERGE_PATCH, Command, KubeCommand, TaintsCommand
from chaos.model.evidence import no_proof
from chaos.model.experiment import Model
from chaos.model.permission import PATCH_NODES, Permission, permissions_on
from chaos.model.timeline import Timeline

_REGISTRATION_SECONDS = 20.0  # seconds in which a kubelet that was restarted registers
# Taints that the control plane keeps by itself.
_CONTROL_PLANE_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class Params(Model):
    """Whether the machine is off, so that nothing can be done on it."""

    machine: Literal["on", "off"] = Field(
        "on", description="off: nothing is planted or restarted there; its kubelet registers when it boots"
    )


def _check_deleted(timeline: Timeline, step: StepRun) -> ProofResult:
    for version in timeline.nodes.get(step.node) or ():
        if version.is_deleted and step.begin <= version.t <= step.until:
            return ProofResult(ProofStatus.PROVEN, f"the Node object of {step.node} is gone", (version.seq,))
    return no_proof(f"the Node object of {step.node} was not seen to go")


class DeleteNode(Action):
    """A kubelet registers once per process (facts 11), so undo restarts it, then puts back labels, taints and cordon;
    uid and age are new. Pod GC removes the node's pods 40 s to 80 s after the deletion.
    """

    name = "delete-node"
    summary = "delete the Node object; the kubelet runs on and does not register again by itself"
    example = "{name: delete, action: delete-node, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("deleted", _check_deleted),)
    facts = ("kubelet-unit",)

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def permissions(self, params: Any) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return (*PATCH_NODES, *permissions_on("nodes", "delete"))

    def prepare(self, target: Target, params: Params) -> UndoState:
        node = node_object(target)
        taints = [t for t in field(node, "/spec/taints") or () if not t["key"].startswith(_CONTROL_PLANE_TAINTS)]
        return {
            "node": target.node,
            "machine": params.machine,
            "unit": target.require_fact("kubelet-unit", "only a restart of the kubelet registers the node again"),
            "labels": field(node, "/metadata/labels") or {},
            "taints": [{"key": t["key"], "value": t.get("value") or "", "effect": t["effect"]} for t in taints],
            "cordoned": bool(field(node, "/spec/unschedulable")),
            "tag": target.tag,
            "seconds": target.max_duration,
        }

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (KubeCommand("DELETE", node_path(memory["node"])),)

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer | None:
        if memory["machine"] == "off":
            return None
        return FailsafeTimer(timer_unit(memory), memory["seconds"], ("systemctl", "restart", memory["unit"]))

    def undo(self, memory: UndoState) -> Undo:
        node, ready = memory["node"], FactCheck("node-ready", True)
        labels = FactCheck(object_fact(node_path(node), "/metadata/labels"), memory["labels"])
        relabel = KubeCommand("PATCH", node_path(node), {"metadata": {"labels": memory["labels"]}}, MERGE_PATCH)
        steps = [UndoStep(relabel, unless=labels, grace_seconds=_REGISTRATION_SECONDS)]
        if memory["machine"] == "on":
            steps.insert(0, UndoStep(systemctl("restart", memory["unit"]), unless=ready))
        proof = [ready, labels]
        for taint in memory["taints"]:
            proof.append(FactCheck(taint_fact(taint["key"], taint["effect"]), taint["value"]))
            steps.append(
                UndoStep(TaintsCommand(node, add=(taint,)), unless=proof[-1], grace_seconds=_REGISTRATION_SECONDS)
            )
        if memory["cordoned"]:
            proof.append(FactCheck(unschedulable_fact(node), True))
            steps.append(UndoStep(cordon(node, True), unless=proof[-1], grace_seconds=_REGISTRATION_SECONDS))
        return Undo(tuple(steps), tuple(proof), disarm=timer_unit(memory) if memory["machine"] == "on" else "")


ACTION = DeleteNode()
