"""Assertion ``nodes-ready``: nodes are Ready."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from chaos.judge.signals import Observation, node_signal
from chaos.model.assertion import NothingToJudge, View
from chaos.model.document import Model
from chaos.model.kube import Node, node_condition
from chaos.model.signal import Quantifier, Subject, SubjectSet
from chaos.model.timeline import Version


class Params(Model):
    """Nodes that must be Ready, or the number of all nodes that may not be."""

    nodes: str | None = Field(None, description="all, a target, or a node's name")
    not_ready_at_most: int | None = Field(None, alias="not-ready-at-most", ge=0)

    @model_validator(mode="after")
    def _check_exactly_one(self) -> Self:
        if (self.nodes is None) == (self.not_ready_at_most is None):
            raise ValueError("give exactly one of nodes or not-ready-at-most")
        return self


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
    """The status of the Ready condition is True. A node whose Node object was deleted is not ready.

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
    sources = ("nodes",)

    def subjects(self, params: Params, view: View) -> SubjectSet:
        names = view.nodes(params.nodes or "all")
        observe: Any = _ready if params.nodes else _not_ready
        subjects = tuple(Subject(n, node_signal(view.timeline, n, observe, view.timeline.nodes)) for n in names)
        if params.nodes:
            return SubjectSet("every node is Ready", subjects, empty_reason="no node was observed")
        if not names:
            raise NothingToJudge("no node was observed")
        most = params.not_ready_at_most
        return SubjectSet(f"at most {most} not Ready", subjects, Quantifier.COUNT, 0, most, "no node was observed")


ASSERTION = NodesReady()
