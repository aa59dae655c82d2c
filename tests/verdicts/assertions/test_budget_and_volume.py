"""budget-respected and volume-attached: a table of timelines each. A step on n1 begins at 10."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.kube import LabelSelector, Metadata, Pod, Requirement
from chaos.core.verdict import Status
from chaos.verdicts.judge.budgets import selects
from tests.kit.story import HELD, INCONCLUSIVE, VIOLATED, Story, ask

WEB: dict[str, Any] = {"labels": {"app": "web"}}
EVICTED: dict[str, Any] = {"disruption": "EvictionByEvictionAPI", "deleting": True, **WEB}
GONE: dict[str, Any] = {"type_": "DELETED"}
PREEMPTED: dict[str, Any] = {"disruption": "PreemptionByScheduler", "deleting": True, **WEB}
BY_TAINT: dict[str, Any] = {"disruption": "DeletionByTaintManager", "deleting": True, **WEB}


def three(desired: int | None = 2) -> Story:
    story = Story().node(0, "n1").budget(0, desired)
    for name in "abc":
        story.pod(0, name, **WEB)
    return story


@pytest.mark.parametrize(
    ("what", "by", "story", "status"),
    [
        ("nothing happens", "", three(), HELD),
        ("one is evicted", "", three().pod(12, "a", **EVICTED), HELD),
        ("two are evicted", "", three().pod(12, "a", **EVICTED).pod(13, "b", **EVICTED), VIOLATED),
        ("replaced between", "", three().pod(12, "a", **EVICTED).pod(13, "d", **WEB).pod(14, "b", **EVICTED), HELD),
        ("evicted, and only then gone", "", three().pod(12, "a", **EVICTED).pod(15, "a", **EVICTED, **GONE), HELD),
        ("deleted", "", three().pod(12, "a", deleting=True, **WEB).pod(13, "b", deleting=True, **WEB), VIOLATED),
        ("deletions do not matter", "by: [eviction]", three(3).pod(12, "a", deleting=True, **WEB), HELD),
        ("lost to a taint", "", three().pod(12, "a", **BY_TAINT).pod(13, "b", **BY_TAINT), HELD),
        ("used up by a taint", "", three().pod(12, "a", **BY_TAINT).pod(13, "b", **EVICTED), VIOLATED),
        ("one fails", "", three(3).pod(12, "a", ready=False, **WEB), HELD),
        ("the unhealthy one is evicted", "", three().pod(5, "a", ready=False, **WEB).pod(12, "a", **EVICTED), HELD),
        ("before the beginning", "", three(3).pod(5, "a", **EVICTED).pod(6, "d", **WEB), HELD),
        ("after the end", "", three(3).pod(80, "a", **EVICTED), HELD),
        ("preemption", "by: [preemption]", three(3).pod(12, "a", **PREEMPTED), VIOLATED),
        ("the budget is raised", "", three().pod(12, "a", **EVICTED).budget(13, 3), HELD),
        ("raised, then evicted", "", three().budget(11, 3).pod(12, "a", **EVICTED), VIOLATED),
        ("pods of others", "", three(3).pod(0, "x").pod(12, "x", **EVICTED | {"labels": {}}), HELD),
        ("no status yet", "", three(None), INCONCLUSIVE),
        ("the budget is deleted", "", three().budget(12, 2, type_="DELETED"), INCONCLUSIVE),
        ("no budget", "", Story().node(0, "n1").pod(0, "a", **WEB), INCONCLUSIVE),
        ("another name", "name: db", three(), INCONCLUSIVE),
        (
            "deletion not observed",
            "",
            three(3).pod(12, "a", type_="DELETED", note="missing at relist", **WEB),
            INCONCLUSIVE,
        ),
        ("blind", "", three().blind(12, 20, "pods"), INCONCLUSIVE),
        ("blind for budgets", "", three().blind(12, 20, "poddisruptionbudgets"), INCONCLUSIVE),
        (
            "listed again one after the other",
            "",
            three(3).blind(12, 20, "pods").pod(20, "a", **EVICTED).pod(20.01, "d", **WEB),
            INCONCLUSIVE,
        ),
    ],
)
def test_budget_respected(what: str, by: str, story: Story, status: Status) -> None:
    verdict = ask(story, f"{{assert: budget-respected, with: {{namespace: demo, {by}}}, always: {{for: 40s}}}}")
    assert verdict.status is status, f"{what}: {verdict.because}"


def test_losses_are_counted_by_cause() -> None:
    story = three().pod(12, "a", **BY_TAINT).pod(13, "b", **EVICTED)
    verdict = ask(story, "{assert: budget-respected, with: {namespace: demo}, always: {for: 40s}}")
    counts = "demo/web: 1 pods are healthy, 2 are desired; lost so far: 1 by DeletionByTaintManager, 1 by eviction"
    assert verdict.because.startswith(counts)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        (LabelSelector(), True),
        (LabelSelector(match_labels={"app": "web"}), True),
        (LabelSelector(match_labels={"app": "db"}), False),
        (LabelSelector(match_expressions=[Requirement("app", "In", ["web", "db"])]), True),
        (LabelSelector(match_expressions=[Requirement("app", "NotIn", ["web"])]), False),
        (LabelSelector(match_expressions=[Requirement("tier", "NotIn", ["a"])]), True),
        (LabelSelector(match_expressions=[Requirement("app", "Exists")]), True),
        (LabelSelector(match_expressions=[Requirement("app", "DoesNotExist")]), False),
    ],
)
def test_selectors(selector: LabelSelector | None, selected: bool) -> None:
    assert selects(selector, Pod(metadata=Metadata(labels={"app": "web"}))) is selected


def volumes() -> Story:
    return Story().node(0, "n1").node(0, "n2").attachment(0)


CLAIM = {"metadata": {"name": "data", "namespace": "demo"}, "spec": {"volumeName": "pv-1"}}


@pytest.mark.parametrize(
    ("what", "filters", "story", "status"),
    [
        ("attached", "node: victim", volumes(), HELD),
        ("to another node", "node: n2", volumes(), VIOLATED),
        ("to another node, then", "node: n2, volume: pv-1", volumes().attachment(15, node="n2"), HELD),
        ("too late", "node: n2", volumes().attachment(25, node="n2"), VIOLATED),
        ("not yet", "node: n2", volumes().attachment(15, node="n2", attached=False), VIOLATED),
        ("another volume", "volume: pv-2", volumes(), VIOLATED),
        ("by its claim", "claim: demo/data", volumes().add(0, "persistentvolumeclaims", "LIST", CLAIM), HELD),
        ("unobserved claim", "claim: demo/data", volumes(), INCONCLUSIVE),
        ("detached", "node: victim, attached: false", volumes().attachment(15, **GONE), HELD),
        ("detached too late", "node: victim, attached: false", volumes().attachment(25, **GONE), VIOLATED),
        ("one of two", "attached: false", volumes().attachment(0, "pv-2").attachment(15, **GONE), VIOLATED),
        ("never detached", "node: victim, attached: false", volumes(), VIOLATED),
        ("a later one", "attached: false", volumes().attachment(15, **GONE).attachment(15, node="n2"), HELD),
        ("was not attached", "node: n2, attached: false", volumes(), INCONCLUSIVE),
        ("was gone before", "attached: false", volumes().attachment(5, **GONE), INCONCLUSIVE),
        ("no volumes", "attached: false", Story().node(0, "n1"), INCONCLUSIVE),
        ("blind", "attached: false", volumes().attachment(25, **GONE).blind(12, 25, "volumeattachments"), INCONCLUSIVE),
    ],
)
def test_volume_attached(what: str, filters: str, story: Story, status: Status) -> None:
    verdict = ask(story, f"{{assert: volume-attached, with: {{{filters}}}, within: 10s}}")
    assert verdict.status is status, f"{what}: {verdict.because}"
