"""What the actions on a Node object share: the cordon, its taints, and what the recorded versions show of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.model.action import FactCheck, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoStep
from chaos.model.api_fact import field, node_path, taint_fact, taint_value, unschedulable_fact
from chaos.model.command import MERGE_PATCH, KubeCommand, TaintsCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import no_proof
from chaos.model.kube import Node
from chaos.model.timeline import Timeline


def node_object(target: Target) -> dict[str, Any]:
    """The node as it is before. Raises Unsupported."""
    found = target.objects.get(node_path(target.node))
    if not isinstance(found, dict):
        raise Unsupported(f"the node {target.node} could not be read", hint="is it still there?")
    return found


def cordon(node: str, on: bool) -> KubeCommand:
    """As kubectl cordon: one field, null takes it away."""
    return KubeCommand("PATCH", node_path(node), {"spec": {"unschedulable": on or None}}, MERGE_PATCH)


def is_cordoned(target: Target) -> bool:
    return bool(field(node_object(target), "/spec/unschedulable"))


def restore_cordon(node: str, cordoned: bool) -> Undo:
    as_before = FactCheck(unschedulable_fact(node), True if cordoned else None)
    return Undo((UndoStep(cordon(node, cordoned), unless=as_before),), (as_before,))


def restore_taints(node: str, before: dict[str, str | None], when: tuple[FactCheck, ...] = ()) -> Undo:
    """``before``: the value of each taint (``KEY:EFFECT``) that the action may touch, None where it was not there."""
    steps, proof = [], []
    for name, value in before.items():
        key, _, effect = name.rpartition(":")
        check = FactCheck(taint_fact(key, effect), value)
        back = () if value is None else (taint(key, value, effect),)
        command = TaintsCommand(node, add=back) if back else TaintsCommand(node, remove=(name,), accept=(200, 404))
        steps.append(UndoStep(command, unless=check, when=when))
        proof.append(check)
    return Undo(tuple(steps), tuple(proof))


def taint(key: str, value: str, effect: str) -> dict[str, str]:
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def capture_taint(target: Target, key: str, effect: str) -> dict[str, str | None]:
    return {f"{key}:{effect}": taint_value(node_object(target), f"{key}:{effect}")}


def has_taint(node: Node, key: str, effect: str = "") -> bool:
    taints = (node.spec.taints if node.spec else None) or ()
    return any(t.key == key and effect in ("", t.effect) for t in taints)


def check_node(timeline: Timeline, step: StepRun, accept: Callable[[Node], bool], what: str) -> ProofResult:
    """Proven by a version of the Node object, in force when the step began or later, that ``accept`` likes."""
    history = timeline.nodes.get(step.node)
    before = history.at(step.begin) if history else None
    for version in history or ():
        seen = version is before or step.begin < version.t <= step.until
        if seen and not version.is_deleted and accept(version.object):
            return ProofResult(ProofStatus.PROVEN, f"{step.node} {what}", (version.seq,))
    return no_proof(f"it was not seen that {step.node} {what}")


def _is_unschedulable(node: Node) -> bool:
    return bool(node.spec and node.spec.unschedulable)


def check_cordoned(timeline: Timeline, step: StepRun) -> ProofResult:
    return check_node(timeline, step, _is_unschedulable, "is cordoned")


def check_uncordoned(timeline: Timeline, step: StepRun) -> ProofResult:
    return check_node(timeline, step, lambda node: not _is_unschedulable(node), "is not cordoned")


CORDONED, UNCORDONED = Proof("cordoned", check_cordoned), Proof("uncordoned", check_uncordoned)
