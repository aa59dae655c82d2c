"""Assertion ``node-condition``: a condition of a node has a status, reason and message."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chaos.core.assertion import Claim, Names, View
from chaos.core.field_types import Model
from chaos.core.kube import Condition, Node, node_condition
from chaos.core.signal import SubjectSet
from chaos.core.timeline import Version
from chaos.verdicts.judge.roster import node_subjects
from chaos.verdicts.judge.signals import Observation, Pattern, matches

_MAX_WORDS = 4  # of a message in a sentence for people


class Params(Model):
    """Condition, with the expected status, reason and message."""

    node: str = Field(description="A target, or all.")
    type: str = "Ready"
    status: Literal["True", "False", "Unknown"]
    reason: str | None = None
    message: Pattern | None = None


def _describe(condition: Condition) -> str:
    message = f": {condition.message}" if condition.message else ""
    return f"{condition.type} is {condition.status} ({condition.reason or 'no reason'}{message})"


class NodeCondition:
    """The condition has the given status and, if they are given, the reason and the message. A missing condition or
    Node has none of them.
    """

    name = "node-condition"
    summary = "a condition of a node has a status, reason and message"
    example = (
        '{assert: node-condition, with: {node: victim, type: Ready, status: "False", '
        "message: node is shutting down}, within: 5s}"
    )
    needs = "the Node object, watched without a gap"
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ()
    masks_itself = True
    sources = ("nodes",)

    def claim(self, params: Params, names: Names) -> Claim:
        node = names.nodes(params.node)
        if (params.type, params.status, params.reason, params.message) == ("Ready", "True", None, None):
            return node.is_("Ready")
        words = len((params.message or "").split())
        message = params.message if words <= _MAX_WORDS else "the expected message"
        details = ": ".join(part for part in (params.reason, message) if part)
        text = f"{params.type}={params.status}{f' ({details})' if details else ''}"
        return node.claim(f"had {text}", f"did not have {text}")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        def observe(version: Version[Node]) -> Observation:
            if version.is_deleted:
                return False, "the Node object was deleted"
            condition = node_condition(version.object, params.type)
            if condition is None:
                return False, f"no condition {params.type}"
            is_equal = (
                condition.status == params.status
                and params.reason in (None, condition.reason)
                and (params.message is None or matches(params.message, condition.message))
            )
            return is_equal, _describe(condition)

        subjects = node_subjects(view, view.nodes(params.node), observe)
        expected = Condition(params.type, params.status, params.reason or "any reason", params.message)
        return SubjectSet(_describe(expected), subjects, empty_reason="no node was observed")


ASSERTION = NodeCondition()
