"""Nothing is injected while an abort condition is violated: the run would be aborted right after it."""

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
