"""Proof of cpu-stress: measured CPU time, while the unit that uses it is active."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import ProofStatus
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import Story, experiment, plugin_registry

ACTION, FILLER, TIME = "cpu-stress", "cpu-filler", "cpu-time"
PROVEN, UNPROVEN, DISPROVEN = ProofStatus.PROVEN, ProofStatus.UNPROVEN, ProofStatus.DISPROVEN


def used(busy: float, idle: float, filler: float = 0.0, cpus: int = 2) -> dict[str, float]:
    return {"cpus": cpus, "busy": busy, "idle": idle, "filler": filler}


def judged(params: dict[str, Any], readings: list[tuple[float, str, object]]) -> tuple[ProofStatus, str]:
    scene = Story().node(0, "n1").host(5, TIME, used(100, 900)).host(9, TIME, used(101, 907))
    scene.host(9, FILLER, "inactive").done(10, ACTION, params=params)
    for when, fact, value in readings:
        scene.host(when, fact, value)
    text = ", ".join(f"{key}: {value}" for key, value in params.items())
    method = f"[{{name: do, action: {ACTION}, target: victim, with: {{{text}}}}}]"
    (step,) = judge(experiment(method=method), scene.timeline(300), plugin_registry(), Options()).steps
    return step.proof_status, step.because


ACTIVE = (12.0, FILLER, "active")
FIRST = (12.0, TIME, used(105, 910, 3))


@pytest.mark.parametrize(
    ("params", "readings", "status", "because"),
    [
        (
            {},
            [ACTIVE, FIRST, (16, TIME, used(112.9, 910.1, 10.5))],
            PROVEN,
            "99% of 4.0 s, before it for 12%, 94% with",
        ),
        ({"percent": 50}, [ACTIVE, FIRST, (16, TIME, used(109, 914, 6.5))], PROVEN, "50% of 4.0 s"),
        ({"workers": 1}, [ACTIVE, FIRST, (16, TIME, used(109, 914, 6.5))], PROVEN, "50% of 4.0 s"),
        ({}, [ACTIVE, FIRST, (16, TIME, used(109, 914, 6.5))], UNPROVEN, "less than the 100% that were asked for"),
        # busy with something else
        ({}, [ACTIVE, FIRST, (16, TIME, used(113, 910, 3.0))], UNPROVEN, "0% with the step's load: less"),
        ({}, [ACTIVE, FIRST, (12.5, TIME, used(106, 910, 4))], UNPROVEN, "was not measured"),
        ({}, [ACTIVE, FIRST], UNPROVEN, "was not measured"),
        ({}, [ACTIVE], UNPROVEN, "was not measured"),
        ({}, [FIRST, (16, TIME, used(113, 910, 10))], UNPROVEN, "was not read"),
        ({}, [(12, FILLER, "failed"), FIRST, (16, TIME, used(113, 910, 10))], DISPROVEN, "failed"),
        (
            {},
            [ACTIVE, FIRST, (16, TIME, used(113, 910, 10)), (18, FILLER, "inactive")],
            DISPROVEN,
            "ended 8.0 s after the step",
        ),
    ],
)
def test_the_cpus_are_busy_with_it(
    params: dict[str, Any], readings: list[tuple[float, str, object]], status: ProofStatus, because: str
) -> None:
    found = judged(params, readings)
    assert found[0] is status, found[1]
    assert because in found[1]
