"""Proof of certificate-expired: the certificate in force, and the end of the kubelet that knows another."""

from __future__ import annotations

import pytest

from chaos.core.action import ProofStatus
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import Story, experiment, plugin_registry

ACTION, FACT = "certificate-expired", "kubelet-client-certificate"
VALID = {"expired": False, "mounted": False}
STOPPING = {"expired": True, "mounted": True, "former-process": True}
EXPIRED = STOPPING | {"former-process": False}
METHOD = f"[{{name: do, action: {ACTION}, target: victim}}]"


@pytest.mark.parametrize(
    ("readings", "status", "because"),
    [
        ([(12, EXPIRED)], ProofStatus.PROVEN, "had read the former one has ended"),
        ([(12, STOPPING), (14, EXPIRED)], ProofStatus.PROVEN, "had read the former one has ended"),
        ([(12, STOPPING)], ProofStatus.UNPROVEN, "was not seen to end"),
        ([(12, {"expired": True, "mounted": True})], ProofStatus.UNPROVEN, "was not seen to end"),
        ([(12, VALID)], ProofStatus.DISPROVEN, "False"),
        ([(12, EXPIRED | {"mounted": False})], ProofStatus.DISPROVEN, "False"),
        ([(12, EXPIRED), (16, VALID)], ProofStatus.DISPROVEN, "ended 6.0 s after the step"),
        ([], ProofStatus.UNPROVEN, "was not read"),
    ],
)
def test_it_is_in_force_and_the_kubelet_has_started_with_it(
    readings: list[tuple[float, object]], status: ProofStatus, because: str
) -> None:
    scene = Story().node(0, "n1").host(9, FACT, VALID).done(10, ACTION)
    for when, value in readings:
        scene.host(when, FACT, value)
    (step,) = judge(experiment(method=METHOD), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is status
    assert because in step.because


def test_another_process_is_no_proof() -> None:
    """A kubelet that was restarted just before the step, after the last reading, has read the former certificate."""
    scene = Story().node(0, "n1").host(5, "kubelet-process", {"pid": 812, "stopped": False}).done(10, ACTION)
    scene.host(12, FACT, STOPPING).host(12, "kubelet-process", {"pid": 900, "stopped": False})
    (step,) = judge(experiment(method=METHOD), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is ProofStatus.UNPROVEN


@pytest.mark.parametrize(("ended", "status"), [(25, ProofStatus.DISPROVEN), (65, ProofStatus.PROVEN)])
def test_the_end_of_the_duration_disproves_nothing(ended: float, status: ProofStatus) -> None:
    scene = Story().node(0, "n1").done(10, ACTION, params={"duration": "1m"})
    scene.host(12, FACT, EXPIRED).host(ended, FACT, VALID)
    method = f"[{{name: do, action: {ACTION}, target: victim, with: {{duration: 1m}}}}]"
    (step,) = judge(experiment(method=method), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is status
