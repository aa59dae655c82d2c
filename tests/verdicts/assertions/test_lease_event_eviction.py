"""lease-fresh, event, eviction-refused: a table of timelines each. A step on n1 begins at 10."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.verdict import Status
from chaos.verdicts.assertions.event import Params as EventParams
from tests.kit.story import HELD, INCONCLUSIVE, T0, VIOLATED, Story, ask

MEASURED = {"clockOffsets": {"host n1": {"seconds": 0, "within": 0.1}}}


def renewals(*times: float, **meta: Any) -> Story:
    story = Story(**(meta or MEASURED)).node(0, "n1").node(0, "n2")
    for t in times:
        story.lease(t)
    return story


def behind(*times: float) -> Story:
    story = renewals(clockOffsets={})
    for t in times:
        story.lease(t, renewed=t - 80)
    return story


@pytest.mark.parametrize(
    ("what", "filters", "words", "story", "status"),
    [
        ("renewed all the time", "", "always: {for: 50s}", renewals(0, 10, 20, 30, 40, 50), HELD),
        ("a gap that is short enough", "", "always: {for: 50s}", renewals(0, 39, 60), HELD),
        ("a gap that is too long", "", "always: {for: 50s}", renewals(0, 45), VIOLATED),
        ("not renewed again", "fresh: false", "within: 35s", renewals(0), HELD),
        ("stale, but too late", "fresh: false", "within: 29s", renewals(0), VIOLATED),
        ("explicit bound", "at-most: 12s", "always: {for: 20s}", renewals(0, 10, 20, 30), HELD),
        ("broken", "at-most: 12s", "always: {for: 20s}", renewals(0, 13, 30), VIOLATED),
        ("stale when it was listed", "", "within: 5s", renewals().lease(0, renewed=-60), VIOLATED),
        ("a clock that is 80 s behind", "", "after: stop + 10s, always: {for: 40s}", behind(0, 20, 50), HELD),
        ("it was measured by the other renewals", "fresh: false", "within: 1s", behind(0, 20, 50), VIOLATED),
        ("not measured", "", "within: 1s", renewals(0, clockOffsets={}), INCONCLUSIVE),
        ("another field changed", "", "always: {for: 35s}", renewals(0).lease(20, renewed=0), VIOLATED),
        ("deleted", "", "always: {for: 20s}", renewals(0).lease(15, type_="DELETED"), VIOLATED),
        ("another node's", "", "within: 5s", Story().node(0, "n1").lease(12, "n2"), INCONCLUSIVE),
        ("blind", "", "always: {for: 50s}", renewals(0, 10, 50).blind(12, 50, "leases"), INCONCLUSIVE),
        (
            "stale after a blind window",
            "fresh: false",
            "within: 45s",
            renewals(0).blind(12, 52, "leases").lease(52, renewed=11),
            HELD,
        ),
        ("nonsense", "", "within: 5s", Story().node(0, "n1").add(12, "leases", "LIST", {"spec": 1}), INCONCLUSIVE),
        (
            "no time in it",
            "",
            "within: 5s",
            renewals().add(0, "leases", "LIST", {"metadata": {"name": "n1"}, "spec": {"renewTime": "soon"}}),
            INCONCLUSIVE,
        ),
    ],
)
def test_lease_fresh(what: str, filters: str, words: str, story: Story, status: Status) -> None:
    verdict = ask(story, f"{{assert: lease-fresh, with: {{node: victim, {filters}}}, {words}}}")
    assert verdict.status is status, f"{what}: {verdict.because}"


def late(*earlier: float, renewed: float, received: float = 90, deleted: bool = False) -> Story:
    """The last version is received late; it happened after ``renewed``, less a second for the clock of the node."""
    story = renewals(*earlier).current(1, "leases")
    for t in earlier:
        story.current(t - 0.1, "leases").current(t + 0.1, "leases")
    story.current(received - 1, "leases", ["lease-n1"])
    story.lease(received, renewed=renewed, type_="DELETED" if deleted else "MODIFIED")
    return story.current(received + 1, "leases").current(140, "leases")


@pytest.mark.parametrize(
    ("what", "filters", "words", "story", "status"),
    [
        ("fresh until the first has expired", "", "always: {for: 29s}", late(0, renewed=31), HELD),
        ("then that depends on when", "", "always: {for: 31s}", late(0, renewed=31), INCONCLUSIVE),
        ("fresh once it has come", "", "after: stop + 81s, always: {for: 39s}", late(0, renewed=51), INCONCLUSIVE),
        ("fresh as long as the earliest is", "", "after: stop + 81s, always: {for: 8s}", late(0, renewed=61), HELD),
        ("the latest has expired", "fresh: false", "within: 121s", late(0, renewed=31), HELD),
        ("expired before it was renewed", "fresh: false", "within: 31s", late(0, renewed=45), HELD),
        ("perhaps renewed before it expired", "fresh: false", "within: 31s", late(0, renewed=35), INCONCLUSIVE),
        ("renewed meanwhile", "", "within: 81s", late(0, renewed=45), HELD),
        ("renewed, but when", "", "after: stop + 35s, within: 10s", late(0, renewed=45), INCONCLUSIVE),
        ("deleted while it was fresh", "", "always: {for: 29s}", late(0, renewed=31, deleted=True), INCONCLUSIVE),
        ("older than its bound when received", "", "after: stop + 81s, within: 1s", late(0, renewed=41), INCONCLUSIVE),
    ],
)
def test_a_renewal_that_is_received_late(what: str, filters: str, words: str, story: Story, status: Status) -> None:
    """After the step at 10; the first is of 0 and lasts for 40 s."""
    verdict = ask(story, f"{{assert: lease-fresh, with: {{node: victim, {filters}}}, {words}}}", end=140)
    assert verdict.status is status, f"{what}: {verdict.because}"


def events() -> Story:
    return Story().node(0, "n1").node(0, "n2").event(0, "Starting", "n2")


AGAIN: dict[str, Any] = {"uid": "same", "type_": "MODIFIED"}


@pytest.mark.parametrize(
    ("what", "filters", "story", "status"),
    [
        ("seen", "node: victim, reason: Shutdown", events().event(12, "Shutdown"), HELD),
        ("too late", "node: victim, reason: Shutdown", events().event(16, "Shutdown"), VIOLATED),
        ("before", "node: victim, reason: Shutdown", events().event(9, "Shutdown"), VIOLATED),
        ("old, stored late", "node: victim, reason: Shutdown", events().event(12, "Shutdown", happened=3), HELD),
        ("another reason", "node: victim, reason: Shutdown", events().event(12, "Rebooted"), VIOLATED),
        ("another node", "node: victim, reason: Shutdown", events().event(12, "Shutdown", "n2"), VIOLATED),
        ("a pod of that name", "node: victim, reason: Killing", events().event(12, "Killing", kind="Pod"), VIOLATED),
        ("of every node", "node: all, reason: X", events().event(12, "X"), VIOLATED),
        ("of every node, both", "node: all, reason: X", events().event(12, "X").event(12, "X", "n2"), HELD),
        ("message", "node: victim, message: gone", events().event(12, "X", message="it is gone"), HELD),
        ("pattern", "node: victim, message: /^gone/", events().event(12, "X", message="it is gone"), VIOLATED),
        ("writer", "node: victim, component: kubelet", events().event(12, "X", component="other"), VIOLATED),
        ("type", "node: victim, type: Warning", events().event(12, "X"), VIOLATED),
        ("a pod", "kind: Pod, namespace: demo, name: a", events().event(12, "X", "a", "Pod"), HELD),
        ("another namespace", "kind: Pod, namespace: other", events().event(12, "X", "a", "Pod"), VIOLATED),
        ("two", "reason: X, least: 2", events().event(12, "X").event(13, "X", "n2"), HELD),
        ("one of two", "reason: X, least: 2", events().event(12, "X"), VIOLATED),
        (
            "counted up",
            "reason: X, least: 3",
            events().event(5, "X", count=2, **AGAIN).event(12, "X", count=5, **AGAIN),
            HELD,
        ),
        ("counted before", "reason: X", events().event(5, "X", count=9, uid="same"), VIOLATED),
        ("reported twice", "reason: X, least: 2", events().event(11, "X", **AGAIN).event(12, "X", **AGAIN), VIOLATED),
        ("expired", "reason: X", events().event(12, "X", type_="DELETED"), VIOLATED),
        ("blind", "reason: X", events().blind(12, 60, "events"), INCONCLUSIVE),
        ("watched too late", "reason: X", Story().node(0, "n1").event(30, "X"), INCONCLUSIVE),
        ("nothing at all", "reason: X", Story().node(0, "n1"), INCONCLUSIVE),
        ("nonsense", "reason: X", events().add(12, "events", "ADDED", {"metadata": {}, "reason": 3}), VIOLATED),
    ],
)
def test_event(what: str, filters: str, story: Story, status: Status) -> None:
    verdict = ask(story, f"{{assert: event, with: {{{filters}}}, within: 5s}}")
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(
    ("most", "status"), [("least: 0, most: 0", VIOLATED), ("least: 0, most: 1", HELD), ("least: 1, most: 2", VIOLATED)]
)
def test_number_of_events(most: str, status: Status) -> None:
    """With always, "at least one" is violated before the first Event."""
    verdict = ask(events().event(12, "X"), f"{{assert: event, with: {{reason: X, {most}}}, always: {{for: 20s}}}}")
    assert verdict.status is status, verdict.because


@pytest.mark.parametrize(
    "bad",
    [{"node": "victim", "kind": "Pod"}, {"least": 2, "most": 1}, {"message": "/(/"}, {"least": -1}, {"who": "me"}],
)
def test_bad_event_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EventParams.model_validate(bad)


BUDGET = "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 5"


def evicted(*refusals: tuple[float, int, str], action: str = "drain", pod: str = "demo/a", **begin: Any) -> Story:
    recorded = [{"t": T0 + t, "status": status, "message": message} for t, status, message in refusals]
    evidence = {"pods": [{"pod": pod, "uid": "u", "status": 201, "gone": True, "refusals": recorded}]}
    story = Story().node(0, "n1").act(10, action, step="stop", **begin)
    return story.act(40, action, "returned", step="stop", exit=1, evidence=evidence)


REFUSED = "{assert: eviction-refused, with: {%s}, within: 5s}"


@pytest.mark.parametrize(
    ("what", "filters", "story", "status"),
    [
        ("refused", "", evicted((11, 429, BUDGET)), HELD),
        ("by evict-pod", "", evicted((11, 429, BUDGET), action="evict-pod"), HELD),
        ("for that reason", "message: budget web", evicted((11, 429, BUDGET)), HELD),
        ("for another", "message: budget db", evicted((11, 429, BUDGET)), VIOLATED),
        ("too late", "", evicted((10, 500, "etcd"), (16, 429, BUDGET)), VIOLATED),
        ("it is not known when it was sent", "", evicted((16, 429, BUDGET)), INCONCLUSIVE),
        ("not refused", "", evicted(), VIOLATED),
        ("not reached", "", evicted((11, 0, "connection refused")), VIOLATED),
        ("two budgets", "status: 500", evicted((11, 500, "more than one PodDisruptionBudget")), HELD),
        ("another status", "", evicted((11, 500, "more than one PodDisruptionBudget")), VIOLATED),
        ("another namespace", "namespace: other", evicted((11, 429, BUDGET)), INCONCLUSIVE),
        ("that namespace", "namespace: demo", evicted((11, 429, BUDGET)), HELD),
        ("another node", "node: n2", evicted((11, 429, BUDGET)).node(0, "n2"), INCONCLUSIVE),
        ("deleted, not evicted", "", evicted((11, 429, BUDGET), params={"disable-eviction": True}), INCONCLUSIVE),
        ("no eviction", "", Story().node(0, "n1").done(10, "poweroff", step="stop"), INCONCLUSIVE),
        ("not returned", "", Story().node(0, "n1").act(10, "drain", step="stop"), INCONCLUSIVE),
        ("a later one", "", evicted().act(50, "drain", step="more"), VIOLATED),
    ],
)
def test_eviction_refused(what: str, filters: str, story: Story, status: Status) -> None:
    action = next(line.type for line in story.lines if line.kind == "action")
    verdict = ask(story, REFUSED % filters, action=action)
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(
    ("what", "answers", "status"),
    [
        ("at once", [(10.1, 10.2, 429)], HELD),
        ("answered after 18 s", [(10.1, 28, 429)], HELD),
        ("after the answer to the list of pods, which took 12 s", [(22, 22.2, 429)], HELD),
        ("tried again, and both answers took long", [(10.1, 18, 500), (23, 30, 429)], INCONCLUSIVE),
        ("tried again 10 s later, and both answers took long", [(10.1, 15, 500), (25, 30, 429)], VIOLATED),
        ("tried again after the deadline", [(10.1, 10.2, 500), (16, 25, 429)], VIOLATED),
        ("tried again before the deadline, answered after it", [(10.1, 10.2, 500), (14, 25, 429)], INCONCLUSIVE),
    ],
)
def test_a_refusal_is_not_later_than_its_answer(
    what: str, answers: list[tuple[float, float, int]], status: Status
) -> None:
    recorded = [{"sent": T0 + sent, "t": T0 + t, "status": code, "message": BUDGET} for sent, t, code in answers]
    story = Story().node(0, "n1").act(10, "drain", step="stop")
    story.act(40, "drain", "returned", step="stop", evidence={"pods": [{"pod": "demo/a", "refusals": recorded}]})
    verdict = ask(story, REFUSED % "", action="drain")
    assert verdict.status is status, f"{what}: {verdict.because}"
