"""Versions that were received late, on handmade timelines. A step begins at 10."""

from __future__ import annotations

import pytest

from chaos.core.verdict import Status
from chaos.verdicts.judge.foreign_faults import foreign_faults
from chaos.verdicts.judge.judge import steady_state
from tests.kit.node_versions import node
from tests.kit.story import (
    HELD,
    INCONCLUSIVE,
    PENDING,
    T0,
    VIOLATED,
    Story,
    ask,
    context_of,
    experiment,
    plugin_registry,
)

READY = "{assert: nodes-ready, with: {nodes: all}, within: 5s}"
UNREADY = '{assert: node-condition, with: {node: victim, type: Ready, status: "False"}, within: 5s}'
REPLACED = "{assert: pods, with: {node: victim, at: stop, each: {replaced: {node: other}}}, within: 60s}"
COUNT = "{assert: pods, with: {namespace: demo, count: {most: 1, ready: true}}, always: {for: 20s}}"


def proven(story: Story, *sources: str, first: int = 0, last: int = 60) -> Story:
    """Each second, everything about the resources is proven to be received."""
    for t in range(first, last):
        for source in sources or ("nodes",):
            story.current(t, source)
    return story


def node_received_at_40(earliest: float) -> Story:
    """Node n2 is not ready; it joined after ``earliest``."""
    story = (
        Story()
        .node(0, "n1", type_="LIST")
        .current(earliest, "nodes")
        .node(40, "n2", "False", type_="ADDED", heartbeat=0)
    )
    return story.current(13, "nodes", ["uid-n2"], complete=13).current(41, "nodes")


@pytest.mark.parametrize(("earliest", "status"), [(5, INCONCLUSIVE), (10.5, HELD), (39, HELD)])
def test_a_node_that_may_have_been_there_at_the_beginning(earliest: float, status: Status) -> None:
    verdict = ask(node_received_at_40(earliest), READY)
    assert verdict.status is status, verdict.because
    if status is INCONCLUSIVE:
        assert "n2 may have come or gone" in verdict.because


def test_all_nodes_are_known_only_once_the_watch_is_complete() -> None:
    story = Story().node(0, "n1", type_="LIST").current(20, "nodes", complete=9)
    assert ask(story, READY, end=20, live=True).status is PENDING
    assert ask(story.current(21, "nodes"), READY, end=21, live=True).status is HELD


def test_for_the_steady_state_a_list_shortly_before_is_enough() -> None:
    """A server whose bookmarks lag behind is no reason to refuse."""
    story = Story().node(0, "n1", type_="LIST").current(20, "nodes", complete=0).done(45, "poweroff", step="stop")
    context = context_of(story, experiment(), 45)
    assert [verdict.status for verdict in steady_state(context, T0 + 45)] == [HELD]
    assert [verdict.status for verdict in steady_state(context, T0 + 51)] == [INCONCLUSIVE]


def test_a_deleted_node_may_have_come_back() -> None:
    """What is known of the old object says nothing about another of the same name."""
    story = proven(Story().node(0, "n1"), last=10).node(11, "n1", type_="DELETED")
    story.current(16, "nodes", ["uid-of-the-new-one"], complete=9)
    assert ask(story, UNREADY, end=16, live=True).status is PENDING
    assert ask(story.current(17, "nodes"), UNREADY, end=17, live=True).status is VIOLATED


def replacement_received_at_40(earliest: float) -> Story:
    story = Story().pod(0, "a", type_="LIST").pod(12, "a", type_="DELETED").current(earliest, "pods")
    story.pod(40, "b", node="n2", type_="ADDED")
    return story.current(13, "pods", ["uid-b"]).current(41, "pods").current(80, "pods")


@pytest.mark.parametrize(("earliest", "status"), [(5, INCONCLUSIVE), (12.5, HELD)])
def test_a_pod_that_may_have_been_there_before_is_no_certain_replacement(earliest: float, status: Status) -> None:
    verdict = ask(replacement_received_at_40(earliest), REPLACED)
    assert verdict.status is status, verdict.because


@pytest.mark.parametrize(("complete", "status"), [(29, PENDING), (30, HELD)])
def test_a_set_that_is_not_frozen_may_have_had_another_pod(complete: float, status: Status) -> None:
    story = Story().pod(0, "a", type_="LIST").current(5, "pods").current(31, "pods", complete=complete)
    assert ask(story, COUNT, end=31, live=True).status is status


STAYS_READY = '{assert: node-condition, with: {node: victim, type: Ready, status: "True"}, always: {for: 60s}}'
ONE_STAYS = "{assert: pods, with: {node: victim, at: stop, each: {phase: [Running]}}, always: {for: 60s}}"


@pytest.mark.parametrize(
    ("expectation", "changed", "status"),
    [
        (STAYS_READY, [], HELD),
        (STAYS_READY, ["uid-n2", "uid-b"], HELD),
        (STAYS_READY, ["uid-n1"], INCONCLUSIVE),
        (STAYS_READY, None, INCONCLUSIVE),
        (ONE_STAYS, ["uid-b"], HELD),
        (ONE_STAYS, ["uid-a"], INCONCLUSIVE),
        (COUNT, [], INCONCLUSIVE),  # another may have come and gone
    ],
)
def test_what_a_new_list_has_in_the_same_version_did_not_change(
    expectation: str, changed: list[str] | None, status: Status
) -> None:
    story = Story().node(0, "n1", type_="LIST").pod(0, "a", type_="LIST")
    for source in ("nodes", "pods"):
        story.blind(15, 28, source, "410", changed=changed).current(28, source).current(80, source)
    verdict = ask(story, expectation)
    assert verdict.status is status, verdict.because


@pytest.mark.parametrize(("proof", "texts"), [(29, []), (45, ["n1 was uncordoned (who did it is unknown)"])])
def test_a_change_of_the_run_itself_that_is_received_late_is_not_foreign(proof: int, texts: list[str]) -> None:
    """The undo was over at 30.2, and the uncordoned Node came at 60."""
    story = node(Story(nodefall="0.2.0"), 0, "n1", type_="LIST").done(10, "cordon")
    node(story, 10.1, "n1", cordoned=True, owners={"unschedulable": "nodefall"})
    story.act(30, "cordon", "undo").act(30.2, "cordon", "undone").current(proof, "nodes")
    node(story, 60, "n1").current(61, "nodes")
    found = foreign_faults(story.timeline(100), plugin_registry(), ("n1",), "")
    assert [each.text for each in found] == texts


def test_a_lease_that_is_received_late_is_no_silence() -> None:
    story = Story(nodefall="0.2.0").lease(0).lease(10)
    node(story, 0, "n1", type_="LIST")
    node(story, 50, "n1", ready="Unknown")
    assert len(foreign_faults(story.timeline(100), plugin_registry(), (), "")) == 1
    story.current(15, "leases").lease(60, renewed=49).current(61, "leases")
    assert foreign_faults(story.timeline(100), plugin_registry(), (), "") == ()
