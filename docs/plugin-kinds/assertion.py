"""Assertion ``my-plugin``: the node has a taint with a key."""

from __future__ import annotations

from pydantic import Field

from chaos.extend.assertion import Model, Sample, Signal, Subject, SubjectSet, View

NODEFALL_CONTRACT = 1  # the version of the plug-in contract that this was written for


class Params(Model):
    """The keys of ``with``."""

    node: str = Field(description="a target")
    key: str = Field(description="the key of the taint")


class MyAssertion:
    """Says what was true of each state of the Node; nodefall adds time, and what was not observed."""

    name = "my-plugin"
    summary = "a node has a taint"
    example = "{assert: my-plugin, with: {node: victim, key: maintenance}, always: {for: 30s}}"
    needs = "Node objects"
    params = Params
    node_fields = ("node",)
    moment_fields = ()
    sources = ("nodes",)

    def subjects(self, params: Params, view: View) -> SubjectSet:
        """One subject for each node of the target."""
        nodes = view.nodes(params.node)
        return SubjectSet("it has the taint", tuple(Subject(node, has_taint(view, node, params.key)) for node in nodes))


def has_taint(view: View, node: str, key: str) -> Signal:
    """Whether the Node had the taint, version by version."""
    versions = view.timeline.nodes.get(node) or ()
    keys = [(v, [taint.key for taint in (v.object.spec and v.object.spec.taints) or ()]) for v in versions]
    return Signal(tuple(Sample(v.t, key in found, v.seq, ", ".join(found) or "no taints") for v, found in keys))


ASSERTION = MyAssertion()
