"""A Node object without a machine."""

from __future__ import annotations

from msgspec import Struct
from pydantic import Field

from chaos.core.action import (
    Action,
    FactCheck,
    Proof,
    ProofResult,
    ProofStatus,
    Scope,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
)
from chaos.core.api_fact import node_path, object_fact
from chaos.core.command import Command, KubeCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof
from chaos.core.field_types import Model
from chaos.core.node_mark import NodeMark, NodeName, StepOrigin, Tag, origin_of
from chaos.core.permission import Permission, permissions_on
from chaos.core.timeline import Timeline

_NODES = "/api/v1/nodes"
_MADE_BY = "nodefall.dev/made-by"  # annotation: the step
_MADE_BY_POINTER = "/metadata/annotations/nodefall.dev~1made-by"


class Params(Model):
    """Name of the Node, which must not exist in the cluster."""

    node: str = Field(
        "nodefall-nowhere", max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", description="name of the Node"
    )


def _check_registered(timeline: Timeline, step: StepRun) -> ProofResult:
    name = str(step.params.get("node", Params().node))
    for version in timeline.nodes.get(name) or ():
        if not version.is_deleted and step.begin <= version.t <= step.until:
            return ProofResult(ProofStatus.PROVEN, f"the Node object {name} is there", (version.seq,))
    return no_proof(f"no Node object {name} was seen")


class CreateNodeState(Struct, frozen=True):
    """Name of the Node, and the tag in its annotation."""

    node: NodeName
    tag: Tag
    origin: StepOrigin | None = None


class CreateNode(Action[Params, CreateNodeState]):
    """As kubectl create. DaemonSet pods may be created for the Node, and are removed some time after it. Undo deletes
    the Node only if the step created it.
    """

    name = "create-node"
    summary = "create a Node object that has no kubelet"
    example = "{name: invent, action: create-node}"
    params = Params
    state = CreateNodeState
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("registered", _check_registered),)
    scope = Scope.CLUSTER
    on_host = False

    def api_reads(self, node: str, params: Params, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - only the new node
        return (node_path(params.node),)

    def permissions(self, params: Params) -> tuple[Permission, ...]:  # noqa: ARG002 - always the same
        return permissions_on("nodes", "create", "get", "delete")

    def prepare(self, target: Target, params: Params) -> CreateNodeState:
        if target.objects.get(node_path(params.node)) is not None:
            raise Unsupported(f"there is a node {params.node}", hint="choose another name")
        return CreateNodeState(params.node, target.tag, origin_of(target))

    def inject(self, state: CreateNodeState) -> tuple[Command, ...]:
        mark = NodeMark(state.origin.run, state.origin.step, created=True).to_annotations() if state.origin else {}
        metadata = {"name": state.node, "annotations": {_MADE_BY: state.tag, **mark}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        return (KubeCommand("POST", _NODES, node),)

    def undo(self, state: CreateNodeState) -> Undo:
        path = node_path(state.node)
        ours = FactCheck(object_fact(path, _MADE_BY_POINTER), state.tag)
        gone = FactCheck(object_fact(path, _MADE_BY_POINTER), None)
        delete = KubeCommand("DELETE", path, accept=(200, 202, 404))
        return Undo((UndoStep(delete, unless=gone, when=(ours,)),), (gone,))


ACTION = CreateNode()
