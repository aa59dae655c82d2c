"""Steps whose request took effect long after it was sent. The step begins at 10."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.assertion import NotYetDecidable
from chaos.core.experiment import Expectation
from chaos.core.verdict import Status
from chaos.verdicts.judge.effects import effect_of, effect_of_all, longest_pause
from chaos.verdicts.judge.evaluate import evaluate
from tests.kit.node_versions import node
from tests.kit.story import HELD, INCONCLUSIVE, PENDING, T0, VIOLATED, Story, ask, context_of, experiment

TAINTED = "{assert: node-taint, with: {node: victim, key: k}, within: 5s}"
TAINTED_AFTER_1 = "{assert: node-taint, with: {node: victim, key: k}, after: stop + 1s, within: 5s}"
NEVER = "{assert: node-taint, with: {node: victim, key: k}, never: {for: 5s}}"
ALWAYS_CLEAN = "{assert: node-taint, with: {node: victim, key: k, present: false}, always: {for: 5s}}"
CORDONED = experiment(method="[{name: stop, action: cordon, target: victim}]")
Fields = dict[str, Any]


def cordon(cordoned: float | None, tainted: float = 90, proofs: tuple[float, ...] = (), **returned: Any) -> Story:
    """A cordon that the API server answers at 25; the versions with its effect and a taint came at these times."""
    story = node(Story(), 0, "n1", type_="LIST").act(10, "cordon", step="stop").current(1, "nodes")
    if returned.get("delivery") != "none":
        given = {"delivery": "answered", "evidence": {"fired": T0 + 10.5}} | returned
        story.act(25, "cordon", "returned", step="stop", **given)
    if cordoned is not None:
        node(story, cordoned, "n1", cordoned=True)
    node(story, tainted, "n1", cordoned=cordoned is not None, taints="k:NoSchedule")
    for t in (*proofs, tainted - 0.01, 99):
        story.current(t, "nodes")
    return story


@pytest.mark.parametrize(
    ("what", "expectation", "story", "status"),
    [
        ("in time, wherever", TAINTED, cordon(22, 24, (21.5,)), HELD),
        ("too late, wherever", TAINTED, cordon(22, 28, (21.5,)), VIOLATED),
        ("in time only if it took effect late", TAINTED, cordon(22, 26.8, (21.5,)), INCONCLUSIVE),
        ("much too late for its start", TAINTED, cordon(22, 26, (21.5,)), HELD),
        ("an effect that was not seen", TAINTED, cordon(None, 18), INCONCLUSIVE),
        ("in time wherever in the request", TAINTED, cordon(None, 14), HELD),
        ("too late even for the answer", TAINTED, cordon(None, 31), VIOLATED),
        ("with an offset", TAINTED_AFTER_1, cordon(22, 27.2, (21.5,)), HELD),
        ("never, until long enough after it", NEVER, cordon(22, 28, (21.5,)), HELD),
        ("never, but perhaps too early", NEVER, cordon(22, 26.8, (21.5,)), INCONCLUSIVE),
        ("never, and too early", NEVER, cordon(22, 26, (21.5,)), VIOLATED),
        ("before the effect is no matter", NEVER, cordon(22, 90, (21.5,)), HELD),
        ("always", ALWAYS_CLEAN, cordon(22, 26.8, (21.5,)), INCONCLUSIVE),
        ("without an answer", TAINTED, cordon(None, 12, delivery="lost"), INCONCLUSIVE),
        ("without an answer, but seen", TAINTED, cordon(22, 24, (21.5,), delivery="lost"), HELD),
        ("not returned", TAINTED, cordon(None, 12, delivery="none"), INCONCLUSIVE),
    ],
)
def test_verdicts(what: str, expectation: str, story: Story, status: Status) -> None:
    verdict = ask(story, expectation, action="cordon")
    assert verdict.status is status, f"{what}: {verdict.because}"


def test_a_version_that_shows_what_was_so_before_is_no_effect() -> None:
    """The node was cordoned already; its kubelet reported its status at 22, and the taint came at 26.5."""
    story = node(Story(), 0, "n1", type_="LIST")
    node(story, 5, "n1", cordoned=True).act(10, "cordon", step="stop").current(1, "nodes")
    story.act(25, "cordon", "returned", step="stop", delivery="answered", evidence={"fired": T0 + 10.5})
    node(story, 22, "n1", cordoned=True)
    node(story, 26.5, "n1", cordoned=True, taints="k:NoSchedule")
    for t in (21.5, 26.4, 99):
        story.current(t, "nodes")
    assert ask(story, TAINTED, action="cordon").status is INCONCLUSIVE


ENDED = "{assert: pods, with: {node: victim, at: stop, %s}, within: pod.terminationGracePeriodSeconds}"


@pytest.mark.parametrize(
    ("question", "status"),
    [
        ("count: {phase: [Succeeded], least: 1, most: 1}", INCONCLUSIVE),  # one if it took effect at 17
        ("count: {phase: [Succeeded], least: 0, most: 1}", INCONCLUSIVE),
        ("count: {phase: [Succeeded], least: 0, most: 2}", HELD),
        ("count: {phase: [Succeeded], least: 3}", VIOLATED),
        ("any: {phase: [Succeeded]}", INCONCLUSIVE),
    ],
)
def test_a_count_of_pods_with_a_bound_each(question: str, status: Status) -> None:
    """The effect was in 10.5 to 25, so the grace of 30 s ends in 40.5 to 55; the pods end at 45 and 50."""
    story = cordon(None).current(1, "pods")
    for name, ended in (("a", 45), ("b", 50)):
        story.pod(0, name, type_="LIST").pod(ended, name, phase="Succeeded", ended=ended)
    for t in range(9, 99):
        story.current(t, "pods")
    verdict = ask(story, ENDED % question, action="cordon")
    assert verdict.status is status, verdict.because


def test_the_reason_says_when_it_may_have_taken_effect() -> None:
    verdict = ask(cordon(22, 26.8, (21.5,)), TAINTED, action="cordon")
    assert verdict.because.startswith("stop took effect 11.5 to 12.0 s after it was sent, and the verdict depends on")


def test_a_request_without_an_answer_is_waited_for() -> None:
    story = cordon(None, 18, delivery="none")
    assert ask(story, TAINTED, end=24, live=True, action="cordon").status is PENDING


def test_an_abort_counts_from_the_begin_and_waits_for_no_answer() -> None:
    context = context_of(cordon(None, 12, delivery="none"), CORDONED, 24, live=True)
    never = Expectation.model_validate(
        {"assert": "node-taint", "with": {"node": "victim", "key": "k"}, "never": {"for": "5s"}}
    )
    assert evaluate(never, context, T0 + 24, from_begin=True).status is VIOLATED
    assert evaluate(never, context, T0 + 24).status is PENDING


@pytest.mark.parametrize(
    ("what", "evidence", "expected"),
    [
        ("nothing is known", {}, (10, 40)),
        ("the first request about a pod", {"pods": [{"sent": T0 + 20, "answered": T0 + 23}]}, (20, 23)),
        (
            "of two pods",
            {"pods": [{"sent": T0 + 23, "answered": T0 + 24}, {"sent": T0 + 20, "answered": T0 + 22}]},
            (20, 22),
        ),
        ("a refusal", {"pods": [{"refusals": [{"sent": T0 + 20, "t": T0 + 23, "status": 429}]}]}, (20, 23)),
        (
            "not answered at first",
            {"pods": [{"refusals": [{"sent": T0 + 20, "t": T0 + 23, "status": 0}, {"t": T0 + 31, "status": 429}]}]},
            (20, 31),
        ),
        ("nonsense", {"pods": [None, {"sent": "x", "answered": 1}, {"refusals": 3}]}, (10, 40)),
    ],
)
def test_an_effect_on_pods_begins_with_the_first_request(
    what: str, evidence: Fields, expected: tuple[float, float]
) -> None:
    story = node(Story(), 0, "n1", cordoned=True).act(10, "drain", step="stop")
    story.act(40, "drain", "returned", step="stop", delivery="answered", evidence=evidence)
    made = experiment(method="[{name: stop, action: drain, target: victim}]")
    effect = effect_of(context_of(story, made, 100), "stop")
    assert (effect.earliest - T0, effect.latest - T0) == expected, what


@pytest.mark.parametrize(
    ("pods", "seconds", "latest"),
    [
        ([{"sent": T0 + 20, "answered": T0 + 23}], 0, 23),
        ([{"sent": T0 + 20, "answered": T0 + 22}, {"sent": T0 + 25, "answered": T0 + 31}], 11, 25),
        ([{"sent": T0 + 20 + at, "answered": T0 + 20.5 + at} for at in range(9)], 1.5, 20.5),
        ([], 0, 40),
    ],
    ids=["one pod", "two", "one after another", "none"],
)
def test_a_step_on_several_pods_is_not_at_once(pods: list[Fields], seconds: float, latest: float) -> None:
    story = node(Story(), 0, "n1", cordoned=True).act(10, "evict-pod", step="stop")
    story.act(40, "evict-pod", "returned", step="stop", delivery="answered", evidence={"pods": pods})
    context = context_of(story, experiment(method="[{name: stop, action: evict-pod, target: victim}]"), 100)
    (step,) = context.match_result.steps
    assert (longest_pause(context, step), effect_of_all(context, step, 2.0).latest - T0) == (seconds, latest)


def test_the_effect_of_a_blocked_drain_is_its_first_refusal() -> None:
    """Times of a real server: the Node is cordoned before the step begins, and the next drain evicts the pod."""
    story = node(Story(), 0, "n1", type_="LIST").pod(0, "web-1", type_="LIST").current(1, "nodes").current(1, "pods")
    node(story, 9.994, "n1", cordoned=True).act(10, "drain", step="stop")
    refused = {"status": 429, "message": "Cannot evict pod as it would violate the pod's disruption budget."}
    refusals = [refused | {"sent": T0 + at, "t": T0 + at + 0.009} for at in (10.086, 15.123)]
    pods = [{"pod": "demo/web-1", "uid": "uid-web-1", "status": 429, "refusals": refusals}]
    story.act(20.1, "drain", "returned", step="stop", delivery="answered", evidence={"pods": pods})
    story.current(20.466, "pods").pod(20.543, "web-1", disruption="EvictionByEvictionAPI", deleting=True)
    made = experiment(method="[{name: stop, action: drain, target: victim}]")
    effect = effect_of(context_of(story, made, 100), "stop")
    assert (effect.earliest - T0, effect.latest - T0) == pytest.approx((10.086, 10.095))


@pytest.mark.parametrize(("fired", "expected"), [(10.3, 10), (21, 21), ("x", 10)])
def test_a_command_of_a_host_counts_from_when_it_was_fired(fired: Any, expected: float) -> None:
    story = node(Story(), 0, "n1").act(10, "poweroff", step="stop")
    at = T0 + fired if isinstance(fired, float | int) else fired
    story.act(30, "poweroff", "returned", step="stop", delivery="answered", evidence={"fired": at})
    effect = effect_of(context_of(story, experiment(), 100), "stop")
    assert effect.earliest == effect.latest == pytest.approx(T0 + expected)


def test_a_quick_answer_leaves_little_uncertain() -> None:
    story = node(Story(), 0, "n1").done(10, "cordon", step="stop")
    effect = effect_of(context_of(story, CORDONED, 100), "stop")
    assert (effect.earliest - T0, effect.latest - T0) == pytest.approx((10, 10.2))
    assert effect_of(context_of(story, CORDONED, 100), "end(stop) + 2s").earliest == pytest.approx(T0 + 12.2)


def test_until_a_request_is_answered_its_effect_is_unknown() -> None:
    with pytest.raises(NotYetDecidable, match="the API server has not answered step 'stop'"):
        effect_of(context_of(cordon(None, delivery="none"), CORDONED, 24), "stop")
