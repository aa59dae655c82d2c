"""pods and pods-started: a table of timelines each. A power-off of n1 begins at 10."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.verdict import Status
from chaos.verdicts.assertions._pods import Params
from tests.kit.story import HELD, INCONCLUSIVE, VIOLATED, Story, ask

ENDS = (
    "{assert: pods, with: {node: victim, %seach: {disruption: TerminationByKubelet, phase: [Succeeded, Failed]}}, "
    "within: 20s}"
)
HASH = {"pod-template-hash": "77"}
GONE: dict[str, Any] = {"type_": "DELETED", "phase": "Failed"}
BY_KUBELET: dict[str, Any] = {"phase": "Succeeded", "disruption": "TerminationByKubelet"}


MEASURED = {"clockOffsets": {"host n1": {"seconds": 0, "within": 0.1}}}


def web(*names: str) -> Story:
    story = Story(**MEASURED).node(0, "n1").node(0, "n2")
    for name in names or ("a", "b"):
        story.pod(0, name)
    return story


@pytest.mark.parametrize(
    ("what", "story", "status"),
    [
        ("in time", web().pod(15, "a", **BY_KUBELET).pod(16, "b", **BY_KUBELET), HELD),
        ("too late", web().pod(15, "a", **BY_KUBELET).pod(31, "b", **BY_KUBELET), VIOLATED),
        ("never", web(), VIOLATED),
        ("only one", web().pod(15, "a", **BY_KUBELET), VIOLATED),
        ("ended before", web("a").pod(5, "a", **BY_KUBELET), HELD),
        ("wrong reason", web("a").pod(15, "a", phase="Failed", disruption="DeletionByTaintManager"), VIOLATED),
        ("ended by itself", web("a").pod(15, "a", phase="Succeeded"), VIOLATED),
        ("reason without an end", web("a").pod(15, "a", disruption="TerminationByKubelet"), VIOLATED),
        ("another node's pod", web("a").pod(0, "c", "n2").pod(15, "c", "n2", **BY_KUBELET), VIOLATED),
        ("a pod of the same name", web("a").pod(15, "a", uid="another", **BY_KUBELET), VIOLATED),
        ("a later pod does not belong", web("a").pod(12, "late").pod(15, "a", **BY_KUBELET), HELD),
        ("ended, then gone", web("a").pod(15, "a", **BY_KUBELET).pod(15.1, "a", type_="DELETED", **BY_KUBELET), HELD),
        ("gone without", web("a").pod(15, "a", type_="DELETED"), VIOLATED),
        ("deletion not observed", web("a").pod(15, "a", type_="DELETED", note="missing at relist"), INCONCLUSIVE),
        (
            "the clean-up writes another reason",
            web()
            .pod(15, "a", **BY_KUBELET)
            .pod(17, "a", phase="Succeeded", disruption="DeletionByTaintManager", type_="DELETED")
            .pod(20, "b", **BY_KUBELET),
            HELD,
        ),
        ("blind over the deadline", web("a").pod(40, "a", **BY_KUBELET).blind(25, 40, "pods"), INCONCLUSIVE),
        ("blind, and back in time", web("a").pod(20, "a", **BY_KUBELET).blind(12, 20, "pods"), HELD),
        ("blind of something else", web("a").pod(20, "a", **BY_KUBELET).blind(12, 60, "nodes"), HELD),
        ("blind when the set is frozen", web("a").pod(15, "a", **BY_KUBELET).blind(9, 11, "pods"), INCONCLUSIVE),
        ("empty set", Story().node(0, "n1").pod(0, "c", "n2"), INCONCLUSIVE),
        (
            "not understood",
            web("a").add(15, "pods", "MODIFIED", {"metadata": {"uid": "uid-a"}, "status": 7}),
            INCONCLUSIVE,
        ),
    ],
)
def test_each(what: str, story: Story, status: Status) -> None:
    verdict = ask(story, ENDS % "")
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(
    ("selection", "pod", "status"),
    [
        ("except: [daemonset]", {"owner": ("DaemonSet", "agent")}, HELD),
        ("except: [finished]", {"phase": "Failed"}, HELD),
        ("except: [static]", {"static": True}, HELD),
        ("except: [terminating]", {"deleting": True}, HELD),
        ("except: [static, finished]", {"deleting": True}, VIOLATED),
        ("namespace: other", {}, INCONCLUSIVE),
        ("namespace: demo", {"namespace": "other"}, HELD),
        ("labels: {app: web}", {"labels": {"app": "db"}}, HELD),
        ("labels: {app: web}", {"labels": {"app": "web"}}, VIOLATED),
        ("owner: {kind: StatefulSet, name: db}", {"owner": ("StatefulSet", "db")}, VIOLATED),
        (
            "owner: {kind: Deployment, name: api}",
            {"owner": ("ReplicaSet", "api-77"), "labels": HASH},
            VIOLATED,
        ),
        (
            "owner: {kind: Deployment, name: web}",
            {"owner": ("ReplicaSet", "web-api-77"), "labels": HASH},
            HELD,
        ),
    ],
)
def test_selection(selection: str, pod: dict[str, Any], status: Status) -> None:
    """Pod a matches; the other pod does not match, and is selected or not."""
    hash_of_web = {"app": "web", "pod-template-hash": "1"}
    story = Story().node(0, "n1").pod(0, "a", labels=hash_of_web).pod(0, "other", **pod)
    story.pod(15, "a", labels=hash_of_web, **BY_KUBELET)
    verdict = ask(story, ENDS % f"{selection}, ")
    assert verdict.status is status, verdict.because


FROZEN = "{assert: pods, with: {node: victim, %s}, never: {for: 20s}}"


@pytest.mark.parametrize(
    ("what", "filters", "story", "status"),
    [
        ("any: none", "any: {disruption: DeletionByTaintManager}", web(), HELD),
        ("any: one", "any: {disruption: X}", web().pod(15, "b", disruption="X"), VIOLATED),
        ("any: too late", "any: {disruption: X}", web().pod(31, "b", disruption="X"), HELD),
        ("none: always broken", "none: {phase: Running}", web(), HELD),
        ("any: blind", "any: {disruption: X}", web().blind(12, 13, "pods"), INCONCLUSIVE),
        ("any: gone", "any: {gone: true}", web().pod(15, "a", type_="DELETED"), VIOLATED),
        ("any: gone unseen", "any: {gone: true}", web().pod(15, "a", type_="DELETED", note="missing"), VIOLATED),
        ("any: being deleted", "any: {deleting: true}", web().pod(15, "a", deleting=True), VIOLATED),
        ("any: not ready", "any: {ready: false}", web().pod(15, "a", ready=False), VIOLATED),
        ("any: restarted", "any: {restarts-at-least: 1}", web().pod(15, "a", restarts=1), VIOLATED),
        ("any: reason", "any: {reason: Evicted}", web().pod(15, "a", phase="Failed", reason="Evicted"), VIOLATED),
        ("any: other reason", "any: {reason: Evicted}", web().pod(15, "a", phase="Failed"), HELD),
        ("any: message", "any: {message: imminent}", web().pod(15, "a", message="imminent node shutdown"), VIOLATED),
        ("any: message pattern", "any: {message: /^now/}", web().pod(15, "a", message="not now"), HELD),
    ],
)
def test_never(what: str, filters: str, story: Story, status: Status) -> None:
    verdict = ask(story, FROZEN % filters)
    assert verdict.status is status, f"{what}: {verdict.because}"


COUNT = "{assert: pods, with: {labels: {app: web}, count: {phase: Running, %s}}, within: 10s}"
WEB: dict[str, Any] = {"labels": {"app": "web"}}


@pytest.mark.parametrize(
    ("what", "count", "story", "status"),
    [
        ("enough from the beginning", "least: 1", Story().pod(0, "a", **WEB), HELD),
        ("replaced in time", "least: 2", Story().pod(0, "a", **WEB).pod(15, "new", "n2", **WEB), HELD),
        ("replaced too late", "least: 2", Story().pod(0, "a", **WEB).pod(21, "new", "n2", **WEB), VIOLATED),
        ("wrong object", "least: 2", Story().pod(0, "a", **WEB).pod(15, "new", "n2"), VIOLATED),
        ("none at all is a number", "most: 0", Story().pod(0, "a"), HELD),
        ("too many", "{most: 1}", Story().pod(0, "a", **WEB).pod(0, "b", **WEB), VIOLATED),
        (
            "gone does not count",
            "least: 1",
            Story().pod(0, "a", **WEB).pod(5, "a", **GONE, **WEB),
            VIOLATED,
        ),
        ("no pod was seen anywhere", "most: 0", Story(), INCONCLUSIVE),
        ("pods were watched too late", "most: 0", Story().pod(30, "a"), INCONCLUSIVE),
        ("blind: some may be there", "least: 2", Story().pod(0, "a", **WEB).blind(12, 60, "pods"), INCONCLUSIVE),
    ],
)
def test_count(what: str, count: str, story: Story, status: Status) -> None:
    verdict = ask(story.node(0, "n1"), COUNT % count.strip("{}"))
    assert verdict.status is status, f"{what}: {verdict.because}"


def test_empty_frozen_set_is_inconclusive_but_for_its_number() -> None:
    expectation = "{assert: pods, with: {namespace: nope, at: stop, count: {phase: Running, most: 3}}, within: 10s}"
    assert ask(Story().node(0, "n1").pod(0, "a"), expectation).status is HELD
    expectation = "{assert: pods, with: {namespace: nope, at: stop, each: {phase: Running}}, within: 10s}"
    verdict = ask(Story().node(0, "n1").pod(0, "a"), expectation)
    assert verdict.status is INCONCLUSIVE
    assert verdict.because.startswith(
        "no such pod existed at stop; to decide this, nodefall needs a selection with subjects"
    )


def test_count_is_described() -> None:
    verdict = ask(Story().node(0, "n1").pod(0, "a"), COUNT % "least: 1, most: 2")
    assert verdict.expected == "1 to 2 pods are Running within 10s of stop"
    assert verdict.because.startswith("at the deadline, 10.0 s after stop: 0 pods Running")


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"each": {}},
        {"each": {"phase": "Running"}, "any": {"phase": "Running"}},
        {"each": {"phase": "Gone"}},
        {"each": {"message": "/(/"}},
        {"count": {"phase": "Running"}},
        {"count": {"phase": "Running", "least": 2, "most": 1}},
        {"each": {"phase": "Running"}, "except": ["all"]},
        {"each": {"phase": "Running"}, "where": "n1"},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Params.model_validate(bad)


@pytest.mark.parametrize("labels", [{"nodefall.dev/transport": "pod"}, {"nodefall.dev/transport": "other"}])
def test_helper_pods_of_nodefall_are_not_the_clusters(labels: dict[str, str]) -> None:
    """Transport pod reaches the node through one that no drain evicts."""
    story = web("a").pod(0, "host", labels=labels).pod(12, "a", type_="DELETED")
    gone = ask(story, "{assert: pods, with: {node: victim, each: {gone: true}}, within: 20s}")
    assert gone.status is (HELD if labels["nodefall.dev/transport"] == "pod" else VIOLATED), gone.because
    late = web("a").pod(15, "host", labels=labels, container="c9", started=14)
    assert (ask(late, STARTS).status is HELD) == (gone.status is HELD)


STARTS = "{assert: pods-started, with: {node: victim}, never: {for: 20s}}"


def waiting() -> Story:
    return web().pod(0, "w", phase="Pending", started=None)


@pytest.mark.parametrize(
    ("what", "story", "status"),
    [
        ("nothing", web(), HELD),
        ("a new pod", web().pod(15, "new", container="c9", started=14), VIOLATED),
        ("a new pod that only waits", web().pod(15, "new", phase="Pending", started=None), HELD),
        ("a new pod that is rejected", web().pod(15, "new", phase="Failed", reason="NodeShutdown", started=None), HELD),
        ("a restart in place", web().pod(15, "a", container="c2", restarts=1, started=14), VIOLATED),
        ("the same container", web().pod(15, "a", ready=False), HELD),
        ("it ended", web().pod(15, "a", phase="Succeeded"), HELD),
        ("on another node", web().pod(15, "new", "n2", container="c9", started=14), HELD),
        ("too late", web().pod(31, "new", container="c9", started=30), HELD),
        ("late status: started before", waiting().pod(12, "w", started=7), HELD),
        (
            "in the same second",
            waiting().done(10.4, "poweroff", step="stop").pod(12, "w", started=10.2),
            INCONCLUSIVE,
        ),
        (
            "in the same second, of a pod created after it",
            web().done(10.4, "poweroff", step="stop").pod(10.9, "new", container="c9", started=10.2, created=10),
            VIOLATED,
        ),
        (
            "in the same second, of a pod created in a blind window",
            web()
            .done(10.4, "poweroff", step="stop")
            .pod(10.9, "new", started=10.2, created=10)
            .blind(10.5, 10.8, "pods"),
            INCONCLUSIVE,
        ),
        ("long after, despite the start time", web().pod(28, "new", container="c9", started=5), VIOLATED),
        (
            "observed after a blind window, started before",
            web().pod(28, "w", started=5).blind(8, 28, "pods"),
            INCONCLUSIVE,
        ),
        (
            "observed after a blind window, started during it",
            web().pod(28, "w", started=12).blind(11, 28, "pods"),
            VIOLATED,
        ),
        ("blind", web().blind(15, 16, "pods"), INCONCLUSIVE),
        ("deletion not observed", web().pod(15, "a", type_="DELETED", note="missing at relist"), INCONCLUSIVE),
        (
            "started and ended between two observations",
            web().pod(15, "n", phase="Failed", container="c9", started=13),
            VIOLATED,
        ),
        ("watched too late", Story().node(0, "n1").pod(15, "a", started=-50), INCONCLUSIVE),
        ("no pod anywhere", Story().node(0, "n1"), INCONCLUSIVE),
        ("no pod on the node", Story().node(0, "n1").pod(0, "c", "n2"), HELD),
    ],
)
def test_pods_started(what: str, story: Story, status: Status) -> None:
    verdict = ask(story, STARTS)
    assert verdict.status is status, f"{what}: {verdict.because}"
