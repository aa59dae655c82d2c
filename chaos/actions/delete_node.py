"""The Node object deleted under a kubelet that runs on."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.actions._nodes import cordon, node_object
from chaos.actions._service import systemctl, timer
from chaos.model.action import (
    Action,
    Check,
    Finding,
    Memory,
    Proof,
    SelfHeal,
    Shown,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
)
from chaos.model.apifact import field, node_path, object_fact, taint_fact, unschedulable_fact
from chaos.model.command import MERGE_PATCH, Command, KubeCommand, TaintsCommand
from chaos.model.evidence import not_shown
from chaos.model.experiment import Model
from chaos.model.right import PATCH_NODES, Right, rights_to
from chaos.model.timeline import Timeline

_REGISTERS = 20.0  # seconds in which a kubelet that was restarted registers
# Taints that the control plane keeps by itself.
_OWNED = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class Params(Model):
    """Whether the machine is off, so that nothing can be done on it."""

    machine: Literal["on", "off"] = Field(
        "on", description="off: nothing is planted or restarted there; its kubelet registers when it boots"
    )


def _deleted(timeline: Timeline, step: StepRun) -> Finding:
    for version in timeline.nodes.get(step.node) or ():
        if version.gone and step.begin <= version.t <= step.until:
            return Finding(Shown.PROVEN, f"the Node object of {step.node} is gone", (version.seq,))
    return not_shown(f"the Node object of {step.node} was not seen to go")


class DeleteNode(Action):
    """A kubelet registers once per process (facts 11), so undo restarts it, then puts back labels, taints and cordon;
    uid and age are new. Pod GC removes the node's pods 40 s to 80 s after the deletion.
    """

    name = "delete-node"
    summary = "delete the Node object; the kubelet runs on and does not register again by itself"
    example = "{name: delete, action: delete-node, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("deleted", _deleted),)
    facts = ("kubelet-unit",)

    def reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the node
        return (node_path(node),)

    def rights(self, params: Any) -> tuple[Right, ...]:  # noqa: ARG002 - always the same
        return (*PATCH_NODES, *rights_to("nodes", "delete"))

    def prepare(self, target: Target, params: Params) -> Memory:
        node = node_object(target)
        taints = [t for t in field(node, "/spec/taints") or () if not t["key"].startswith(_OWNED)]
        return {
            "node": target.node,
            "machine": params.machine,
            "unit": target.need("kubelet-unit", "only a restart of the kubelet registers the node again"),
            "labels": field(node, "/metadata/labels") or {},
            "taints": [{"key": t["key"], "value": t.get("value") or "", "effect": t["effect"]} for t in taints],
            "cordoned": bool(field(node, "/spec/unschedulable")),
            "tag": target.tag,
            "seconds": target.max_duration,
        }

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (KubeCommand("DELETE", node_path(memory["node"])),)

    def self_heal(self, memory: Memory) -> SelfHeal | None:
        if memory["machine"] == "off":
            return None
        return SelfHeal(timer(memory), memory["seconds"], ("systemctl", "restart", memory["unit"]))

    def undo(self, memory: Memory) -> Undo:
        node, ready = memory["node"], Check("node-ready", True)
        labels = Check(object_fact(node_path(node), "/metadata/labels"), memory["labels"])
        relabel = KubeCommand("PATCH", node_path(node), {"metadata": {"labels": memory["labels"]}}, MERGE_PATCH)
        steps = [UndoStep(relabel, unless=labels, patience=_REGISTERS)]
        if memory["machine"] == "on":
            steps.insert(0, UndoStep(systemctl("restart", memory["unit"]), unless=ready))
        proof = [ready, labels]
        for taint in memory["taints"]:
            proof.append(Check(taint_fact(taint["key"], taint["effect"]), taint["value"]))
            steps.append(UndoStep(TaintsCommand(node, add=(taint,)), unless=proof[-1], patience=_REGISTERS))
        if memory["cordoned"]:
            proof.append(Check(unschedulable_fact(node), True))
            steps.append(UndoStep(cordon(node, True), unless=proof[-1], patience=_REGISTERS))
        return Undo(tuple(steps), tuple(proof), disarm=timer(memory) if memory["machine"] == "on" else "")


ACTION = DeleteNode()
