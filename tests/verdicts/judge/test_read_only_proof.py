"""Proof of disk-read-only: a write that fails with EROFS, until the duration is over."""

from __future__ import annotations

import pytest

from chaos.core.action import ProofStatus
from chaos.core.fact import FactRef
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import Story, experiment, plugin_registry

ACTION, PATH = "disk-read-only", "/var/lib/data"
FACT = str(FactRef("mount", {"path": PATH}))
METHOD = f"[{{name: do, action: {ACTION}, target: victim, with: {{path: {PATH}, duration: 1m}}}}]"
WRITABLE, READ_ONLY = {"source": "/dev/vdb1", "writable": True}, {"source": "/dev/vdb1", "writable": False}


@pytest.mark.parametrize(
    ("readings", "status", "because"),
    [
        ([(12, READ_ONLY)], ProofStatus.PROVEN, "writes to /var/lib/data fail"),
        ([(12, READ_ONLY), (69, WRITABLE)], ProofStatus.PROVEN, "writes to /var/lib/data fail"),
        ([(12, READ_ONLY), (30, WRITABLE)], ProofStatus.DISPROVEN, "ended 20.0 s after the step"),
        ([(12, WRITABLE)], ProofStatus.DISPROVEN, "True"),
        ([(12, {})], ProofStatus.DISPROVEN, "{}"),
        ([], ProofStatus.UNPROVEN, "was not read"),
    ],
)
def test_writes_fail_while_it_is_in_force(
    readings: list[tuple[float, dict[str, object]]], status: ProofStatus, because: str
) -> None:
    scene = Story().node(0, "n1").host(9, FACT, WRITABLE).done(10, ACTION, params={"path": PATH, "duration": "1m"})
    for when, value in readings:
        scene.host(when, FACT, value)
    (step,) = judge(experiment(method=METHOD), scene.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is status
    assert because in step.because
