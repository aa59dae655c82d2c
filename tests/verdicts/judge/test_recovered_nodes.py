"""Which nodes must be Ready again: one that the undo removes need not, however late its deletion is received."""

from __future__ import annotations

import pytest

from chaos.core.verdict import Status
from chaos.verdicts.judge.judge import judge
from tests.kit.node_versions import node
from tests.kit.story import HELD, INCONCLUSIVE, Story, experiment, plugin_registry

INVENT = "[{name: invent, action: create-node, with: {node: n3}}]"


def recovered(deleted: float, name: str = "n3") -> tuple[Status, str]:
    """A step creates n3 at 10, which is never Ready; its undo is over at 40, and the node ``name`` deleted by then."""
    story = node(Story(), 0, "n1", type_="LIST").node(0, "n2").current(1, "nodes").current(9.99, "nodes")
    story.act(10, "create-node", node="", step="invent", params={"node": "n3"})
    node(story, 10.1, "n3", ready="Unknown", type_="ADDED").current(10.2, "nodes")
    story.act(10.3, "create-node", "returned", node="", step="invent", params={"node": "n3"}, delivery="answered")
    story.current(39.5, "nodes").act(39.6, "create-node", "undo", node="", step="invent", params={"node": "n3"})
    story.act(40, "create-node", "undone", node="", step="invent", params={"node": "n3"})
    node(story, deleted, name, ready="Unknown", type_="DELETED").current(98, "nodes")
    result = judge(experiment(method=INVENT, recovery={"within": "30s"}), story.timeline(100), plugin_registry())
    (verdict,) = result.recovery
    return verdict.status, verdict.because


@pytest.mark.parametrize("deleted", [39.9, 40.000001, 41.5, 60.0])
def test_a_node_that_the_undo_removed_is_not_missed(deleted: float) -> None:
    status, because = recovered(deleted)
    assert status is HELD, because


def test_a_node_of_the_cluster_is_missed() -> None:
    status, because = recovered(40.000001, "n2")
    assert (status, "n2 was deleted" in because) == (INCONCLUSIVE, True), because
