"""metric, endpoint-available and expression: a table of timelines each. A power-off of n1 begins at 10."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.verdict import Status, ValueLimit
from tests.kit.story import HELD, INCONCLUSIVE, VIOLATED, Story, ask, plugin_registry

NAME = 'kubelet_admission_rejections_total{reason="NodeShutdown"}'
A, B = {"job": "a"}, {"job": "b"}


def scraped(*values: tuple[float, float | None], node: str = "n1") -> Story:
    """Scrapes of a kubelet; None: the scrape failed."""
    story = Story().node(0, "n1").node(0, "n2")
    for t, value in values:
        lines = [] if value is None else [f"{NAME} {value:g}"]
        story.add(t, "metrics", "503" if value is None else "200", lines, node)
    return story


KUBELET = f"{{assert: metric, with: {{node: victim, name: '{NAME}', %s}}, within: 10s}}"


@pytest.mark.parametrize(
    ("what", "bounds", "story", "status"),
    [
        ("enough", "at-least: 2", scraped((5, 0), (12, 2)), HELD),
        ("too late", "at-least: 2", scraped((5, 0), (21, 2)), VIOLATED),
        ("too little", "at-least: 2", scraped((5, 0), (12, 1)), VIOLATED),
        ("between", "at-least: 1, at-most: 3", scraped((5, 0), (12, 2)), HELD),
        ("grown", "at-least: 2, increase: true", scraped((5, 7), (12, 9)), HELD),
        ("not grown", "at-least: 2, increase: true", scraped((5, 7), (12, 8)), VIOLATED),
        ("grown over a restart", "at-least: 3, increase: true", scraped((5, 7), (12, 8), (15, 0), (16, 2)), HELD),
        ("grown before", "at-least: 2, increase: true", scraped((3, 0), (5, 7), (12, 7)), VIOLATED),
        ("unreachable", "at-least: 0", scraped((5, None)), INCONCLUSIVE),
        ("another node", "at-least: 0", scraped((5, 7), node="n2"), INCONCLUSIVE),
        ("never scraped", "at-least: 0", Story().node(0, "n1"), INCONCLUSIVE),
        ("no such metric", "at-least: 0", Story().node(0, "n1").metrics(5, 1), INCONCLUSIVE),
        ("appears later", "at-most: 9, increase: true", scraped((12, 1)).metrics(5, 1).metrics(11, 1), HELD),
        ("blind", "at-least: 2", scraped((5, 0), (12, 2)).blind(11, 40, "metrics@n1"), INCONCLUSIVE),
    ],
)
def test_metrics_of_kubelets(what: str, bounds: str, story: Story, status: Status) -> None:
    verdict = ask(story, KUBELET % bounds)
    assert verdict.status is status, f"{what}: {verdict.because}"


FORCED = 'attach_detach_controller_attachdetach_controller_forced_detaches{reason="timeout"}'
DELETED = "taint_eviction_controller_pod_deletions_total"
LEADS = 'leader_election_master_status{name="kube-controller-manager"}'
ONE, TWO = "https://192.0.2.1:10257", "https://192.0.2.2:10257"


def counted(*values: tuple[float, float | None, int | None], url: str = ONE, name: str = FORCED) -> Story:
    """Scrapes of a controller-manager: time, value (None: missing) and leadership; both None: the scrape failed."""
    return counting(Story().node(0, "n1"), *values, url=url, name=name)


def counting(story: Story, *values: tuple[float, float | None, int | None], url: str, name: str = FORCED) -> Story:
    for t, value, leads in values:
        lines = [] if value is None else [f"{name} {value:g}"]
        lines += [] if leads is None else [f"{LEADS} {leads}"]
        story.add(t, "metrics", "200" if lines else "unreachable", lines, url)
    return story


CONTROLLER = "{assert: metric, with: {controller-manager: true, name: '%s', %s}, within: 10s}"
GROWN = "increase: true, at-least: 1"
NEVER = "increase: true, at-most: 0"


@pytest.mark.parametrize(
    ("what", "bounds", "story", "status"),
    [
        ("grown", GROWN, counted((5, 3, 1), (12, 4, 1)), HELD),
        ("not grown", GROWN, counted((5, 3, 1), (12, 3, 1)), VIOLATED),
        ("grown before", GROWN, counted((3, 2, 1), (5, 3, 1), (12, 3, 1)), VIOLATED),
        ("grown too late", GROWN, counted((5, 3, 1), (21, 4, 1)), VIOLATED),
        ("first of all", GROWN, counted((5, None, 1), (12, 1, 1)), HELD),
        ("none ever", GROWN, counted((5, None, 1), (12, None, 1)), VIOLATED),
        ("none ever, as it should", NEVER, counted((5, None, 1), (12, None, 1)), HELD),
        ("over a restart", GROWN, counted((5, 3, 1), (12, None, 1), (13, 1, 1)), HELD),
        ("value", "at-least: 4", counted((5, 3, 1), (12, 4, 1)), HELD),
        ("no value yet is none", "at-most: 0", counted((5, None, 1)), HELD),
        ("without leader election", GROWN, counted((5, 3, None), (12, 4, None)), HELD),
        ("does not lead", GROWN, counted((5, 3, 0), (12, 4, 0)), INCONCLUSIVE),
        ("leads no more", NEVER, counted((5, 3, 1), (8, 3, 0)), INCONCLUSIVE),
        ("died", NEVER, counted((5, 3, 1), (8, None, None)), INCONCLUSIVE),
        ("blind", NEVER, counted((5, 3, 1), (12, 3, 1)).blind(8, 40, f"metrics@{ONE}"), INCONCLUSIVE),
        ("never read", NEVER, Story().node(0, "n1").metrics(5, 1), INCONCLUSIVE),
        ("the other leads", GROWN, counting(counted((5, 9, 0), (12, 9, 0)), (5, 3, 1), (12, 4, 1), url=TWO), HELD),
        ("the other is dead", GROWN, counting(counted((5, 3, 1), (12, 4, 1)), (6, None, None), url=TWO), HELD),
        ("handed over", GROWN, counting(counted((5, 9, 1), (11, None, None)), (5, 3, 0), (12, 4, 1), url=TWO), HELD),
        ("two counted", "increase: true, at-least: 2", counting(
            counted((5, 9, 1), (11, 10, 1), (12, 10, 0)), (5, 3, 0), (13, 4, 1), url=TWO), HELD),
        ("what the other had before", GROWN, counting(
            counted((5, 0, 1), (12, 0, 0)), (5, 7, 0), (11, 7, 1), url=TWO), VIOLATED),
    ],
)  # fmt: skip
def test_metrics_of_the_controller_manager(what: str, bounds: str, story: Story, status: Status) -> None:
    verdict = ask(story, CONTROLLER % (FORCED, bounds))
    assert verdict.status is status, f"{what}: {verdict.because}"


def test_missing_counter_without_labels_is_not_zero() -> None:
    absent = ask(counted((5, None, 1), (12, None, 1)), CONTROLLER % (DELETED, "at-most: 0"))
    assert absent.status is INCONCLUSIVE
    assert "the leader has no such metric" in absent.because
    assert ask(counted((5, 0, 1), name=DELETED), CONTROLLER % (DELETED, "at-most: 0")).status is HELD


def test_unknown_label_value_is_not_zero() -> None:
    expectation = CONTROLLER % (FORCED.replace("timeout", "time-out"), "at-most: 0")
    assert ask(counted((5, 3, 1)), expectation).status is INCONCLUSIVE


def queried(*values: tuple[float, float | None]) -> Story:
    story = Story().node(0, "n1")
    for t, value in values:
        story.query(t, "errors", *([(A, [(t, value)])] if value is not None else []))
    return story


def two() -> Story:
    return Story().query(6, "errors", (A, [(6, 0)]), (B, [(6, 1)]))


QUERY = "{assert: metric, with: {query: errors, %s}, always: {for: 20s}}"


@pytest.mark.parametrize(
    ("what", "bounds", "story", "status"),
    [
        ("low", "at-most: 0.1", queried((5, 0), (15, 0.1), (25, 0)), HELD),
        ("once too high", "at-most: 0.1", queried((5, 0), (15, 0.5), (20, 0)), VIOLATED),
        ("too high before and after", "at-most: 0.1", queried((5, 1), (9, 0), (31, 1)), HELD),
        ("asked too late", "at-most: 0.1", queried((15, 0)), INCONCLUSIVE),
        ("the series ends", "at-most: 0.1", queried((5, 0), (15, None)), INCONCLUSIVE),
        ("no number", "at-most: 0.1", Story().node(0, "n1").query(5, "errors", (A, [(5, None)])), INCONCLUSIVE),
        ("another query", "at-most: 0.1", Story().node(0, "n1").query(5, "other", (A, [(5, 0)])), INCONCLUSIVE),
        ("the whole run", "at-most: 0.1", queried((5, 0)).query(90, "errors", (A, [(5, 0), (15, 1)])), VIOLATED),
        ("each series", "at-most: 0.1", two(), VIOLATED),
        ("that series", "at-most: 0.1, labels: {job: a}", two(), HELD),
        ("no such series", "at-most: 0.1, labels: {job: c}", queried((5, 0)), INCONCLUSIVE),
        ("any series", "at-least: 1, series: any", two(), HELD),
        ("no series", "at-least: 2, series: none", two(), HELD),
        ("any result", "labels: {}", queried((5, 0)), HELD),
        ("no result", "labels: {}", queried((5, 0), (15, None)), VIOLATED),
        ("blind", "at-most: 0.1", queried((5, 0), (25, 0)).blind(15, 25, "prometheus"), INCONCLUSIVE),
    ],
)
def test_queries(what: str, bounds: str, story: Story, status: Status) -> None:
    verdict = ask(story.node(0, "n1"), QUERY % bounds)
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(
    "bad",
    [
        {"at-most": 1},
        {"name": "x", "at-most": 1},
        {"node": "n1", "query": "x", "at-most": 1},
        {"node": "n1", "name": "x"},
        {"query": "x", "increase": True},
        {"node": "n1", "name": "x", "at-most": 1, "labels": {"a": "b"}},
        {"query": "x", "series": "some"},
        {"controller-manager": True, "at-most": 1},
        {"controller-manager": True, "query": "x", "at-most": 1},
        {"controller-manager": True, "node": "n1", "name": FORCED, "at-most": 1},
        {"controller-manager": True, "name": FORCED},
        {"controller-manager": True, "name": NAME, "at-most": 1},
        {"controller-manager": True, "name": FORCED.partition("{")[0], "at-most": 1},
        {"controller-manager": True, "name": FORCED, "at-most": 1, "labels": {"a": "b"}},
        {"controller-manager": False, "name": FORCED, "at-most": 1},
    ],
)
def test_bad_metrics(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        plugin_registry().assertions["metric"].params.model_validate(bad)


def probed(*failing: float, seconds: float = 0.01, until: int = 60) -> Story:
    """A probe every second from 0 on."""
    story = Story().node(0, "n1")
    for t in range(until):
        story.probe(t, "shop", t not in failing, seconds)
    return story


PROBE = "{assert: endpoint-available, with: {probe: shop, %s}, always: {for: 40s}}"


@pytest.mark.parametrize(
    ("what", "budget", "story", "status"),
    [
        ("never fails", "budget: 0s", probed(), HELD),
        ("fails once", "budget: 0s", probed(20), VIOLATED),
        ("fails once, within the budget", "budget: 1s", probed(20), HELD),
        ("fails twice, far apart", "budget: 1s", probed(20, 30), VIOLATED),
        ("fails for two seconds", "budget: 2s", probed(20, 21), HELD),
        ("fails before", "budget: 0s", probed(5, 6), HELD),
        ("fails after", "budget: 0s", probed(55), HELD),
        ("fails at the beginning", "budget: 1s", probed(9, 10), HELD),
        ("percent", "budget: 5%, over: 40s", probed(20, 30), HELD),
        ("too many percent", "budget: 5%, over: 40s", probed(20, 25, 30), VIOLATED),
        ("slow", "answer-within: 500ms", probed(seconds=0.7), VIOLATED),
        ("quick enough", "answer-within: 500ms", probed(seconds=0.4), HELD),
        ("blind for longer than the budget", "budget: 3s", probed().blind(20, 24, "probe@shop"), INCONCLUSIVE),
        ("blind for less than the budget", "budget: 5s", probed().blind(20, 24, "probe@shop"), HELD),
        ("blind, and broken", "budget: 1s", probed(30, 31).blind(20, 24, "probe@shop"), VIOLATED),
        ("blind for another", "budget: 0s", probed().blind(20, 24, "probe@other"), HELD),
        ("not probed any longer", "budget: 5s", probed(until=20), INCONCLUSIVE),
        ("never probed", "budget: 5s", Story().node(0, "n1"), INCONCLUSIVE),
        ("another probe", "budget: 5s", Story().node(0, "n1").probe(0, "other"), INCONCLUSIVE),
    ],
)
def test_endpoint_available(what: str, budget: str, story: Story, status: Status) -> None:
    verdict = ask(story, PROBE % budget)
    assert verdict.status is status, f"{what}: {verdict.because}"


def stalled(*slow: int, seconds: float = 0.05, stall: float = 1.5) -> Story:
    """A request each second; those of ``slow`` take ``stall`` seconds, and the next one is sent after them."""
    story, t = Story().node(0, "n1"), 0.0
    while t < 100:
        took = stall if round(t) in slow else seconds
        story.probe(t + took, "shop", True, took)
        t += max(1.0, took)
    return story


@pytest.mark.parametrize(
    ("what", "wanted", "story", "status"),
    [
        ("all succeed", 'success-at-least: "99.9%"', stalled(), HELD),
        ("one of forty fails", 'success-at-least: "97.4%"', probed(20), HELD),
        ("one of forty fails, and that is too many", 'success-at-least: "97.6%"', probed(20), VIOLATED),
        ("too slow is a failure", 'success-at-least: "99%", answer-within: 1s', stalled(20), VIOLATED),
        ("all quick", "p95-below: 300ms", stalled(), HELD),
        ("all at the limit", "p95-below: 300ms", stalled(seconds=0.3), VIOLATED),
        ("one of forty is slow", "p95-below: 300ms", stalled(20), HELD),
        ("two of forty are slow, and delay others", "p95-below: 300ms", stalled(20, 30), VIOLATED),
        ("one stalls for as long as three", "p95-below: 300ms", stalled(20, stall=3), VIOLATED),
        ("failures are slow", "p95-below: 300ms", probed(20, 25, 30), VIOLATED),
        ("half of them", "p50-below: 300ms", stalled(20, stall=3), HELD),
        ("both", 'success-at-least: "99%", p95-below: 300ms', stalled(20, 30), VIOLATED),
        ("slow before and after", "p95-below: 300ms", stalled(5, 6, 52, 54, 56), HELD),
        ("too few for the 99th percentile", "p99-below: 300ms", stalled(), INCONCLUSIVE),
        ("too few, and certainly slow", "p99-below: 300ms", stalled(20), VIOLATED),
        ("not observed", "p95-below: 300ms", stalled().blind(20, 24, "probe@shop"), INCONCLUSIVE),
        ("not observed for less than a twentieth", "p95-below: 300ms", stalled().blind(20, 21.5, "probe@shop"), HELD),
        ("not observed, and slow", "p95-below: 300ms", stalled(30, stall=3).blind(20, 24, "probe@shop"), VIOLATED),
        ("not probed at the end", "p95-below: 300ms", probed(until=44), INCONCLUSIVE),
        ("one may be in flight at the end", 'success-at-least: "99.9%"', probed(until=49), INCONCLUSIVE),
    ],
)
def test_shares_of_answers(what: str, wanted: str, story: Story, status: Status) -> None:
    """Of the 40 s after 10."""
    verdict = ask(story, PROBE % f"{wanted}, over: 40s")
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"success-at-least": "99.9%"}, "need each other"),
        ({"p95-below": "300ms"}, "need each other"),
        ({"p95-below": "300ms", "over": "1m", "budget": "1s"}, "give a budget, or"),
        ({"success-at-least": "99.9", "over": "1m"}, "write it like 99.9%"),
        ({"success-at-least": "101%", "over": "1m"}, "invalid percentage"),
    ],
)
def test_bad_shares(params: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        plugin_registry().assertions["endpoint-available"].params.model_validate({"probe": "shop", **params})


def test_moment_at_which_the_budget_is_exhausted() -> None:
    verdict = ask(probed(20, 21, 22), PROBE % "budget: 1500ms")
    assert verdict.because == "failed for 1.5s and continued to fail: status 503, 11.5 s after stop"


@pytest.mark.parametrize("bad", ["much", "5%", "-1%", "101%", "x%"])
def test_bad_budgets(bad: str) -> None:
    with pytest.raises(ValidationError):
        plugin_registry().assertions["endpoint-available"].params.model_validate({"probe": "shop", "budget": bad})


@pytest.mark.parametrize(
    ("expectation", "story", "limits"),
    [
        (PROBE % "budget: 2s", probed(), [("probe", "shop", "failing", "at-most", 2.0)]),
        (PROBE % "budget: 5%, over: 40s, answer-within: 500ms", probed(20, 21, 22), [
            ("probe", "shop", "failing", "at-most", 2.0), ("probe", "shop", "latency", "at-most", 0.5)]),
        (QUERY % "at-most: 0.1", two(), [("query", "errors", "value", "at-most", 0.1)]),
        (QUERY % "at-least: 0, at-most: 1, labels: {job: a}", two(), [
            ("query", "errors", "value", "at-least", 0.0, A), ("query", "errors", "value", "at-most", 1.0, A)]),
        (QUERY % "at-most: 3, increase: true", two(), [("query", "errors", "increase", "at-most", 3.0)]),
        (QUERY % "at-least: 0.5, at-most: .inf", two(), [("query", "errors", "value", "at-least", 0.5)]),
        (QUERY % "at-most: .nan", two(), []),
        (QUERY % "labels: {}", two(), []),
        (KUBELET % "at-least: 2", scraped((5, 0), (12, 2)), [("metric", NAME, "value", "at-least", 2.0)]),
        (CONTROLLER % (FORCED, "at-most: 0"), counted((5, 3, 1)), [("metric", FORCED, "value", "at-most", 0.0)]),
        ("{assert: nodes-ready, with: {not-ready-at-most: 1}, within: 10s}", Story().node(0, "n1"), []),
    ],
)  # fmt: skip
def test_limits_of_measured_values(expectation: str, story: Story, limits: list[tuple[Any, ...]]) -> None:
    assert list(ask(story.node(0, "n1"), expectation).limits) == [ValueLimit(*limit) for limit in limits]


def cluster() -> Story:
    return Story().node(0, "n1").node(0, "n2").pod(0, "a").pod(0, "b", "n2").workload(0, "web", 2, 2)


BROKEN = {"metadata": {"uid": "uid-a"}, "spec": 1}
EXPRESSION = "{assert: expression, with: {node: victim, expression: '%s'}, within: 10s}"


@pytest.mark.parametrize(
    ("what", "expression", "story", "status"),
    [
        ("true", "nodes.all(n, n.ready)", cluster(), HELD),
        ("false", "nodes.exists(n, !n.ready)", cluster(), VIOLATED),
        ("comes true", "nodes.exists(n, !n.ready)", cluster().node(15, "n1", "False"), HELD),
        ("comes true too late", "nodes.exists(n, !n.ready)", cluster().node(25, "n1", "False"), VIOLATED),
        ("a deleted pod", "pods.size() == 1", cluster().pod(15, "a", type_="DELETED"), HELD),
        ("targets", "pods.exists(p, !(p.node in targets) && p.ready)", cluster(), HELD),
        ("targets of none", "pods.all(p, p.node in targets)", cluster(), VIOLATED),
        ("workloads", 'workloads.all(w, w.kind == "Deployment" && w.ready == w.wanted)', cluster(), HELD),
        ("taints", '"a:NoSchedule" in nodes[0].taints', cluster().node(15, "n1", taints=["a:NoSchedule"]), HELD),
        ("unknown field", "nodes.exists(n, n.colour == 1)", cluster(), INCONCLUSIVE),
        ("no observation", "pods.size() == 0", Story().node(0, "n1"), INCONCLUSIVE),
        ("watched too late", "nodes.size() == 1 && pods.size() == 1", Story().node(0, "n1").pod(30, "a"), INCONCLUSIVE),
        ("blind", "pods.size() == 1", cluster().blind(12, 40, "pods"), INCONCLUSIVE),
        ("blind of something else", "nodes.size() == 2", cluster().blind(8, 40, "pods"), HELD),
        ("unknown format", "pods.size() == 2", cluster().add(5, "pods", "MODIFIED", BROKEN), INCONCLUSIVE),
    ],
)
def test_expression(what: str, expression: str, story: Story, status: Status) -> None:
    verdict = ask(story, EXPRESSION % expression)
    assert verdict.status is status, f"{what}: {verdict.because}"


SWAPPED = {
    "metadata": {"name": "n1", "uid": "uid-n1"},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"bootID": "boot-n1", "swap": {"capacity": 2 << 30}},
    },
}
BEFORE = (
    "{assert: expression, with: {at: stop, expression: "
    "'nodes.all(n, before.exists(b, b.name == n.name && b.ready == n.ready && b.swap == n.swap))'}, "
    "within: 10s, for: 5s}"
)


@pytest.mark.parametrize(
    ("what", "story", "status"),
    [
        ("as before", cluster(), HELD),
        ("again as before", cluster().node(12, "n1", "False").node(16, "n1"), HELD),
        ("changed", cluster().node(12, "n1", "False"), VIOLATED),
        ("a new node", cluster().node(12, "n3"), VIOLATED),
        ("with swap", cluster().add(12, "nodes", "MODIFIED", SWAPPED), VIOLATED),
        ("before the first observation", Story().node(20, "n1"), INCONCLUSIVE),
    ],
)
def test_nodes_at_a_step(what: str, story: Story, status: Status) -> None:
    verdict = ask(story, BEFORE)
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("nodes.siz() == 1", "undeclared reference to 'siz'"),
        ("node.size() == 1", "undeclared reference to 'node'"),
        ("nodes.size()", "its type is INT, not bool"),
        ("nodes.all(n, n.ready", "invalid CEL expression .*: line 1, column"),
        ("1 < 2", "uses none of nodes, pods, workloads"),
        ("before.size() == nodes.size()", "give the step"),
    ],
)
def test_bad_expressions(bad: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        plugin_registry().assertions["expression"].params.model_validate({"expression": bad})
