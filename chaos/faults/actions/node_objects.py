"""The Node object: created without a machine, or deleted while its kubelet runs."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta, Struct
from pydantic import Field, model_validator

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    Scope,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
)
from chaos.core.api_fact import field, labels_fact, node_path, object_fact, taint_fact, unschedulable_fact
from chaos.core.api_path import resource_path
from chaos.core.command import MERGE_PATCH, KubeCommand, TaintsCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof
from chaos.core.field_types import Flag, Model
from chaos.core.kube_names import LabelKey, LabelValue, TaintSpec
from chaos.core.node_mark import NodeMark, NodeName, NodeUnit, StepOrigin, Tag, origin_of
from chaos.core.permission import PATCH_NODES, permissions_on
from chaos.core.timeline import Timeline
from chaos.faults.actions._nodes import READ_NODE, cordon, node_object
from chaos.faults.actions._service import systemctl

_NODES = resource_path("v1", "nodes")
_MADE_BY = "nodefall.dev/made-by"  # annotation: the step
_MADE_AGAIN_BY = "nodefall.dev/made-again-by"  # of an object that the API server was to refuse
_REGISTRATION_SECONDS = 20.0  # in which a restarted kubelet registers
# Prefixes of taints that the control plane manages.
_CONTROL_PLANE_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


_ANY_NAME = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?"
_VALID_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_ANSWERS = (201, 409, 422)  # created, the name is taken, the name is invalid


class CreateParams(Model):
    """The name of the Node, which must not exist in the cluster unless the API server should refuse it."""

    node: str = Field("nodefall-nowhere", pattern=f"^{_ANY_NAME}$", description="The name of the Node.")
    refused: Flag = Field(
        False, description="The name is taken or invalid, so any answer of the API server proves the step."
    )

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        if not self.refused and not _VALID_NAME.fullmatch(self.node):
            raise ValueError(f"{self.node!r} is not a valid name for a Node: use refused: true to expect a refusal")
        return self


def _check_registered(timeline: Timeline, step: StepRun) -> ProofResult:
    name = str(step.params.get("node", CreateParams().node))
    if step.params.get("refused"):
        code = step.outcome.exit if step.outcome else None
        if code in _ANSWERS:
            return ProofResult(ProofStatus.PROVEN, f"the API server answered {code}")
        return no_proof("the API server did not answer whether the Node is valid")
    for version in timeline.nodes.get(name) or ():
        if not version.is_deleted and step.begin <= version.t <= step.until:
            return ProofResult(ProofStatus.PROVEN, f"the Node object {name} is there", (version.seq,))
    return no_proof(f"no Node object {name} was seen")


class CreateNodeState(Struct, frozen=True):
    """Name of the Node, and the tag in its annotation."""

    node: Annotated[str, Meta(pattern=rf"\A{_ANY_NAME}\Z")]
    tag: Tag
    origin: StepOrigin | None = None
    refused: bool = False


def _prepare_new(target: Target, params: CreateParams) -> CreateNodeState:
    if not params.refused and target.objects.get(node_path(params.node)) is not None:
        raise Unsupported(f"there is a node {params.node}", hint="choose another name")
    return CreateNodeState(params.node, target.tag, origin_of(target), params.refused)


def _create(state: CreateNodeState) -> Program:
    mark = NodeMark(state.origin.run, state.origin.step, created=True).to_annotations() if state.origin else {}
    made_by = _MADE_AGAIN_BY if state.refused else _MADE_BY
    metadata = {"name": state.node, "annotations": {made_by: state.tag, **({} if state.refused else mark)}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    path = node_path(state.node)
    pointer = "/metadata/annotations/" + made_by.replace("/", "~1")
    ours, gone = FactCheck(object_fact(path, pointer), state.tag), FactCheck(object_fact(path, pointer), None)
    delete = UndoStep(KubeCommand("DELETE", path, accept=(200, 202, 404)), unless=gone, when=(ours,))
    accept = _ANSWERS if state.refused else (200, 201, 202)
    return Program((KubeCommand("POST", _NODES, node, accept=accept),), Undo((delete,), (gone,)))


CREATE_NODE = Action(
    name="create-node",
    summary="create a Node object that has no kubelet",
    description="""
    Works like kubectl create. The DaemonSet controller may create pods for the Node, which are removed some time
    after the Node. Undo deletes the Node only if the step created it.
    """,
    example="{name: invent, action: create-node}",
    params=CreateParams,
    state=CreateNodeState,
    undo_kind=UndoKind.RESTORES,
    scope=Scope.CLUSTER,
    on_host=False,
    proofs=(Proof("registered", _check_registered),),
    needs=lambda params: Needs(
        objects=(node_path(params.node),), permissions=permissions_on("nodes", "create", "get", "delete")
    ),
    prepare=_prepare_new,
    program=_create,
)


class DeleteParams(Model):
    """Whether the machine is off, so that no command can be sent to it."""

    machine: Literal["on", "off"] = Field(
        "on", description="off: the machine is off. No timer is armed there, and its kubelet registers when it boots."
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
    labels: dict[LabelKey, LabelValue]
    taints: list[TaintSpec]
    cordoned: bool
    tag: Tag
    seconds: float


def _prepare(target: Target, params: DeleteParams) -> DeleteNodeState:
    node = node_object(target)
    taints = [t for t in field(node, "/spec/taints") or () if not t["key"].startswith(_CONTROL_PLANE_TAINTS)]
    return DeleteNodeState(
        node=target.node,
        machine=params.machine,
        unit=target.require_fact("kubelet-unit", "only a restart of the kubelet registers the node again"),
        labels=field(node, "/metadata/labels") or {},
        taints=[TaintSpec(key=t["key"], value=t.get("value") or "", effect=t["effect"]) for t in taints],
        cordoned=bool(field(node, "/spec/unschedulable")),
        tag=target.tag,
        seconds=target.max_duration,
    )


def _delete(state: DeleteNodeState) -> Program:
    delete = KubeCommand("DELETE", node_path(state.node))
    if state.machine == "off":
        return Program((delete,), _restore(state))
    restart = failsafe_timer(state, "systemctl", "restart", state.unit)
    return Program((delete,), _restore(state), failsafe=restart)


def _restore(state: DeleteNodeState) -> Undo:
    node = state.node
    labels = FactCheck(labels_fact(sorted(state.labels)), state.labels)
    relabel = KubeCommand("PATCH", node_path(node), {"metadata": {"labels": state.labels}}, MERGE_PATCH)
    steps = [UndoStep(relabel, unless=labels, grace_seconds=_REGISTRATION_SECONDS)]
    if state.machine == "on":
        steps.insert(0, UndoStep(systemctl("restart", state.unit), unless=NODE_READY))
    proof = [NODE_READY, labels]
    for taint in state.taints:
        proof.append(FactCheck(taint_fact(taint.key, taint.effect), taint.value))
        add = TaintsCommand(node, add=(msgspec.to_builtins(taint),))
        steps.append(UndoStep(add, unless=proof[-1], grace_seconds=_REGISTRATION_SECONDS))
    if state.cordoned:
        proof.append(FactCheck(unschedulable_fact(node), True))
        steps.append(UndoStep(cordon(node, True), unless=proof[-1], grace_seconds=_REGISTRATION_SECONDS))
    return Undo(tuple(steps), tuple(proof))


DELETE_NODE = Action(
    name="delete-node",
    summary="delete the Node object; the kubelet keeps running and does not register again by itself",
    description="""
    A kubelet registers once per process (facts 11). Therefore undo restarts the kubelet, and then restores labels,
    taints and cordon. The uid and the age of the Node are new. Pod GC removes the node's pods 40 s to 80 s after the
    deletion.
    """,
    example="{name: delete, action: delete-node, target: victim}",
    params=DeleteParams,
    state=DeleteNodeState,
    undo_kind=UndoKind.RESTORES,
    through_api=True,
    stops_exec=True,
    proofs=(Proof("deleted", _check_deleted),),
    needs=Needs(("kubelet-unit",), objects=READ_NODE, permissions=(*PATCH_NODES, *permissions_on("nodes", "delete"))),
    prepare=_prepare,
    program=_delete,
)
