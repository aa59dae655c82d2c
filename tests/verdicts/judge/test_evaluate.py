"""Time words on handmade timelines: status and reason."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.experiment import Expectation
from chaos.core.verdict import Status
from chaos.verdicts.judge.evaluate import evaluate
from tests.kit.story import HELD, INCONCLUSIVE, PENDING, T0, VIOLATED, Story, ask, context_of, experiment

NOT_READY = '{assert: node-condition, with: {node: victim, type: Ready, status: "False"}, %s}'


def changes(*states: tuple[float, str]) -> Story:
    """Node n1 with the given Ready status from the given times on; a power-off begins at 10."""
    story = Story()
    for t, status in states:
        story.node(t, "n1", status)
    return story


@pytest.mark.parametrize(
    ("what", "story", "words", "status", "sentence"),
    [
        ("true in time", changes((0, "True"), (12, "False")), "within: 5s", HELD, "2.0 s after stop"),
        ("already true", changes((0, "False")), "within: 5s", HELD, "already at stop"),
        (
            "too late",
            changes((0, "True"), (27.3, "False")),
            "within: 5s",
            VIOLATED,
            "12.3 s too late, 17.3 s after stop",
        ),
        ("too early", changes((0, "False"), (9, "True")), "within: 5s", VIOLATED, "it was never observed to be true"),
        ("never", changes((0, "True")), "within: 5s", VIOLATED, "n1: Ready is True (KubeletReady"),
        ("wrong object", changes((0, "True")).node(0, "n2", "False"), "within: 5s", VIOLATED, "n1: Ready is True"),
        (
            "blind over the deadline",
            changes((0, "True"), (30, "False")).blind(14, 30, "nodes"),
            "within: 5s",
            INCONCLUSIVE,
            "nodes could not be observed for 16.0 s: the line was cut",
        ),
        ("blind elsewhere", changes((0, "True"), (12, "False")).blind(14, 30, "pods"), "within: 5s", HELD, "2.0 s"),
        ("empty set", Story(), "within: 5s", INCONCLUSIVE, "no node was observed"),
        (
            "vanished again",
            changes((0, "True"), (12, "False"), (14, "True")),
            "within: 5s, for: 3s",
            VIOLATED,
            "for only 2.0 s",
        ),
        (
            "stays",
            changes((0, "True"), (12, "False"), (16, "True")),
            "within: 5s, for: 3s",
            HELD,
            "and it stayed so for 3s",
        ),
        ("never: not", changes((0, "True")), "never: {for: 20s}", HELD, "never observed"),
        (
            "never: once",
            changes((0, "True"), (12, "False"), (13, "True")),
            "never: {for: 20s}",
            VIOLATED,
            "2.0 s after stop",
        ),
        ("never: before", changes((0, "False"), (9, "True")), "never: {for: 20s}", HELD, "never observed"),
        (
            "never: blind",
            changes((0, "True")).blind(15, 16, "nodes"),
            "never: {for: 20s}",
            INCONCLUSIVE,
            "5.0 s after stop",
        ),
        (
            "always",
            changes((0, "False")),
            "always: {for: 20s}",
            HELD,
            "true the whole time until 20.0 s after stop (at stop: n1: Ready",
        ),
        ("always: broken", changes((0, "False"), (15, "True")), "always: {for: 20s}", VIOLATED, "5.0 s after stop"),
        (
            "unknown fact",
            changes((0, "True")),
            "within: kubelet.shutdownGracePeriod",
            INCONCLUSIVE,
            "kubelet.shutdownGr",
        ),
        ("unknown step", changes((0, "True")), "within: 5s, after: nothing", INCONCLUSIVE, "unknown step 'nothing'"),
        ("no end", changes((0, "True")), "name: x", INCONCLUSIVE, "no deadline"),
    ],
)
def test_table(what: str, story: Story, words: str, status: Status, sentence: str) -> None:
    expectation = NOT_READY % words
    if what == "empty set":
        expectation = "{assert: nodes-ready, with: {nodes: all}, within: 5s}"
    verdict = ask(story, expectation)
    assert (verdict.status, sentence in verdict.because) == (status, True), f"{what}: {verdict.because}"


@pytest.mark.parametrize(
    ("end", "live", "status"),
    [(12, True, PENDING), (12, False, INCONCLUSIVE), (40, True, VIOLATED), (40, False, VIOLATED)],
)
def test_end_of_the_timeline(end: float, live: bool, status: Status) -> None:
    verdict = ask(changes((0, "True")), NOT_READY % "within: 5s", end, live)
    assert verdict.status is status
    if end == 12:
        assert "the recording ends before the deadline" in verdict.because


@pytest.mark.parametrize(
    ("end", "status"),
    [(14, PENDING), (90, PENDING), (191, PENDING), (193, HELD)],
    ids=["begun", "long after", "not yet over", "over"],
)
@pytest.mark.parametrize(
    "within", ["5s", "pod.terminationGracePeriodSeconds + 3s"], ids=["one deadline", "one for each pod"]
)
def test_what_must_last_is_pending_until_it_has(within: str, end: float, status: Status) -> None:
    """The deadline is that of its start; what decides is the end of the time that it must last."""
    if within == "5s":
        story, expectation = changes((0, "True"), (12, "False")), NOT_READY % "within: 5s, for: 3m"
    else:
        story = Story().node(0, "n1").pod(0, "p", "n1", grace=2).done(10, "poweroff", step="stop")
        story.pod(12, "p", "n1", grace=2, phase="Failed")
        words = "within: pod.terminationGracePeriodSeconds + 3s, for: 3m"
        expectation = f"{{assert: pods, with: {{node: victim, each: {{phase: Failed}}}}, {words}}}"
    verdict = ask(story, expectation, end, live=True)
    assert verdict.status is status, verdict.because
    assert verdict.deadline == (T0 + 15 if status is HELD else T0 + 195)


def test_live_verdict_waits_for_late_readings() -> None:
    """Host facts are read every few seconds: a reading after the deadline may cover the time before it."""
    expectation = "{assert: node-rebooted, with: {node: victim}, never: {for: 20s}}"

    def story() -> Story:
        return Story().node(0, "n1", boot_id="x").node(0, "n2", boot_id="x").host(5, "pid1-start", 100)

    assert ask(story(), expectation, 31, live=True).status is PENDING
    assert ask(story(), expectation, 36, live=True).status is INCONCLUSIVE
    assert ask(story(), expectation, 31).status is INCONCLUSIVE
    assert ask(story().host(32, "pid1-start", 100), expectation, 32, live=True).status is HELD


def test_until_ends_at_the_begin_of_the_step() -> None:
    story = changes((0, "True"), (50, "False")).done(10, "poweroff", step="stop").done(50, "power-on", step="start")
    made = experiment(
        method="[{name: stop, action: poweroff, target: victim}, {name: start, action: power-on, target: victim}]"
    )
    expectation = Expectation.model_validate(
        {
            "assert": "node-condition",
            "with": {"node": "victim", "status": "False"},
            "never": {"until": "start"},
        }
    )
    context = context_of(story, made, 100)
    assert evaluate(expectation, context, 100e9).status is HELD
    later = (
        expectation.model_copy(update={"never": expectation.never.model_copy(update={"until": "start + 5s"})})
        if expectation.never
        else expectation
    )
    assert evaluate(later, context, 100e9).status is VIOLATED


@pytest.mark.parametrize(
    ("after", "at"), [("stop", 10.0), ("end(stop)", 10.2), ("stop + 30s", 40.0), ("end(stop) + 1m", 70.2)]
)
def test_anchors(after: str, at: float) -> None:
    verdict = ask(changes((0, "True")), NOT_READY % f"within: 5s, after: {after}")
    assert verdict.start == pytest.approx(1_800_000_000 + at)


ORDER = """[
  {name: a, assert: node-condition, with: {node: n1, status: "False"}, within: 20s},
  {name: b, assert: node-condition, with: {node: n2, status: "False"}, within: 20s},
  {name: in order, order: [a, b]}]"""


@pytest.mark.parametrize(
    ("what", "story", "end", "status", "sentence"),
    [
        ("one after the other", changes((0, "True"), (12, "False")).node(15, "n2", "False"), 60, HELD, "in this order"),
        ("a tie", changes((0, "True"), (12, "False")).node(12, "n2", "False"), 60, HELD, "in this order"),
        ("reversed", changes((0, "True"), (15, "False")).node(12, "n2", "False"), 60, VIOLATED, "3.0 s before 'a'"),
        ("one never", changes((0, "True"), (15, "False")), 60, VIOLATED, "'b' did not come true by its deadline"),
        ("one not yet", changes((0, "True"), (15, "False")), 20, INCONCLUSIVE, "ends before the deadline of 'b'"),
        (
            "blind over both",
            changes((0, "True"), (15, "False")).node(14, "n2", "False").blind(11, 16, "nodes"),
            60,
            INCONCLUSIVE,
            "not observed whether",
        ),
    ],
)
def test_order(what: str, story: Story, end: float, status: Status, sentence: str) -> None:
    story.node(0, "n2").done(10, "poweroff", step="stop")
    made = experiment(ORDER)
    context = context_of(story, made, end)
    verdict = evaluate(made.spec.hypothesis[2], context, context.timeline.end)
    assert (verdict.status, sentence in verdict.because) == (status, True), f"{what}: {verdict.because}"


@pytest.mark.parametrize(("end", "status"), [(89, PENDING), (91, INCONCLUSIVE)])
def test_an_order_that_no_one_observed_is_not_waited_for_without_end(end: float, status: Status) -> None:
    story = changes((0, "True"), (15, "False")).node(0, "n2").node(14, "n2", "False").blind(11, 16, "nodes")
    made = experiment(ORDER)
    context = context_of(story.done(10, "poweroff", step="stop"), made, end, live=True)
    assert evaluate(made.spec.hypothesis[2], context, context.timeline.end).status is status


GONE = "{assert: pods, with: {node: victim, each: {gone: true}}, within: toleration(unreachable) + 5s}"


def tolerant(seconds: int | None) -> list[dict[str, object]]:
    entry: dict[str, object] = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    return [entry if seconds is None else entry | {"tolerationSeconds": seconds}]


@pytest.mark.parametrize(
    ("what", "first_gone", "second_gone", "end", "status"),
    [
        ("each in its own time", 24, 44, 100, HELD),
        ("the short one too late", 26, 44, 100, VIOLATED),
        ("the long one too late", 24, 46, 100, VIOLATED),
        ("the deadline of the long one is not reached", 24, None, 40, INCONCLUSIVE),
    ],
)
def test_deadline_per_pod(what: str, first_gone: float, second_gone: float | None, end: float, status: Status) -> None:
    story = Story().node(0, "n1").pod(0, "short", tolerations=tolerant(10)).pod(0, "long", tolerations=tolerant(30))
    story.pod(first_gone, "short", type_="DELETED")
    if second_gone:
        story.pod(second_gone, "long", type_="DELETED")
    verdict = ask(story, GONE, end)
    assert verdict.status is status, f"{what}: {verdict.because}"


@pytest.mark.parametrize(("short_gone", "long_gone", "at"), [(24, 44, 44), (24, 21, 24)])
def test_pods_with_deadlines_of_their_own_are_as_late_as_the_last(
    short_gone: float, long_gone: float, at: float
) -> None:
    """Its time is what the run measured."""
    story = Story().node(0, "n1").pod(0, "short", tolerations=tolerant(10)).pod(0, "long", tolerations=tolerant(30))
    for t, name in sorted([(short_gone, "short"), (long_gone, "long")]):
        story.pod(t, name, type_="DELETED")
    verdict = ask(story, GONE)
    assert (verdict.status, verdict.operator) == (HELD, "within")
    assert verdict.at == pytest.approx(1_800_000_000 + at)
    assert f"/{'long' if at == long_gone else 'short'}:" in verdict.because


@pytest.mark.parametrize(
    ("words", "operator"),
    [("within: 5s", "within"), ("never: {for: 5s}", "never"), ("always: true", "always")],
)
def test_a_verdict_has_its_operator(words: str, operator: str) -> None:
    assert ask(changes((0, "True")), NOT_READY % words).operator == operator


def test_endless_toleration_is_inconclusive() -> None:
    story = Story().node(0, "n1").pod(0, "p", tolerations=tolerant(None))
    assert ask(story, GONE).status is INCONCLUSIVE


@pytest.mark.parametrize(
    ("meta", "options", "deadline", "assumed"),
    [
        ({"controllerManager": {"nodeMonitorGracePeriod": "20s"}}, {}, 20, ()),
        ({}, {}, 50, ("controller.nodeMonitorGracePeriod=50s",)),
        ({"kubernetes": "v1.31.4"}, {}, 40, ("controller.nodeMonitorGracePeriod=40s",)),
        (
            {},
            {"inventory": {"controller.nodeMonitorGracePeriod": "33s"}},
            33,
            ("controller.nodeMonitorGracePeriod=33s",),
        ),
        ({}, {"facts": {"controller.nodeMonitorGracePeriod": "7s"}}, 7, ()),
        ({"kubernetes": ""}, {}, None, ()),
    ],
)
def test_facts(
    meta: dict[str, object], options: dict[str, Any], deadline: float | None, assumed: tuple[str, ...]
) -> None:
    story = Story(**meta).node(0, "n1")
    verdict = ask(story, NOT_READY % "within: controller.nodeMonitorGracePeriod", **options)
    if deadline is None:
        assert verdict.status is INCONCLUSIVE
        assert "controller.nodeMonitorGracePeriod" in verdict.because
    else:
        assert verdict.start is not None
        assert verdict.deadline == verdict.start + deadline
        assert verdict.assumed_facts == assumed


@pytest.mark.parametrize(
    ("configs", "bound", "seconds"),
    [
        ({"n1": {"shutdownGracePeriod": "30s"}}, "kubelet.shutdownGracePeriod + 10s", 40),
        (
            {"n1": {"shutdownGracePeriod": "30s"}, "n2": {"shutdownGracePeriod": "1m"}},
            "kubelet.shutdownGracePeriod",
            30,
        ),
        ({"n1": {"nodeLeaseDurationSeconds": 40}}, "kubelet.nodeLeaseDurationSeconds", 40),
        (
            {
                "n1": {
                    "shutdownGracePeriod": "0s",
                    "shutdownGracePeriodByPodPriority": [
                        {"priority": 0, "shutdownGracePeriodSeconds": 12},
                        {"priority": 9, "shutdownGracePeriodSeconds": 20},
                    ],
                }
            },
            "kubelet.shutdownGracePeriod",
            32,
        ),
        ({"n2": {"shutdownGracePeriod": "30s"}}, "kubelet.shutdownGracePeriod", None),
        ({"n1": {}}, "kubelet.shutdownGracePeriod", None),
        ({"n1": {}}, "kubelet.featureGates.GracefulNodeShutdown + 9s", 10),
        (
            {"n1": {"featureGates": {"GracefulNodeShutdown": False}}},
            "kubelet.featureGates.GracefulNodeShutdown + 9s",
            9,
        ),
        ({"n1": {}}, "kubelet.featureGates.WindowsGracefulNodeShutdown + 9s", 9),
        ({"n1": {"shutdownGracePeriod": "soon"}}, "kubelet.shutdownGracePeriod", None),
    ],
)
def test_kubelet_facts(configs: dict[str, dict[str, object]], bound: str, seconds: float | None) -> None:
    story = Story().node(0, "n1").node(0, "n2")
    for node, config in configs.items():
        story.host(1, "configz", config, node)
    verdict = ask(story, NOT_READY % f"within: {bound}", 200)
    if seconds is None:
        assert verdict.status is INCONCLUSIVE
    else:
        assert verdict.start is not None
        assert verdict.deadline == verdict.start + seconds


def test_error_in_an_assertion_is_inconclusive() -> None:
    verdict = ask(Story().node(0, "n1"), "{assert: nodes-ready, with: {nonsense: 1}, within: 5s}")
    assert verdict.status is INCONCLUSIVE
    assert "the judge failed: ValidationError" in verdict.because


def test_unknown_assertion_is_inconclusive() -> None:
    assert ask(Story().node(0, "n1"), "{assert: is-happy, within: 5s}").status is INCONCLUSIVE


def test_workload_namespace_is_given_recorded_or_derived() -> None:
    expectation = "{assert: workload-available, with: {namespace: workload}, within: 5s}"
    plain = Story().node(0, "n1").workload(0, "web", 3, namespace="a").workload(0, "db", 1, namespace="b")
    assert "--bind workload=NAMESPACE" in ask(plain, expectation).because
    assert ask(plain, expectation, manifests=[("Deployment", "web"), ("Service", "web")]).status is HELD
    assert ask(plain, expectation, namespace="b").status is VIOLATED
    recorded = (
        Story(workload="b").node(0, "n1").workload(0, "web", 3, namespace="a").workload(0, "db", 1, namespace="b")
    )
    assert ask(recorded, expectation, manifests=[("Deployment", "web")]).status is VIOLATED
    both = Story().node(0, "n1").workload(0, "web", 3, namespace="a").workload(0, "web", 1, namespace="b")
    assert ask(both, expectation, manifests=[("Deployment", "web")]).status is INCONCLUSIVE


def test_pod_with_endless_toleration_has_no_deadline() -> None:
    story = Story().node(0, "n1").pod(0, "a", tolerations=[{"operator": "Exists"}])
    verdict = ask(story, GONE)
    assert verdict.status is INCONCLUSIVE
    assert "the deadline (never)" in verdict.because


@pytest.mark.parametrize(
    ("expectation", "because"),
    [
        (NOT_READY % "within: 10s - 20s", "it is negative (-10s)"),
        (GONE.replace("+ 5s", "- 1m"), "it is negative (-1m)"),
        (NOT_READY % "never: {for: 1s - 2s}", "it is negative (-1s)"),
    ],
)
def test_deadline_before_the_beginning_is_inconclusive(expectation: str, because: str) -> None:
    verdict = ask(changes((0, "False")).pod(0, "a"), expectation)
    assert (verdict.status, because in verdict.because) == (INCONCLUSIVE, True), verdict.because


@pytest.mark.parametrize(
    ("expectation", "status"),
    [
        ('{assert: node-condition, with: {node: all, status: "False"}, never: {for: 20s}}', VIOLATED),
        ('{assert: node-condition, with: {node: all, status: "Unknown"}, never: {for: 20s}}', HELD),
        ("{assert: pods, with: {node: all, each: {phase: Failed}}, never: {for: 20s}}", VIOLATED),
        ("{assert: pods, with: {node: all, each: {phase: Pending}}, never: {for: 20s}}", HELD),
    ],
)
def test_never_with_each_means_none_at_any_moment(expectation: str, status: Status) -> None:
    story = changes((0, "True"), (12, "False"), (14, "True")).node(0, "n2")
    story.pod(0, "a").pod(0, "b", "n2").pod(13, "a", phase="Failed")
    assert (verdict := ask(story, expectation)).status is status, verdict.because
