"""pods: replacements, rate, order, container states and aliases. A step begins at 10."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from chaos.core.verdict import Status
from chaos.verdicts.assertions._pods import Params
from chaos.verdicts.judge.series import parse_rate
from tests.kit.story import HELD, INCONCLUSIVE, VIOLATED, Story, ask, plugin_registry

DB: dict[str, Any] = {"owner": ("StatefulSet", "db")}
OTHER: dict[str, Any] = {"owner": ("ReplicaSet", "api-1")}


def zoned(story: Story, **zones: str) -> Story:
    for name, zone in zones.items():
        labels = {"topology.kubernetes.io/zone": zone}
        story.add(0, "nodes", "LIST", {"metadata": {"name": name, "labels": labels}, "status": {}})
    return story


def web(*names: str) -> Story:
    story = zoned(Story(), n1="a", n2="a", n3="b")
    for name in names or ("a", "b"):
        story.pod(0, name).pod(12, name, deleting=True)
    return story


def db() -> Story:
    return zoned(Story(), n1="a", n2="a").pod(0, "db-0", **DB).pod(12, "db-0", deleting=True, **DB)


REPLACED = "{assert: pods, with: {node: victim, as: reported, each: {replaced: {%s}}}, within: 20s}"


@pytest.mark.parametrize(
    ("what", "filters", "story", "status"),
    [
        ("both, elsewhere", "node: other", web().pod(15, "c", "n2").pod(16, "d", "n3"), HELD),
        ("one of two", "node: other", web().pod(15, "c", "n2"), VIOLATED),
        ("too late", "node: other", web().pod(15, "c", "n2").pod(31, "d", "n3"), VIOLATED),
        ("on the same node", "node: other", web("a").pod(15, "c", "n1"), VIOLATED),
        ("on the same node, as asked", "node: same", web("a").pod(15, "c", "n1"), HELD),
        ("anywhere", "ready: true", web("a").pod(15, "c", "n1"), HELD),
        ("in another zone", "zone: other", web("a").pod(15, "c", "n3"), HELD),
        ("in the same zone", "zone: other", web("a").pod(15, "c", "n2"), VIOLATED),
        ("in that zone", "zone: b", web("a").pod(15, "c", "n3"), HELD),
        ("not ready", "ready: true", web("a").pod(15, "c", "n2", ready=False), VIOLATED),
        ("not ready, as asked", "ready: false", web("a").pod(15, "c", "n2", ready=False), HELD),
        ("not bound to a node", "node: other", web("a").pod(15, "c", "", ready=False), VIOLATED),
        ("going again", "ready: true", web("a").pod(15, "c", "n2", deleting=True), VIOLATED),
        ("another controller's", "ready: true", web("a").pod(15, "c", "n2", **OTHER), VIOLATED),
        ("there before", "ready: true", web("a").pod(5, "c", "n2"), VIOLATED),
        ("of the same name", "node: other", db().pod(15, "db-0", "n2", uid="new", **DB), HELD),
        ("of another name", "node: other", db().pod(15, "db-1", "n2", **DB), VIOLATED),
        ("blind", "node: other", web("a").blind(12, 60, "pods"), INCONCLUSIVE),
    ],
)
def test_replaced(what: str, filters: str, story: Story, status: Status) -> None:
    verdict = ask(story, REPLACED % filters)
    assert verdict.status is status, f"{what}: {verdict.because}"


APART = "{assert: %s, with: {not-on: victim, as: reported, %s}, within: 20s}"
MOVED = "pods-rescheduled", "node: victim"


@pytest.mark.parametrize(
    ("what", "question", "story", "status"),
    [
        ("to a third node", MOVED, web("a").pod(15, "c", "n3"), HELD),
        ("to the other victim", MOVED, web("a").pod(15, "c", "n2"), VIOLATED),
        ("to the other victim, then to a third node", MOVED, web("a").pod(15, "c", "n2").pod(20, "d", "n3"), HELD),
        ("not bound to a node", MOVED, web("a").pod(15, "c", "", ready=False), VIOLATED),
        ("too late", MOVED, web("a").pod(15, "c", "n2").pod(31, "d", "n3"), VIOLATED),
        ("of two, one stays", MOVED, web().pod(15, "c", "n3").pod(16, "d", "n2"), VIOLATED),
        ("in an observation gap", MOVED, web("a").blind(12, 60, "pods"), INCONCLUSIVE),
        ("seen before the gap", MOVED, web("a").pod(15, "c", "n3").blind(18, 60, "pods"), HELD),
        ("pods elsewhere", ("pods", "count: {ready: true, least: 1}"), Story().pod(0, "a", "n3"), HELD),
        ("pods on a victim", ("pods", "count: {ready: true, least: 1}"), Story().pod(0, "a", "n2"), VIOLATED),
        ("none may run there", ("pods", "none: {ready: true}"), Story().pod(0, "a", "n3"), VIOLATED),
        ("none runs there", ("pods", "none: {ready: true}"), Story().pod(0, "a", "n2"), HELD),
        ("each pod", ("pods", "each: {ready: true}"), Story().pod(0, "a", "n3").pod(0, "b", "n2"), VIOLATED),
        ("any pod", ("pods", "any: {ready: true}"), Story().pod(0, "a", "n3").pod(0, "b", "n2"), HELD),
        (
            "a pod that may have moved in a gap",
            ("pods", "count: {ready: true, least: 1}"),
            Story().pod(0, "a", "n2").blind(9, 60, "pods"),
            INCONCLUSIVE,
        ),
    ],
)
def test_not_on_a_target(what: str, question: tuple[str, str], story: Story, status: Status) -> None:
    for node in ("n1", "n2"):
        story.done(10, "poweroff", node, step="stop")
    verdict = ask(story, APART % question, bind={"victim": ("n1", "n2")})
    assert verdict.status is status, f"{what}: {verdict.because}"
    assert ("observ" if status is INCONCLUSIVE else "not on n1, n2") in f"{verdict.because} {verdict.expected}"


def test_replaced_with_another_condition() -> None:
    expectation = "{assert: pods, with: {node: victim, each: {deleting: true, replaced: {node: other}}}, within: 20s}"
    replaced = zoned(Story(), n1="a", n2="a").pod(0, "a").pod(15, "c", "n2")
    assert ask(replaced, expectation).status is VIOLATED
    assert ask(replaced.pod(16, "a", deleting=True), expectation).status is HELD


@pytest.mark.parametrize(
    ("filters", "pod", "status"),
    [
        ("scheduled: false", {"node": ""}, HELD),
        ("scheduled: false", {}, VIOLATED),
        ("exit-code: 143", {"phase": "Failed", "ended": 14, "exit_code": 143}, HELD),
        ("exit-code: 143", {"phase": "Failed", "ended": 14, "exit_code": 137}, VIOLATED),
        ("exit-code: 143", {}, VIOLATED),
        ("waiting: CrashLoopBackOff", {}, VIOLATED),
        ("disruption: any", {"disruption": "EvictionByEvictionAPI"}, HELD),
        ("disruption: any", {}, VIOLATED),
        ("disruption: none", {}, HELD),
    ],
)
def test_states(filters: str, pod: dict[str, Any], status: Status) -> None:
    verdict = ask(web("a").pod(15, "a", **pod), f"{{assert: pods, with: {{each: {{{filters}}}}}, within: 20s}}")
    assert verdict.status is status, verdict.because


def test_waiting_container() -> None:
    waits = {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    metadata = {"name": "a", "namespace": "demo", "uid": "uid-a"}
    status = {"phase": "Running", "containerStatuses": [waits]}
    story = web("a").add(15, "pods", "MODIFIED", {"metadata": metadata, "status": status})
    expectation = "{assert: pods, with: {each: {waiting: %s}}, within: 20s}"
    assert ask(story, expectation % "CrashLoopBackOff").status is HELD
    assert ask(story, expectation % "ImagePullBackOff").status is VIOLATED


def taken(*times: float, per_node: int = 1) -> Story:
    """Pods evicted by a taint, one node after the other."""
    story = Story().node(0, "n1")
    for number, t in enumerate(times):
        for which in range(per_node):
            name = f"p{number}-{which}"
            story.pod(0, name, f"n{number}").pod(t, name, f"n{number}", deleting=True)
    return story


@pytest.mark.parametrize(
    ("what", "rate", "story", "status"),
    [
        ("slow enough", "at-most: 0.1/s", taken(12, 22, 32), HELD),
        ("a little jitter", "at-most: 0.1/s, over: 20s", taken(12.1, 22, 32.05), HELD),
        ("too fast", "at-most: 0.1/s", taken(12, 14, 16, 18), VIOLATED),
        ("per minute", "at-most: 6/m", taken(12, 14, 16, 18), VIOLATED),
        ("none", "at-most: 0.1/s", taken(), INCONCLUSIVE),
        ("none of them", "at-most: 0.1/s", web(), HELD),
        ("pods of one node at once", "at-most: 0.1/s", taken(12, 22, per_node=5), VIOLATED),
        ("counted by node", "at-most: 0.1/s, per: node", taken(12, 22, per_node=5), HELD),
        ("nodes too fast", "at-most: 0.1/s, per: node", taken(12, 13, 14, 15, per_node=5), VIOLATED),
        ("before the beginning", "at-most: 0.1/s", taken(5, 6, 7, 8, 12), HELD),
        ("blind", "at-most: 0.1/s", taken(12, 22).blind(30, 40, "pods"), INCONCLUSIVE),
        ("at once after a blind window", "at-most: 0.1/s", taken(40, 40, 40, 40).blind(8, 40, "pods"), INCONCLUSIVE),
    ],
)
def test_rate(what: str, rate: str, story: Story, status: Status) -> None:
    verdict = ask(story, f"{{assert: pods, with: {{rate: {{deleting: true, {rate}}}}}, always: {{for: 60s}}}}")
    assert verdict.status is status, f"{what}: {verdict.because}"


def test_minimum_rate() -> None:
    expectation = "{assert: pods, with: {rate: {deleting: true, at-least: 0.1/s, over: 20s}}, within: 30s}"
    assert ask(taken(12, 22), expectation).status is HELD
    assert ask(taken(12, 42), expectation).status is VIOLATED


ORDER = "{assert: pods, with: {order: {by: ordinal, %sdeleting: true, least: 3}}, within: 30s}"


def going(*ordinals: int) -> Story:
    story = Story().node(0, "n1")
    for number, ordinal in enumerate(ordinals):
        story.pod(0, f"db-{ordinal}", **DB).pod(12 + number, f"db-{ordinal}", deleting=True, **DB)
    return story


@pytest.mark.parametrize(
    ("descending", "story", "status"),
    [
        ("", going(0, 1, 2), HELD),
        ("", going(0, 2, 1), VIOLATED),
        ("", going(0, 1), VIOLATED),
        ("descending: true, ", going(2, 1, 0), HELD),
        ("descending: true, ", going(0, 1, 2), VIOLATED),
        ("", going(8, 9, 10, 11), HELD),
        ("", going(0, 1, 2).blind(11, 20, "pods"), INCONCLUSIVE),
    ],
)
def test_order(descending: str, story: Story, status: Status) -> None:
    verdict = ask(story, ORDER % descending)
    assert verdict.status is status, verdict.because


def test_order_by_priority() -> None:
    story = Story().node(0, "n1").pod(0, "low", priority=1).pod(0, "high", priority=9)
    story.pod(12, "high", priority=9, deleting=True).pod(14, "low", priority=1, deleting=True)
    expectation = "{assert: pods, with: {order: {by: priority, deleting: true%s}}, within: 30s}"
    assert ask(story, expectation % "").status is VIOLATED
    assert ask(story, expectation % ", descending: true").status is HELD


@pytest.mark.parametrize(
    ("alias", "expectation", "same"),
    [
        ("pods-stuck", "{node: victim}", "{node: victim, each: {deleting: true, gone: false}}"),
        ("pods-stuck", "{none: {}}", "{none: {deleting: true, gone: false}}"),
        ("pods-stuck", "{any: {phase: Running}}", "{any: {deleting: true, gone: false, phase: Running}}"),
        ("pods-rejected", "{node: all}", "{node: all, count: {phase: Failed, reason: NodeShutdown, least: 1}}"),
        ("pods-rejected", "{count: {most: 3}}", "{count: {phase: Failed, reason: NodeShutdown, least: 1, most: 3}}"),
        ("pods-rejected", "{none: {reason: X}}", "{none: {phase: Failed, reason: X}}"),
        ("pods-rescheduled", "{each: {ready: false}}", "{each: {ready: false, replaced: {node: other}}}"),
        ("pods-rescheduled", "{not-on: victim}", "{not-on: victim, each: {replaced: {node: other}}}"),
        ("pods-disrupted", "{at: stop}", "{at: stop, each: {disruption: any}}"),
    ],
)
def test_aliases(alias: str, expectation: str, same: str) -> None:
    meant = plugin_registry().assertions[alias].params.model_validate(yaml.safe_load(expectation))
    assert meant.model_dump() == Params.model_validate(yaml.safe_load(same)).model_dump()


@pytest.mark.parametrize(
    "bad",
    [
        {"each": 1},
        {"each": {}, "none": {}},
        {"rate": {"at-most": "fast"}},
        {"rate": {"deleting": True}},
        {"order": {"by": "age", "deleting": True}},
        {"count": {"replaced": {}, "least": 1}},
        {"rate": {"at-most": "1/s", "deleting": True}, "not-on": "victim"},
        {"each": {"replaced": {"node": "n2"}}},
        "each",
    ],
)
def test_bad_parameters(bad: Any) -> None:
    for params in (Params, plugin_registry().assertions["pods-stuck"].params):
        if bad != {"each": {}, "none": {}} or params is Params:
            with pytest.raises(ValidationError):
                params.model_validate(bad)


@pytest.mark.parametrize(("text", "rate"), [("0.1/s", 0.1), ("6/m", 0.1), ("36/h", 0.01)])
def test_rates(text: str, rate: float) -> None:
    assert parse_rate(text) == pytest.approx(rate)
