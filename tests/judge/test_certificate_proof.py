"""Proof of certificate-expired: the certificate in force, and the end of the kubelet that knows another."""

from __future__ import annotations

import pytest

from chaos.judge.context import Options
from chaos.judge.judge import judge
from chaos.model.action import ProofStatus
from tests.kit.story import Story, experiment, plugin_registry

ACTION, FACT, PROCESS = "certificate-expired", "kubelet-client-certificate", "kubelet-process"
VALID = {"expired": False, "mounted": False}
EXPIRED = {"expired": True, "mounted": True}
OLD, NEW = {"pid": 812, "stopped": False}, {"pid": 900, "stopped": False}
METHOD = f"[{{name: do, action: {ACTION}, target: victim}}]"


@pytest.mark.parametrize(
    ("readings", "status", "because"),
    [
        ([(12, FACT, EXPIRED), (12, PROCESS, {})], ProofStatus.PROVEN, "former one (812) has ended"),
        ([(12, FACT, EXPIRED), (12, PROCESS, NEW)], ProofStatus.PROVEN, "former one (812) has ended"),
        ([(12, FACT, EXPIRED), (12, PROCESS, OLD)], ProofStatus.UNPROVEN, "was not seen to end"),
        ([(12, FACT, EXPIRED)], ProofStatus.UNPROVEN, "was not seen to end"),
        ([(12, FACT, VALID), (12, PROCESS, NEW)], ProofStatus.DISPROVEN, "False"),
        ([(12, FACT, {"expired": True, "mounted": False}), (12, PROCESS, NEW)], ProofStatus.DISPROVEN, "False"),
        (
            [(12, FACT, EXPIRED), (12, PROCESS, NEW), (16, FACT, VALID)],
            ProofStatus.DISPROVEN,
            "ended 6.0 s after the step",
        ),
        ([(12, PROCESS, NEW)], ProofStatus.UNPROVEN, "was not read"),
    ],
)
def test_it_is_in_force_and_the_kubelet_has_started_with_it(
    readings: list[tuple[float, str, object]], status: ProofStatus, because: str
) -> None:
    scene = Story().node(0, "n1").host(9, FACT, VALID).host(9, PROCESS, OLD).done(10, ACTION)
    for when, fact, value in readings:
        scene.host(when, fact, value)
    (step,) = judge(experiment(method=METHOD), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is status
    assert because in step.because


def test_a_kubelet_that_did_not_run_before_proves_nothing() -> None:
    scene = Story().node(0, "n1").host(9, PROCESS, {}).done(10, ACTION).host(12, FACT, EXPIRED).host(12, PROCESS, {})
    (step,) = judge(experiment(method=METHOD), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is ProofStatus.UNPROVEN
    assert "was not seen to run before" in step.because


@pytest.mark.parametrize(("ended", "status"), [(25, ProofStatus.DISPROVEN), (65, ProofStatus.PROVEN)])
def test_the_end_of_the_duration_disproves_nothing(ended: float, status: ProofStatus) -> None:
    scene = Story().node(0, "n1").host(9, PROCESS, OLD).done(10, ACTION, params={"duration": "1m"})
    scene.host(12, FACT, EXPIRED).host(12, PROCESS, {}).host(ended, FACT, VALID)
    method = f"[{{name: do, action: {ACTION}, target: victim, with: {{duration: 1m}}}}]"
    (step,) = judge(experiment(method=method), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is status
