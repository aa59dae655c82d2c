"""Assertion ``nodes-ready``: nodes are Ready."""

from __future__ import annotations

from pydantic import Field

from chaos.core.assertion import Claim, Names, NothingToJudge, View
from chaos.core.field_types import Model
from chaos.core.kube import Node, node_condition
from chaos.core.signal import Quantifier, SubjectSet
from chaos.core.timeline import Version
from chaos.verdicts.judge.roster import node_subjects
from chaos.verdicts.judge.signals import Observation


class Params(Model):
    """Nodes that must be Ready, or the number of all nodes that may not be."""

    ONE_OF = ("nodes", "not-ready-at-most")

    nodes: str | None = Field(None, description="All, or a target.")
    not_ready_at_most: int | None = Field(None, alias="not-ready-at-most", ge=0)


def _ready(version: Version[Node]) -> Observation:
    if version.is_deleted:
        return False, "the Node object was deleted"
    ready = node_condition(version.object, "Ready")
    if ready is None:
        return False, "no Ready condition"
    return ready.status == "True", f"Ready is {ready.status} ({ready.reason or 'no reason'})"


def _not_ready(version: Version[Node]) -> Observation:
    value, text = _ready(version)
    return (None if value is None else not value), text


class NodesReady:
    """The Ready condition of the nodes is True. A node whose Node object was deleted is not ready.

    ``all`` means the nodes that exist when judging starts.
    """

    name = "nodes-ready"
    summary = "nodes are Ready, or at most a number of them are not"
    example = "{assert: nodes-ready, with: {nodes: all}}"
    needs = "the Node objects, watched without a gap"
    params = Params
    node_fields = ("nodes",)
    only_named_nodes = True
    moment_fields = ()
    masks_itself = True
    sources = ("nodes",)

    def claim(self, params: Params, names: Names) -> Claim:
        if params.nodes:
            return names.nodes(params.nodes).is_("Ready")
        most = params.not_ready_at_most
        if not most:
            return Claim("no node was NotReady", "a node was NotReady")
        nodes = "1 node was" if most == 1 else f"{most} nodes were"
        return Claim(f"at most {nodes} NotReady", f"more than {nodes} NotReady")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        names = view.nodes(params.nodes or "all")
        subjects = node_subjects(view, names, _ready if params.nodes else _not_ready)
        if params.nodes:
            return SubjectSet("every node is Ready", subjects, empty_reason="no node was observed")
        if not names:
            raise NothingToJudge("no node was observed")
        most = params.not_ready_at_most
        expected = f"at most {most} {'node is' if most == 1 else 'nodes are'} NotReady"
        return SubjectSet(expected, subjects, Quantifier.COUNT, 0, most, "no node was observed", unit="nodes NotReady")


ASSERTION = NodesReady()
