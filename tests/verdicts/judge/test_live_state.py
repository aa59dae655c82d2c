"""What the judgements of a live run remember of the steady state: only what is final."""

from __future__ import annotations

from chaos.core.verdict import Status
from chaos.verdicts.judge.context import LiveState, Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import HELD, PENDING, T0, Story, experiment, plugin_registry

MADE = experiment(
    "[{assert: nodes-ready, with: {nodes: all}, always: {for: 20s}}]",
    "[{name: stop, action: poweroff, target: victim}]",
    steadyState=[{"assert": "nodes-ready", "with": {"nodes": "all"}}],
)


def proven(story: Story, until: float) -> Story:
    """Proofs that the watches are current up to then."""
    for source in ("nodes", "pods"):
        times = {"until": T0 + until, "complete": T0 + until, "read": T0 + until}
        story.add(until + 0.1, "current", source, times | {"version": "100"})
    return story


def steady(story: Story, end: float, state: LiveState) -> Status:
    options = Options(bind={"victim": ("n1",)}, namespace="demo")
    result = judge(MADE, story.timeline(end), plugin_registry(), options, live=True, state=state)
    (verdict,) = result.steady_state
    return verdict.status


def test_a_window_that_is_recorded_late_is_not_missed() -> None:
    state, story = LiveState(), Story().node(0.1, "n1", type_="LIST").done(10, "poweroff", step="stop")
    assert steady(story, 12, state) is HELD
    story.blind(8, 16, "nodes")
    story.lines[-1].t = T0 + 16
    assert steady(story, 17, state) is PENDING


def test_what_is_proven_is_judged_once() -> None:
    state = LiveState()
    story = proven(Story().node(0.1, "n1", type_="LIST"), 5).done(10, "poweroff", step="stop")
    assert steady(story, 12, state) is HELD
    assert not state.steady
    assert steady(proven(story, 13), 14, state) is HELD
    assert [verdict.status for verdict in state.steady] == [HELD]
