"""The steady state before the first step: targets have their pods, and no abort condition is violated."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.engine.live_judge import LiveJudge
from chaos.engine.load import LoadedExperiment
from chaos.verdicts.judge.context import Options
from tests.kit.story import HELD, VIOLATED, Story, experiment, plugin_registry

STEPS = "[{name: stop, action: poweroff, target: victim}]"
NOTHING = '[{assert: node-condition, with: {node: victim, status: "False"}, within: 5s}]'
CONDITION = [{"assert": "nodes-ready", "with": {"not-ready-at-most": 0}, "always": True, "name": "all are Ready"}]


class Recorded:
    """A recorder that has recorded this."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def timeline(self) -> Timeline:
        return self._timeline


def unmet(story: Story, abort: list[dict[str, Any]]) -> list[tuple[str, Status]]:
    steady = [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}}]
    made = experiment(NOTHING, STEPS, abort=abort, steadyState=steady)
    recorder = cast("Any", Recorded(story.timeline(30)))
    judge = LiveJudge(LoadedExperiment(Path("x"), made, [], plugin_registry()), recorder, Options())
    return [(verdict.name, verdict.status) for verdict in judge.steady_state() if verdict.status is not HELD]


@pytest.mark.parametrize(
    ("ready", "abort", "found"),
    [
        ("False", CONDITION, [("abort condition all are Ready", VIOLATED)]),
        ("True", CONDITION, []),
        ("False", [], []),
    ],
)
def test_before_the_first_step(ready: str, abort: list[dict[str, Any]], found: list[tuple[str, Status]]) -> None:
    assert unmet(Story().node(0, "n1").node(0, "n2", ready), abort) == found


def test_an_unknown_condition_keeps_nothing_from_beginning() -> None:
    unknown = [{"assert": "workload-available", "with": {"namespace": "workload"}}]
    assert unmet(Story().node(0, "n1"), unknown) == []


def test_after_the_first_step_the_condition_is_judged_by_itself() -> None:
    story = Story().node(0, "n1").node(0, "n2").done(10, "poweroff", step="stop").node(11, "n1", "False")
    assert unmet(story, CONDITION) == []


def unmet_targets(story: Story, runs: str | None = "workload") -> list[str]:
    made = experiment(targets={"victim": {"role": "worker"} | ({"runs": runs} if runs else {})})
    loaded = LoadedExperiment(Path("x.yaml"), made, [], plugin_registry())
    options = Options(bind={"victim": ("n1",)}, namespace="demo")
    judge = LiveJudge(loaded, cast("Any", Recorded(story.timeline(30))), options)
    return [f"{v.name}: {v.because}" for v in judge.steady_state() if v.status is not Status.HELD]


def story() -> Story:
    return Story().node(0, "n1").node(0, "n2")


MISSING = ["target victim runs pods of the workload: there are no pods of the workload on n1"]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (story().pod(5, "web-1", "n1"), []),
        (story().pod(5, "web-1", "n2"), MISSING),
        (story(), MISSING),
        (story().pod(5, "web-1", "n1", namespace="other"), MISSING),
        (story().pod(5, "web-1", "n1").pod(9, "web-1", "n1", type_="DELETED"), MISSING),
        (story().pod(5, "web-1", "n1").pod(9, "web-2", "n1").pod(9, "web-1", "n1", type_="DELETED"), []),
    ],
)
def test_a_target_without_pod_is_no_steady_state(seen: Story, expected: list[str]) -> None:
    assert unmet_targets(seen) == expected


def test_other_targets_need_no_pod() -> None:
    assert unmet_targets(story(), runs=None) == []
