"""Parts shared by actions on a Node object: cordon, taints, and proofs from the recorded versions of the Node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos.core.action import (
    NODE_NAME,
    FactCheck,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoStep,
)
from chaos.core.api_fact import PseudoFact, field, node_path, taint_fact, taint_value, unschedulable_fact
from chaos.core.command import MERGE_PATCH, Command, KubeCommand, TaintsCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof
from chaos.core.kube import Node
from chaos.core.node_mark import NodeMark, StepOrigin
from chaos.core.timeline import Timeline

READ_NODE = (node_path(NODE_NAME),)  # objects that prepare reads


def node_object(target: Target) -> dict[str, Any]:
    """The Node object before the step. Raises Unsupported."""
    node = target.objects.get(node_path(target.node))
    if not isinstance(node, dict):
        raise Unsupported(f"the node {target.node} could not be read", hint="check that the node exists")
    return node


def cordon(node: str, unschedulable: bool, notes: dict[str, str | None] | None = None) -> KubeCommand:
    """The patch of kubectl cordon, with the annotations ``notes``; null removes a field."""
    metadata = {"metadata": {"annotations": notes}} if notes else {}
    body = {**metadata, "spec": {"unschedulable": unschedulable or None}}
    return KubeCommand("PATCH", node_path(node), body, MERGE_PATCH)


def is_cordoned(target: Target) -> bool:
    """Whether the node is cordoned before the step."""
    return bool(field(node_object(target), "/spec/unschedulable"))


def cordon_mark(origin: StepOrigin | None, cordoned: bool) -> NodeMark | None:
    """The mark of a step that changes ``unschedulable``; None without an origin, as in journals of 0.1.0."""
    return NodeMark(origin.run, origin.step, cordoned=cordoned) if origin else None


def restore_cordon(node: str, cordoned: bool, mark: NodeMark | None) -> Undo:
    """Set the previous value of ``unschedulable``, and remove the mark.

    A cordon by another field manager stays: then only the mark is removed. It is not removed before the cordon.
    """
    if cordoned:
        restored = FactCheck(unschedulable_fact(node), True)
        return restore_once(node, cordon(node, cordoned, mark_removal(mark)), (restored,), mark)
    restored = FactCheck(PseudoFact.OWN_CORDON, False)
    uncordon = UndoStep(cordon(node, False, mark_removal(mark)), unless=restored)
    if mark is None:
        return Undo((uncordon,), (restored,))
    unmark = KubeCommand("PATCH", node_path(node), {"metadata": {"annotations": mark.to_removal()}}, MERGE_PATCH)
    removed = mark.removed_check(node)
    return Undo((uncordon, UndoStep(unmark, unless=removed, when=(restored,))), (restored, removed))


def taints_mark(origin: StepOrigin | None, previous: dict[str, str | None]) -> NodeMark | None:
    """The mark of a step that changes taints; None without anything to restore or without an origin."""
    return NodeMark(origin.run, origin.step, taints=previous) if origin and previous else None


def restore_taints(
    node: str, previous: dict[str, str | None], mark: NodeMark | None, when: tuple[FactCheck, ...] = ()
) -> Undo:
    """``previous``: values of the taints (``KEY:EFFECT``) that the action may change, None for absent ones."""
    names = [(name, *name.rpartition(":")[::2], value) for name, value in previous.items()]
    added = tuple(taint(key, value, effect) for _, key, effect, value in names if value is not None)
    removed = tuple(name for name, _, _, value in names if value is None)
    command = TaintsCommand(node, removed, added, (200,) if added else (200, 404), mark_removal(mark))
    restored = tuple(FactCheck(taint_fact(key, effect), value) for _, key, effect, value in names)
    return restore_once(node, command, restored, mark, when)


def restore_once(
    node: str,
    command: Command,
    restored: tuple[FactCheck, ...],
    mark: NodeMark | None,
    when: tuple[FactCheck, ...] = (),
) -> Undo:
    """A request that restores everything in ``restored`` and removes the mark, sent while one of its checks fails."""
    proof = (*restored, *((mark.removed_check(node),) if mark else ()))
    return Undo(tuple(UndoStep(command, unless=check, when=when) for check in proof), proof)


def mark_annotations(mark: NodeMark | None) -> dict[str, str | None]:
    """The annotations that set a mark, if there is one."""
    return mark.to_annotations() if mark else {}


def mark_removal(mark: NodeMark | None) -> dict[str, str | None]:
    """The annotations that remove a mark, if there is one."""
    return mark.to_removal() if mark else {}


def taint(key: str, value: str, effect: str) -> dict[str, str]:
    """A taint as written in the Node's spec."""
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def capture_taint(target: Target, key: str, effect: str) -> dict[str, str | None]:
    """The taint's value before the step, in the shape that :func:`restore_taints` takes."""
    return {f"{key}:{effect}": taint_value(node_object(target), f"{key}:{effect}")}


def has_taint(node: Node, key: str, effect: str = "") -> bool:
    """Whether the node has a taint with this key, and this effect unless it is ""."""
    taints = (node.spec.taints if node.spec else None) or ()
    return any(t.key == key and effect in ("", t.effect) for t in taints)


def check_node(timeline: Timeline, step: StepRun, accept: Callable[[Node], bool], what: str) -> ProofResult:
    """Proven by a version of the Node that satisfies ``accept``, in force when the step began or later."""
    history = timeline.nodes.get(step.node)
    before = history.at(step.begin) if history else None
    for version in history or ():
        in_time = version is before or step.begin < version.t <= step.until
        if in_time and not version.is_deleted and accept(version.object):
            return ProofResult(ProofStatus.PROVEN, f"{step.node} {what}", (version.seq,))
    return no_proof(f"it was not seen that {step.node} {what}")


def _is_unschedulable(node: Node) -> bool:
    return bool(node.spec and node.spec.unschedulable)


def check_cordoned(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a version of the Node that is unschedulable."""
    return check_node(timeline, step, _is_unschedulable, "is cordoned")


def check_uncordoned(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a version of the Node that is schedulable."""
    return check_node(timeline, step, lambda node: not _is_unschedulable(node), "is not cordoned")


CORDONED, UNCORDONED = Proof("cordoned", check_cordoned), Proof("uncordoned", check_uncordoned)
