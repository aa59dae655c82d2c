"""Assertion ``node-taint``: a node has, or does not have, a taint."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chaos.core.assertion import Claim, Names, View
from chaos.core.field_types import Flag, Model
from chaos.core.kube import Node
from chaos.core.signal import SubjectSet
from chaos.core.timeline import Version
from chaos.verdicts.judge.roster import node_subjects
from chaos.verdicts.judge.signals import Observation


class Params(Model):
    """Taint; ``present: false`` means that the node has no such taint."""

    node: str = Field(description="A target, or all.")
    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    value: str | None = None
    present: Flag = True

    def __str__(self) -> str:
        value = f"={self.value}" if self.value is not None else ""
        return f"{self.key}{value}:{self.effect or 'any effect'}"


class NodeTaint:
    """The node has a taint with that key and, if given, that effect and value. A deleted Node has no taints."""

    name = "node-taint"
    summary = "a node has, or does not have, a taint"
    example = (
        "{assert: node-taint, with: {node: victim, key: node.kubernetes.io/not-ready, effect: NoSchedule}, within: 5s}"
    )
    needs = "the Node object, watched without a gap"
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ()
    masks_itself = True
    sources = ("nodes",)

    def claim(self, params: Params, names: Names) -> Claim:
        value = f"={params.value}" if params.value else ""
        taint = f"{params.key}{value}{f':{params.effect}' if params.effect else ''}"
        holds, fails = f"had taint {taint}", f"did not have taint {taint}"
        return names.nodes(params.node).claim(*((holds, fails) if params.present else (fails, holds)))

    def subjects(self, params: Params, view: View) -> SubjectSet:
        def observe(version: Version[Node]) -> Observation:
            spec = version.object.spec
            taints = [] if version.is_deleted or spec is None else spec.taints or []
            has_taint = any(
                t.key == params.key and params.effect in (None, t.effect) and params.value in (None, t.value or "")
                for t in taints
            )
            text = ", ".join(f"{t.key}:{t.effect}" for t in taints)
            return has_taint is params.present, f"taints {text}" if text else "no taints"

        subjects = node_subjects(view, view.nodes(params.node), observe)
        return SubjectSet(
            f"{'the' if params.present else 'no'} taint {params}", subjects, empty_reason="no node was observed"
        )


ASSERTION = NodeTaint()
