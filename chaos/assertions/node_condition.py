"""Does a condition of a node say this?"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chaos.judge.signals import Observation, Pattern, matches, node_signal
from chaos.model.assertion import View
from chaos.model.experiment import Model
from chaos.model.kube import Condition, Node, node_condition
from chaos.model.signal import Subject, SubjectSet
from chaos.model.timeline import Version


class Params(Model):
    """Which condition, and what it must say."""

    node: str = Field(description="a target, a node's name, or all")
    type: str = "Ready"
    status: Literal["True", "False", "Unknown"]
    reason: str | None = None
    message: Pattern | None = None


def _describe(condition: Condition) -> str:
    message = f": {condition.message}" if condition.message else ""
    return f"{condition.type} is {condition.status} ({condition.reason or 'no reason'}{message})"


class NodeCondition:
    """Status, and reason and message where they are given. An absent condition or Node says nothing of the kind."""

    name = "node-condition"
    summary = "a condition of a node has a status, reason and message"
    example = (
        '{assert: node-condition, with: {node: victim, type: Ready, status: "False", '
        "message: node is shutting down}, within: 5s}"
    )
    needs = "the Node object, watched without a gap"
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        def tell(version: Version[Node]) -> Observation:
            if version.is_deleted:
                return False, "the Node object was deleted"
            found = node_condition(version.object, params.type)
            if found is None:
                return False, f"it has no condition {params.type}"
            same = (
                found.status == params.status
                and params.reason in (None, found.reason)
                and (params.message is None or matches(params.message, found.message))
            )
            return same, _describe(found)

        nodes = view.timeline.nodes
        subjects = tuple(Subject(n, node_signal(view.timeline, n, tell, nodes)) for n in view.nodes(params.node))
        wanted = Condition(params.type, params.status, params.reason, params.message)
        reason = wanted if params.reason else Condition(params.type, params.status, "any reason", params.message)
        return SubjectSet(_describe(reason), subjects, empty_reason="no node was seen")


ASSERTION = NodeCondition()
