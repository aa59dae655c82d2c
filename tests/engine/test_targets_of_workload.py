"""A target that ``runs: workload`` has a pod of it before the first step."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.engine.live_judge import LiveJudge
from chaos.engine.load import LoadedExperiment
from chaos.verdicts.judge.context import Options
from tests.kit.story import Story, experiment, plugin_registry


class Recorded:
    """A recorder whose timeline is given."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def timeline(self) -> Timeline:
        return self._timeline


def unmet(story: Story, runs: str | None = "workload") -> list[str]:
    made = experiment(targets={"victim": {"role": "worker"} | ({"runs": runs} if runs else {})})
    loaded = LoadedExperiment(Path("x.yaml"), made, [], plugin_registry())
    options = Options(bind={"victim": ("n1",)}, namespace="demo")
    judge = LiveJudge(loaded, Recorded(story.timeline(30)), options)  # type: ignore[arg-type]
    return [f"{v.name}: {v.because}" for v in judge.steady_state() if v.status is not Status.HELD]


def story() -> Story:
    return Story().node(0, "n1").node(0, "n2")


MISSING = ["target victim runs the workload: no pod of the workload is on n1"]


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
    assert unmet(seen) == expected


def test_other_targets_need_no_pod() -> None:
    assert unmet(story(), runs=None) == []
