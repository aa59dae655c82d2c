"""Restarts of kube-controller-manager: recognized, and what was not decided before is inconclusive."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.core.result import RunResult
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.foreign_effect import ForeignKind
from chaos.verdicts.judge.foreign_faults import foreign_faults
from chaos.verdicts.judge.judge import judge
from tests.kit.node_versions import node
from tests.kit.story import HELD, INCONCLUSIVE, T0, VIOLATED, Story, experiment, plugin_registry

RESTARTED = "kube-controller-manager restarted: its controllers restarted their timers"
DETACHED = "{name: detached, assert: volume-attached, with: {node: victim, attached: false}, after: cut, within: 370s}"
ATTACHED = "{name: attached, assert: volume-attached, with: {node: victim}, after: cut, always: {for: 20s}}"
UNKNOWN = "{name: unknown, assert: node-condition, with: {node: victim, status: Unknown}, after: cut, within: 60s}"
RENEWED = "{name: renewed, assert: lease-fresh, with: {node: n2}, after: cut, always: {for: 300s}}"


def _story(detached: float = 370.0) -> Story:
    """Power cut at 70 of a node with a volume, which is Unknown at 115; the volume is detached at ``detached``."""
    story = Story(nodefall="0.2.0")
    for name in ("n1", "n2"):
        labels = {"node-role.kubernetes.io/control-plane": ""} if name == "n2" else None
        node(story, 0, name, type_="LIST", labels=labels)
    for t in range(2, 60, 10):
        story.lease(t, "n2")
    story.attachment(60, type_="LIST").done(70, "power-cut", step="cut").host(71, "machine", "off")
    for t in range(72, 110, 10):
        story.lease(t, "n2")
    node(story, 115, "n1", ready="Unknown")
    for t in range(122, 400, 10):
        story.lease(t, "n2")
    return story if detached > 440 else story.attachment(detached, type_="DELETED")


def _registered(story: Story, t: float = 200.0) -> Story:
    return story.event(t, "RegisteredNode", "n1", component="node-controller")


def _new_leader(story: Story) -> Story:
    text = "control-plane_0b1a became leader"
    return story.event(200, "LeaderElection", "kube-controller-manager", "Lease", text, component="")


def _container(story: Story, name: str = "kube-controller-manager-n2") -> Story:
    return story.pod(2, name, "n2", restarts=3, type_="LIST").pod(200, name, "n2", restarts=4)


def _two_containers(story: Story) -> Story:
    return _container(story).pod(201, "kube-controller-manager-n3", "n3")


def _new_node(story: Story) -> Story:
    node(story, 190, "n4", type_="ADDED")
    return story.event(195, "RegisteredNode", "n4", component="node-controller")


def _node_again(story: Story) -> Story:
    """n1 is deleted, and its kubelet creates the Node again; the Event has the whole second before that."""
    node(story, 190, "n1", type_="DELETED")
    node(story, 199.5, "n1", type_="ADDED", uid="another", created=199)
    return story.event(199.7, "RegisteredNode", "n1", component="node-controller", happened=199)


def _node_again_seen_late(story: Story) -> Story:
    node(story, 190, "n1", type_="DELETED")
    story.event(199.7, "RegisteredNode", "n1", component="node-controller", happened=199)
    node(story, 200.5, "n1", type_="ADDED", uid="another", created=199)
    return story


def _own(story: Story) -> Story:
    return _registered(story.done(180, "kubelet-restart", node="n2", step="own"))


@pytest.mark.parametrize(
    ("happens", "is_restart"),
    [
        (_registered, True),
        (_new_leader, True),
        (_container, True),
        (_two_containers, False),  # which of them leads is not known
        (_new_node, False),
        (_node_again, False),
        (_node_again_seen_late, False),
        (_own, False),
        (lambda story: story.event(200, "RegisteredNode", "n1", component="mimic"), False),
        (lambda story: story.event(200, "RegisteredNode", "n1", component="node-controller", happened=10), False),
        (lambda story: story, False),
    ],
)
def test_restarts_are_recognized(happens: Callable[[Story], Story], is_restart: bool) -> None:
    faults = foreign_faults(happens(_story(500)).timeline(500), plugin_registry(), ("n1",), "")
    found = [fault for fault in faults if fault.kind == ForeignKind.CONTROLLER_RESTART]
    assert [fault.text for fault in found] == [RESTARTED] * is_restart
    assert [fault.at for fault in found] == [T0 + 200] * is_restart


def _run(story: Story, *hypotheses: str) -> RunResult:
    method = "[{name: cut, action: power-cut, target: victim}]"
    document = experiment(f"[{', '.join(hypotheses)}]", method=method)
    return judge(document, story.timeline(500), plugin_registry(), Options(bind={"victim": ("n1",)}))


@pytest.mark.parametrize(
    ("hypothesis", "alone", "with_restart"),
    [
        (DETACHED, VIOLATED, INCONCLUSIVE),  # the 6 minutes began again
        (ATTACHED, HELD, HELD),  # decided before
        (UNKNOWN, HELD, HELD),
        (RENEWED, HELD, HELD),  # asks the kubelet
    ],
)
def test_what_the_controllers_decide_is_inconclusive(hypothesis: str, alone: object, with_restart: object) -> None:
    assert _run(_story(500), hypothesis).hypothesis[0].status is alone
    result = _run(_registered(_story(500)), hypothesis)
    assert result.hypothesis[0].status is with_restart, result.hypothesis[0].because
    assert any(RESTARTED in note for note in result.notes)


def test_the_reason_is_the_restart() -> None:
    result = _run(_registered(_story(500)), DETACHED)
    (verdict,) = result.hypothesis
    assert f"foreign fault: {RESTARTED} at +130.0 s" in verdict.because
    assert "a run during which kube-controller-manager does not restart" in verdict.because
    assert RESTARTED.partition(":")[0] in result.headline
