"""nodes-ready, node-condition, node-taint, node-rebooted: a table of timelines each. A power-off of n1 begins at 10."""

from __future__ import annotations

import pytest

from chaos.core.verdict import Status
from tests.kit.story import HELD, INCONCLUSIVE, T0, VIOLATED, Story, ask

Row = tuple[str, Story, Status]


def two(ready1: str = "True", ready2: str = "True") -> Story:
    return Story().node(0, "n1", ready1).node(0, "n2", ready2)


@pytest.mark.parametrize(
    ("what", "story", "status"),
    [
        ("all ready", two(), HELD),
        ("again in time", two("False").node(14, "n1"), HELD),
        ("too late", two("False").node(16, "n1"), VIOLATED),
        ("too early, lost again", two().node(9, "n1", "Unknown"), VIOLATED),
        ("never", two("Unknown"), VIOLATED),
        ("wrong object", two("False").node(12, "n2"), VIOLATED),
        ("vanished again", two("False").node(12, "n1").node(13, "n1", "False"), HELD),
        ("never both at once", two("False").node(12, "n1").node(12, "n2", "False").node(20, "n2"), VIOLATED),
        ("deleted", two().node(5, "n2", "Unknown").node(12, "n2", "Unknown", type_="DELETED"), VIOLATED),
        ("deleted before: does not belong", two().node(5, "n2", "Unknown", type_="DELETED"), HELD),
        ("blind over the deadline", two("False").node(16, "n1").blind(12, 16, "nodes"), INCONCLUSIVE),
        ("blind, then true in time", two("False").node(13, "n1").blind(11, 13, "nodes"), HELD),
        ("empty set", Story(), INCONCLUSIVE),
        (
            "deleted before, not observed",
            two().add(9, "nodes", "DELETED", {"metadata": {"name": "n2"}}, note="missing"),
            HELD,
        ),
        ("undecodable", two().add(9, "nodes", "MODIFIED", {"metadata": {"name": "n1"}, "spec": 5}), INCONCLUSIVE),
    ],
)
def test_nodes_ready(what: str, story: Story, status: Status) -> None:
    verdict = ask(story, "{assert: nodes-ready, with: {nodes: all}, within: 5s}")
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(
    ("what", "story", "status"),
    [
        ("none", two(), HELD),
        ("one", two("False"), HELD),
        ("two", two("False").node(12, "n2", "Unknown"), VIOLATED),
        ("two, one after the other", two("False").node(11, "n1").node(12, "n2", "False"), HELD),
        ("one blind for both", two().blind(12, 13, "nodes"), INCONCLUSIVE),
        ("blind before", two().blind(2, 9, "nodes"), HELD),
        ("no node was seen", Story(), INCONCLUSIVE),
    ],
)
def test_not_ready_at_most(what: str, story: Story, status: Status) -> None:
    verdict = ask(story, "{assert: nodes-ready, with: {not-ready-at-most: 1}, always: {for: 10s}}")
    assert verdict.status is status, f"{what}: {verdict.because}"


SHUTTING = "node is shutting down"


@pytest.mark.parametrize(
    ("filters", "story", "status"),
    [
        ("", two().node(11, "n1", "False", SHUTTING), HELD),
        ("message: shutting", two().node(11, "n1", "False", SHUTTING), HELD),
        ("message: /^node .* down$/", two().node(11, "n1", "False", SHUTTING), HELD),
        ("message: /^shutting/", two().node(11, "n1", "False", SHUTTING), VIOLATED),
        ("message: shutting", two().node(11, "n1", "False", "container runtime is down"), VIOLATED),
        ("reason: KubeletNotReady", two().node(11, "n1", "False", SHUTTING), HELD),
        ("reason: Other", two().node(11, "n1", "False", SHUTTING), VIOLATED),
        ("type: DiskPressure", two().node(11, "n1", "False"), VIOLATED),
        ("", two().node(11, "n1", "Unknown"), VIOLATED),
        ("", two().node(11, "n2", "False"), VIOLATED),
        ("", two().node(11, "n1", type_="DELETED"), VIOLATED),
        ("", two().node(11, "n1", "False").blind(10.5, 14, "nodes"), HELD),
        ("", two().node(11, "n1", "False").blind(10.5, None, "nodes"), INCONCLUSIVE),
    ],
)
def test_node_condition(filters: str, story: Story, status: Status) -> None:
    wanted = f'node: victim, status: "False"{", " if filters else ""}{filters}'
    verdict = ask(story, f"{{assert: node-condition, with: {{{wanted}}}, within: 5s}}")
    assert verdict.status is status, verdict.because


NOT_READY = "node.kubernetes.io/not-ready"


@pytest.mark.parametrize(
    ("what", "filters", "story", "status"),
    [
        ("in time", "", two().node(12, "n1", taints=[f"{NOT_READY}:NoSchedule"]), HELD),
        ("that effect", "effect: NoSchedule", two().node(12, "n1", taints=[f"{NOT_READY}:NoSchedule"]), HELD),
        ("another effect", "effect: NoExecute", two().node(12, "n1", taints=[f"{NOT_READY}:NoSchedule"]), VIOLATED),
        ("another key", "", two().node(12, "n1", taints=["node.kubernetes.io/unreachable:NoExecute"]), VIOLATED),
        ("another node", "", two().node(12, "n2", taints=[f"{NOT_READY}:NoSchedule"]), VIOLATED),
        ("too late", "", two().node(16, "n1", taints=[f"{NOT_READY}:NoSchedule"]), VIOLATED),
        ("too early", "", two().node(5, "n1", taints=[f"{NOT_READY}:NoSchedule"]).node(9, "n1"), VIOLATED),
        ("removed", "present: false", two().node(0, "n1", taints=[f"{NOT_READY}:NoExecute"]).node(12, "n1"), HELD),
        ("not removed", "present: false", two().node(9, "n1", taints=[f"{NOT_READY}:NoExecute"]), VIOLATED),
        ("blind", "", two().blind(12, 30, "nodes"), INCONCLUSIVE),
        ("unknown node", "node: n9", two(), INCONCLUSIVE),
    ],
)
def test_node_taint(what: str, filters: str, story: Story, status: Status) -> None:
    node = "" if "node: n9" in filters else "node: victim, "
    expectation = f"{{assert: node-taint, with: {{{node}key: {NOT_READY}, {filters}}}, within: 5s}}"
    verdict = ask(story, expectation)
    assert verdict.status is status, f"{what}: {verdict.because}"


def answering(start: int, end: int, step: float = 1.0) -> Story:
    """Nodes on one kernel (one boot ID), and a kubelet whose metrics are available from start to end."""
    story = Story().node(0, "n1", boot_id="same").node(0, "n2", boot_id="same")
    t = float(start)
    while t <= end:
        story.metrics(t, 0)
        t += step
    return story


def off(start: int, end: int, story: Story | None = None) -> Story:
    """PID 1 read at 5 and 20; the power control reports off every two seconds."""
    story = story or two()
    story.host(5, "pid1-start", 100).host(20, "pid1-start", 100)
    for t in range(start, end, 2):
        story.host(t, "machine", "off")
    return story


@pytest.mark.parametrize(
    ("what", "story", "rebooted", "still_up"),
    [
        ("a new boot ID in time", two().node(14, "n1", boot_id="other"), HELD, VIOLATED),
        ("a new boot ID too late", two().node(50, "n1", boot_id="other"), INCONCLUSIVE, INCONCLUSIVE),
        ("the same, reported by the kubelet", two().node(45, "n1"), VIOLATED, HELD),
        ("the same, but not by the kubelet", two().node(45, "n1", "Unknown", heartbeat=5), INCONCLUSIVE, INCONCLUSIVE),
        ("the wrong node", two().node(14, "n2", boot_id="other"), INCONCLUSIVE, INCONCLUSIVE),
        ("PID 1 restarted", two().host(5, "pid1-start", 100).host(15, "pid1-start", 300), HELD, VIOLATED),
        ("PID 1 the same", two().host(5, "pid1-start", 100).host(45, "pid1-start", 101), VIOLATED, HELD),
        (
            "PID 1 read too early",
            two().host(5, "pid1-start", 100).host(20, "pid1-start", 100),
            INCONCLUSIVE,
            INCONCLUSIVE,
        ),
        ("PID 1 never read before", two().host(15, "pid1-start", 300), INCONCLUSIVE, INCONCLUSIVE),
        ("PID 1 began afterwards", two().host(15, "pid1-start", T0 + 13), HELD, VIOLATED),
        (
            "PID 1 began afterwards, as a step proved",
            two().done(10, "poweroff", step="stop").act(15, "power-on", "proved", evidence={"pid1-start": T0 + 13}),
            HELD,
            VIOLATED,
        ),
        ("a shared boot ID proves nothing", answering(0, 5).node(45, "n1", boot_id="same"), INCONCLUSIVE, INCONCLUSIVE),
        ("a kubelet that answers all the time", answering(0, 45), VIOLATED, HELD),
        ("a gap in its answers", answering(0, 45, 3.0), INCONCLUSIVE, INCONCLUSIVE),
        (
            "one answer missing",
            answering(0, 45).metrics(20.5, None, None, status="unreachable"),
            INCONCLUSIVE,
            INCONCLUSIVE,
        ),
        (
            "perhaps after a reading that was answered late",
            two().host(5, "pid1-start", 0).host(42, "pid1-start", 0, since=14).host(44, "pid1-start", 20),
            INCONCLUSIVE,
            INCONCLUSIVE,
        ),
        ("off since the same boot", off(22, 45), VIOLATED, HELD),
        ("off for some time", off(22, 32), INCONCLUSIVE, INCONCLUSIVE),
        ("off after a gap", off(27, 45), INCONCLUSIVE, INCONCLUSIVE),
        ("off with a gap", off(22, 28, off(36, 45)), INCONCLUSIVE, INCONCLUSIVE),
        ("off, and booted", off(22, 30, two().host(38, "pid1-start", 300)), HELD, VIOLATED),
        ("off, and booted late", off(22, 44, two().host(80, "pid1-start", 300)), VIOLATED, HELD),
    ],
)
def test_node_rebooted(what: str, story: Story, rebooted: Status, still_up: Status) -> None:
    within = ask(story, "{assert: node-rebooted, with: {node: victim}, within: 30s}")
    never = ask(story, "{assert: node-rebooted, with: {node: victim}, never: {for: 30s}}")
    assert (within.status, never.status) == (rebooted, still_up), f"{what}: {within.because} | {never.because}"
