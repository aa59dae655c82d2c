"""Proof of kubelet-slow: the quota in force, and time for which the kubelet waited for it."""

from __future__ import annotations

import pytest

from chaos.core.action import ProofStatus
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import Story, experiment, plugin_registry

ACTION, QUOTA, CPU = "kubelet-slow", "kubelet-cpu-quota", "kubelet-cpu"
FREE = {"percent": None, "runtime": False, "stale": False}
SLOW = {"percent": 1.0, "runtime": True, "stale": False}


def story(*readings: tuple[float, str, object]) -> Story:
    scene = (
        Story()
        .node(0, "n1")
        .host(9, QUOTA, FREE)
        .host(9, CPU, {"used": 3.0, "throttled": 0.0})
        .done(10, ACTION, params={"percent": 1})
    )
    for when, fact, value in readings:
        scene.host(when, fact, value)
    return scene


def used(throttled: float) -> dict[str, float]:
    return {"used": 4.0, "throttled": throttled}


@pytest.mark.parametrize(
    ("readings", "status", "because"),
    [
        (
            [(12, QUOTA, SLOW), (12, CPU, used(1.0)), (14, CPU, used(2.5))],
            ProofStatus.PROVEN,
            "1.5 s for its CPU quota",
        ),
        ([(12, QUOTA, SLOW), (12, CPU, used(1.0)), (14, CPU, used(1.0))], ProofStatus.UNPROVEN, "not seen to wait"),
        ([(12, QUOTA, SLOW), (12, CPU, used(1.0)), (14, CPU, {})], ProofStatus.UNPROVEN, "not seen to wait"),
        ([(12, QUOTA, FREE), (12, CPU, used(1.0)), (14, CPU, used(2.5))], ProofStatus.DISPROVEN, "None"),
        (
            [(12, QUOTA, SLOW), (12, CPU, used(1.0)), (14, CPU, used(2.5)), (16, QUOTA, FREE)],
            ProofStatus.DISPROVEN,
            "ended 6.0 s after the step",
        ),
        ([(12, QUOTA, SLOW | {"percent": 50.0}), (14, CPU, used(2.5))], ProofStatus.DISPROVEN, "50.0"),
        ([], ProofStatus.UNPROVEN, "was not read"),
    ],
)
def test_the_kubelet_waits_while_the_quota_is_in_force(
    readings: list[tuple[float, str, object]], status: ProofStatus, because: str
) -> None:
    method = f"[{{name: do, action: {ACTION}, target: victim, with: {{percent: 1}}}}]"
    scene = story(*readings)
    (step,) = judge(experiment(method=method), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is status
    assert because in step.because


@pytest.mark.parametrize(("ended", "status"), [(25, ProofStatus.DISPROVEN), (65, ProofStatus.PROVEN)])
def test_the_end_of_the_duration_disproves_nothing(ended: float, status: ProofStatus) -> None:
    with_ = {"percent": 1, "duration": "1m"}
    scene = Story().node(0, "n1").host(9, QUOTA, FREE).done(10, ACTION, params=with_)
    scene.host(12, QUOTA, SLOW).host(12, CPU, used(1.0)).host(14, CPU, used(2.5)).host(ended, QUOTA, FREE)
    method = f"[{{name: do, action: {ACTION}, target: victim, with: {{percent: 1, duration: 1m}}}}]"
    (step,) = judge(experiment(method=method), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is status
