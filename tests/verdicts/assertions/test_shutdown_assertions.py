"""termination-order and grace-respected: a table of timelines each. A power-off of n1 begins at 10."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.kube import Pod, PodSpec
from chaos.core.verdict import Status
from chaos.verdicts.judge.facts import group_of, groups_of
from tests.kit.story import HELD, INCONCLUSIVE, T0, VIOLATED, Story, ask

CRITICAL = 2_000_001_000
TWO_PHASES = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}
BY_PRIORITY = {
    "shutdownGracePeriodByPodPriority": [
        {"priority": 100000, "shutdownGracePeriodSeconds": 10},
        {"priority": 10000, "shutdownGracePeriodSeconds": 180},
        {"priority": 1000, "shutdownGracePeriodSeconds": 120},
        {"priority": 0, "shutdownGracePeriodSeconds": 60},
    ]
}
C: dict[str, Any] = {"priority": CRITICAL}


def two(config: dict[str, Any] | None = None) -> Story:
    """A normal pod a and a critical pod c."""
    story = Story().node(0, "n1").pod(0, "a").pod(0, "c", **C).event(0, "Starting")
    return story.host(1, "configz", TWO_PHASES if config is None else config)


def logged(story: Story, t: float, **pods: float) -> Story:
    lines = [
        {"t": T0 + at, "message": f'"Shutdown manager killing pod with gracePeriod" pod="demo/{name}" gracePeriod=10'}
        for name, at in pods.items()
    ]
    return story.host(t, "kubelet-journal", {"lines": lines})


def ends(story: Story) -> Story:
    """Pod a ends at 15, pod c at 17."""
    by_kubelet: dict[str, Any] = {"phase": "Succeeded", "disruption": "TerminationByKubelet"}
    return story.pod(15.5, "a", ended=15, **by_kubelet).pod(17.5, "c", ended=17, **by_kubelet, **C)


ORDER = "{assert: termination-order, with: {node: victim}, within: 45s}"


@pytest.mark.parametrize(
    ("what", "story", "status"),
    [
        ("critical pods last", two().stopped(10.5, 15, "a").stopped(16, 17, "c", **C), HELD),
        ("critical pods first", two().stopped(16, 17, "a").stopped(10.5, 12, "c", **C), VIOLATED),
        ("all at once", two().stopped(10.5, 15, "a").stopped(10.5, 11, "c", **C), VIOLATED),
        ("all at once, and ended at once", two().stopped(10.5, 10, "a").stopped(10.5, 10, "c", **C), INCONCLUSIVE),
        ("too early", two().stopped(10.5, 20, "a").stopped(16, 17, "c", **C), VIOLATED),
        ("its time is over", two().stopped(10.5, 30, "a", 137).stopped(30, 31, "c", **C), HELD),
        ("not killed when its time was over", two().stopped(10.5, 38, "a").stopped(30, 31, "c", **C), VIOLATED),
        ("stopped too late", two().stopped(10.5, 12, "a").stopped(40, 41, "c", **C), VIOLATED),
        ("one of them never ended", two().stopped(10.5, 15, "a").killing(16, "c"), INCONCLUSIVE),
        ("ended after the deadline", two().stopped(10.5, 15, "a").stopped(53, 57, "c", **C), VIOLATED),
        ("no report of the kills", ends(two()), INCONCLUSIVE),
        ("reported by the journal", logged(ends(two()), 40, a=10.5, c=16), HELD),
        ("violation reported by the journal", logged(ends(two()), 40, a=10.5, c=11), VIOLATED),
        ("reported after a boot", two().stopped(10.5, 15, "a").stopped(16, 60, "c", 255, lost=True, **C), INCONCLUSIVE),
        ("killed before", ends(two().killing(5, "a").killing(16, "c")), INCONCLUSIVE),
        ("late report of a kill before", ends(two().killing(12, "a", 5).killing(16, "c")), INCONCLUSIVE),
        ("no pod was killed", two(), INCONCLUSIVE),
        ("a static pod", two().pod(0, "s", static=True).stopped(10.5, 15, "a").stopped(16, 17, "c", **C), HELD),
        ("only one group", Story().node(0, "n1").pod(0, "a").host(1, "configz", TWO_PHASES), INCONCLUSIVE),
        ("not configured", two({"shutdownGracePeriod": "0s"}), INCONCLUSIVE),
        ("nonsense", two({"shutdownGracePeriodByPodPriority": ["x"]}), INCONCLUSIVE),
        ("configuration not read", Story().node(0, "n1").pod(0, "a"), INCONCLUSIVE),
        ("blind", two().stopped(10.5, 15, "a").stopped(16, 17, "c", **C).blind(12, 90, "pods"), INCONCLUSIVE),
    ],
)
def test_termination_order(what: str, story: Story, status: Status) -> None:
    verdict = ask(story, ORDER)
    assert verdict.status is status, f"{what}: {verdict.because}"


def documented(b: float, c: float) -> Story:
    """Pods in the priority classes of the documentation, of which one is empty."""
    story = two(BY_PRIORITY).pod(0, "b", priority=1000).stopped(10.5, 20, "a").stopped(b, b + 1, "b", priority=1000)
    return story.stopped(c, c + 1, "c", **C)


@pytest.mark.parametrize(
    ("b", "c", "status"),
    [(20, 22, HELD), (21, 35, HELD), (75, 77, VIOLATED), (12, 40, VIOLATED), (22, 21, VIOLATED)],
)
def test_empty_group_takes_no_time(b: float, c: float, status: Status) -> None:
    """No pod has priority 10000, so its 180 s do not count. Priority 0 has 60 s."""
    verdict = ask(documented(b, c), ORDER.replace("45s", "3m"), end=300)
    assert verdict.status is status, verdict.because


@pytest.mark.parametrize(
    ("config", "priority", "group"),
    [
        ({"shutdownGracePeriodByPodPriority": [{"priority": p} for p in (0, 1000, 2_000_000_000)]}, -5, 0),
        ({"shutdownGracePeriodByPodPriority": [{"priority": p} for p in (0, 1000, 2_000_000_000)]}, 999, 0),
        ({"shutdownGracePeriodByPodPriority": [{"priority": p} for p in (0, 1000, 2_000_000_000)]}, 1000, 1000),
        (
            {"shutdownGracePeriodByPodPriority": [{"priority": p} for p in (2_000_000_000, 0, 1000)]},
            2_000_001_000,
            2_000_000_000,
        ),
        ({"shutdownGracePeriodByPodPriority": [{"priority": 10}, {"priority": 20}]}, 5, 10),
        (TWO_PHASES, None, 0),
        (TWO_PHASES, 1_999_999_999, 0),
        (TWO_PHASES, 2_000_000_000, 2_000_000_000),
    ],
)
def test_groups(config: dict[str, Any], priority: int | None, group: int) -> None:
    """Vectors of facts 1.2 and 16."""
    groups = groups_of(config)
    assert groups
    assert group_of(Pod(spec=PodSpec(priority=priority)), groups) == group


@pytest.mark.parametrize(
    ("config", "groups"),
    [
        (TWO_PHASES, {0: 20.0, 2_000_000_000: 10.0}),
        ({"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "0s"}, {0: 30.0, 2_000_000_000: 0.0}),
        ({"shutdownGracePeriod": "5s", "shutdownGracePeriodCriticalPods": "5s"}, {0: 0.0, 2_000_000_000: 5.0}),
        ({"shutdownGracePeriod": "5s", "shutdownGracePeriodCriticalPods": "6s"}, {}),
        ({}, {}),
        ({"shutdownGracePeriod": "soon"}, None),
        ({"shutdownGracePeriodByPodPriority": [{"priority": "high"}]}, None),
    ],
)
def test_groups_of_a_configuration(config: dict[str, Any], groups: dict[int, float] | None) -> None:
    assert groups_of(config) == groups


GRACE = "{assert: grace-respected, with: {node: victim, labels: {app: x}}, within: 60s}"
BY = "TerminationByKubelet"
X: dict[str, Any] = {"labels": {"app": "x"}}


def one(grace: int = 30) -> Story:
    return Story().node(0, "n1").pod(0, "a", grace=grace, **X).host(1, "configz", TWO_PHASES).event(0, "Starting")


def deleted(grace: int = 30, given: int | None = None) -> Story:
    """A pod that is deleted at 11 with another grace period than that of its spec."""
    story = one(grace).pod(11, "a", deleting=True, grace=grace if given is None else given, **X)
    return story.killing(11, "a")


def quiet() -> Story:
    """A deleted pod without an Event of the kubelet."""
    return one().pod(11, "a", deleting=True, **X)


ENDED: dict[str, Any] = {"phase": "Failed", "deleting": True, **X}


@pytest.mark.parametrize(
    ("what", "story", "status"),
    [
        ("ends by itself", one().stopped(11, 14, "a", **X), HELD),
        ("killed at the end of the shutdown", one().stopped(11, 31, "a", 137, **X), HELD),
        ("killed at the end of its grace period", one(5).stopped(11, 16, "a", 137, grace=5, **X), HELD),
        ("killed too early", one().stopped(11, 14, "a", 137, **X), VIOLATED),
        ("killed far too late", one().stopped(11, 40, "a", 137, **X), VIOLATED),
        ("reported after a boot", one(5).stopped(11, 60, "a", 255, lost=True, grace=5, **X), INCONCLUSIVE),
        ("left to run", one(5).stopped(11, 25, "a", grace=5, **X), VIOLATED),
        ("no grace at all is two seconds", one(0).stopped(11, 13, "a", 137, grace=0, **X), HELD),
        ("no report of the kill", one().pod(15, "a", phase="Failed", disruption=BY, ended=14, **X), INCONCLUSIVE),
        ("ended by itself, not stopped", one().pod(15, "a", phase="Succeeded", ended=14, **X), INCONCLUSIVE),
        ("not stopped", one(), INCONCLUSIVE),
        ("a deleted pod", deleted().pod(20, "a", ended=18, **ENDED), HELD),
        ("a deleted pod, by the deletion alone", quiet().pod(20, "a", ended=18, **ENDED), HELD),
        ("far too late, by the deletion alone", quiet().pod(60, "a", ended=58, **ENDED), VIOLATED),
        ("the node was not Ready", quiet().node(12, "n1", "Unknown").pod(60, "a", ended=58, **ENDED), INCONCLUSIVE),
        ("a deleted pod, killed in time", deleted(5).pod(20, "a", ended=16, exit_code=137, grace=5, **ENDED), HELD),
        ("a deleted pod, killed early", deleted().pod(20, "a", ended=16, exit_code=137, **ENDED), VIOLATED),
        ("a shorter grace", deleted(30, 3).pod(20, "a", ended=15, exit_code=137, grace=3, **ENDED), HELD),
        ("force deleted", one().pod(15, "a", type_="DELETED", **X), VIOLATED),
        ("deletion not observed", one().pod(15, "a", type_="DELETED", note="missing at relist", **X), INCONCLUSIVE),
        ("blind", one().stopped(11, 14, "a", **X).blind(12, 90, "pods"), INCONCLUSIVE),
        ("of another app", Story().node(0, "n1").pod(0, "a"), INCONCLUSIVE),
    ],
)
def test_grace_respected(what: str, story: Story, status: Status) -> None:
    verdict = ask(story, GRACE)
    assert verdict.status is status, f"{what}: {verdict.because}"
