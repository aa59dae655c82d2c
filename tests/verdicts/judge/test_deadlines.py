"""Deadlines that slack and the baseline of the run extend."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.signal import Sample, Signal
from chaos.core.verdict import Status
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.deadlines import Deadline, recorded_slack, slowest_start, within_deadline
from chaos.verdicts.judge.judge import judge
from chaos.verdicts.judge.temporal import within
from tests.kit.story import (
    HELD,
    INCONCLUSIVE,
    PENDING,
    T0,
    VIOLATED,
    Story,
    ask,
    context_of,
    experiment,
    plugin_registry,
)

NOT_READY = '{assert: node-condition, with: {node: victim, type: Ready, status: "False"}, %s}'
LOOSE = NOT_READY % "within: 5s, timing: loose"


def becomes_not_ready(t: float, **meta: Any) -> Story:
    """The node n1 is Ready until ``t``; the step stop begins at 10."""
    return Story(**meta).node(0, "n1").node(t, "n1", "False")


@pytest.mark.parametrize(
    ("what", "words", "meta", "at", "status"),
    [
        ("no slack", "within: 5s, timing: loose", {}, 18, VIOLATED),
        ("in time without slack", "within: 5s, timing: loose", {"slack": 2}, 14, HELD),
        ("in time with slack", "within: 5s, timing: loose", {"slack": 2}, 18, HELD),
        ("at the deadline", "within: 5s, timing: loose", {"slack": 2}, 20, HELD),
        ("too late with slack", "within: 5s, timing: loose", {"slack": 2}, 20.5, VIOLATED),
        ("strict", "within: 5s, timing: strict", {"slack": 2}, 18, VIOLATED),
        ("strict by default", "within: 5s", {"slack": 2}, 18, VIOLATED),
        ("a fact is not scaled", "within: controller.nodeMonitorPeriod + 1s, timing: loose", {"slack": 2}, 17, HELD),
        ("nor is it here", "within: controller.nodeMonitorPeriod + 1s, timing: loose", {"slack": 2}, 17.5, VIOLATED),
        ("another recorder's slack", "within: 5s, timing: loose", {"slack": "much"}, 18, VIOLATED),
        ("less than 1", "within: 5s, timing: loose", {"slack": 0.1}, 14, HELD),
    ],
)
def test_slack(what: str, words: str, meta: dict[str, Any], at: float, status: Status) -> None:
    assert ask(becomes_not_ready(at, **meta), NOT_READY % words).status is status, what


def test_the_verdict_shows_the_deadline_and_its_reason() -> None:
    verdict = ask(becomes_not_ready(18, slack=2), LOOSE)
    assert verdict.expected.endswith("within 10s of stop (5s, with slack 2)")
    assert verdict.deadline == T0 + 20
    assert "slack" not in ask(becomes_not_ready(18), LOOSE).expected


@pytest.mark.parametrize(
    ("what", "step_at", "at", "status"),
    [
        ("a step after the deadline", 21, 18, HELD),
        ("true before the step", 17, 16, HELD),
        ("true after the step", 17, 18, INCONCLUSIVE),
        ("never true", 17, 99, INCONCLUSIVE),
        ("a step within the written deadline", 13, 18, HELD),
        ("no step", None, 99, VIOLATED),
    ],
)
@pytest.mark.parametrize("phase", ["begin", "undo"])
def test_what_a_later_step_may_have_caused_decides_nothing(
    what: str, step_at: float | None, at: float, status: Status, phase: str
) -> None:
    story = becomes_not_ready(at, slack=2).done(10, "poweroff", step="stop")
    if step_at is not None:
        story.act(step_at, "power-on", phase, step="mend")
    verdict = ask(story, LOOSE)
    assert verdict.status is status, what
    if status is INCONCLUSIVE:
        named = "the undo of step mend" if phase == "undo" else "the step mend"
        assert verdict.because.startswith(
            f"not true before {named} began; after that it may be an effect of that step, 7.0 s"
        )


def test_it_is_pending_up_to_the_later_deadline() -> None:
    story = Story(slack=2).node(0, "n1").done(10, "poweroff", step="stop")
    assert ask(story, LOOSE, end=17, live=True).status is PENDING
    assert ask(story, LOOSE, end=21, live=True).status is VIOLATED


def test_each_pod_has_a_later_deadline() -> None:
    story = Story(slack=2).pod(0, "a", grace=4).pod(20, "a", grace=4, type_="DELETED")
    question = "{assert: pods, with: {node: victim, each: {gone: true}}, within: %s, timing: loose}"
    held = ask(story, question % "pod.terminationGracePeriodSeconds + 3s")
    assert held.status is HELD
    assert held.expected.endswith("(pod.terminationGracePeriodSeconds + 3s, with slack 2)")
    assert ask(story, question % "pod.terminationGracePeriodSeconds + 2s").status is VIOLATED


def starting(seconds: float, **pod: Any) -> Story:
    """A pod of the workload that becomes Ready ``seconds`` after it was bound at 1, and a node as above."""
    return Story(workload="demo").pod(1, "a", ready=False, phase="Pending", **pod).pod(1 + seconds, "a", **pod)


BASELINE = NOT_READY % "within: 5s, baseline: 3x"


@pytest.mark.parametrize(
    ("what", "story", "at", "status", "reason"),
    [
        ("slow starts", starting(4), 21, HELD, "within 12s of stop (5s, with baseline 3 x 4.0 s, the slowest start"),
        ("slow starts, too late", starting(4), 22.5, VIOLATED, "(5s, with baseline 3 x 4.0 s"),
        ("quick starts", starting(1), 14.5, HELD, "within 5s of stop (5s, with baseline 3 x 1.0 s"),
        ("quick starts, too late", starting(1), 15.5, VIOLATED, "within 5s of stop"),
        (
            "no start",
            Story(workload="demo").pod(1, "a"),
            15.5,
            VIOLATED,
            "no baseline, because no pod of the workload was",
        ),
        ("other namespaces", starting(4, namespace="other"), 18, VIOLATED, "no baseline"),
        ("no workload", Story().pod(1, "a", ready=False).pod(5, "a"), 18, VIOLATED, "no baseline"),
        ("Ready after the first step", starting(10), 18, VIOLATED, "no baseline"),
        ("a blind window", starting(4).blind(2, 4, "pods"), 18, VIOLATED, "no baseline"),
        ("blind elsewhere", starting(4).blind(2, 4, "nodes"), 18, INCONCLUSIVE, "baseline 3 x 4.0 s"),
        ("the slowest", starting(4).pod(1, "b", ready=False).pod(2, "b"), 21, HELD, "baseline 3 x 4.0 s"),
    ],
)
def test_the_baseline(what: str, story: Story, at: float, status: Status, reason: str) -> None:
    if status is INCONCLUSIVE:
        story.blind(11, 90, "nodes")
    verdict = ask(story.node(0, "n1").node(at, "n1", "False"), BASELINE)
    assert verdict.status is status, what
    assert reason in verdict.expected


def test_a_start_is_measured_from_the_binding_on() -> None:
    story = starting(3).pod(0, "a", node="", ready=False, phase="Pending").node(0, "n1").done(10, "poweroff")
    start = slowest_start(context_of(story, experiment(), 50))
    assert start is not None
    assert (start.pod, start.seconds) == ("a", 3.0)


def test_slack_and_baseline_the_later_deadline_counts() -> None:
    story = starting(4).node(0, "n1").node(24, "n1", "False")
    story.add(0, "meta", "recording", {"slack": 3})
    verdict = ask(story, NOT_READY % "within: 5s, baseline: 3x, timing: loose")
    assert verdict.status is HELD
    assert "within 15s of stop (5s, with slack 3 and baseline 3 x 4.0 s, the slowest start" in verdict.expected


@pytest.mark.parametrize(
    ("recovery", "slack", "ready_at", "status"),
    [
        ("{within: 20s, timing: loose}", 1, 45, VIOLATED),
        ("{within: 20s, timing: loose}", 2, 45, HELD),
        ("{within: 20s, timing: loose}", 2, 55, VIOLATED),
        ("{within: 20s}", 2, 45, VIOLATED),
        ("{within: 20s, timing: loose}", 2, 25, HELD),
    ],
)
def test_recovery(recovery: str, slack: float, ready_at: float, status: Status) -> None:
    story = Story(slack=slack).node(0, "n1").node(11, "n1", "False").node(ready_at, "n1").done(10, "poweroff")
    made = experiment(recovery=yaml.safe_load(recovery))
    options = Options(bind={"victim": ("n1",)})
    result = judge(made, story.timeline(100), plugin_registry(), options, live=True)
    assert [verdict.status for verdict in result.recovery] == [status]
    assert ("slack 2: deadlines with timing: loose are that much longer" in result.notes) == (slack == 2)


@pytest.mark.parametrize("value", [None, "2", True, 0, -1, math.inf, math.nan, [2]])
def test_a_slack_that_is_none_counts_as_1(value: Any) -> None:
    timeline = Story().timeline()
    timeline.meta["slack"] = value
    assert recorded_slack(timeline) == 1.0


@st.composite
def signals(draw: st.DrawFn) -> Signal:
    times = sorted(draw(st.lists(st.integers(0, 60), unique=True, max_size=8)))
    values = st.sampled_from([True, False, None])
    return Signal(tuple(Sample(float(t), draw(values), None, "") for t in times))


@given(signals(), st.integers(0, 30), st.integers(0, 30), st.integers(0, 10), st.integers(0, 90), st.integers(0, 90))
def test_a_later_deadline_never_makes_a_held_verdict_violated(
    signal: Signal, seconds: int, more: int, hold: int, horizon: int, limit: int
) -> None:
    written = 10.0 + seconds
    between = float(limit) if written < limit < written + more else math.inf
    deadline = Deadline(written, written + more, between, "the step mend")
    before = within(signal, 10, written, hold, horizon)
    after = within_deadline(signal, 10, deadline, hold, horizon)
    if before.status is HELD:
        assert after == before
    if after.status is VIOLATED:
        assert before.status is VIOLATED
