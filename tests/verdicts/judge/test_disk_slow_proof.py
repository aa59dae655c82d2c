"""Proof of disk-slow: the limit in force, and reads that take as long as it demands and did not before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chaos.core.action import ProofStatus
from chaos.core.fact import FactRef
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import Story, experiment, plugin_registry

ACTION = "disk-slow"
WHERE = {"unit": "kubepods.slice", "path": "/var/lib/kubelet"}
LIMITS, READS = str(FactRef("disk-limits", WHERE)), str(FactRef("disk-reads", WHERE | {"count": "122"}))
FREE: dict[str, Any] = {"disk": "/dev/vda", "number": "254:0", "limits": {}, "runtime": False}
SLOW = FREE | {"limits": {"254:0": "rbps=1000000 wbps=1000000 riops=100 wiops=100"}}
OTHER_DISK = FREE | {"limits": {"254:16": "rbps=1000000 wbps=1000000 riops=100 wiops=100"}}
PROVEN, UNPROVEN, DISPROVEN = ProofStatus.PROVEN, ProofStatus.UNPROVEN, ProofStatus.DISPROVEN


def reads(seconds: float, size: int = 1_998_848) -> dict[str, float]:
    return {"bytes": size, "seconds": seconds}


def judged(
    readings: Sequence[tuple[float, str, object]], before: object = None, duration: str = ""
) -> tuple[ProofStatus, str]:
    scene = Story().node(0, "n1").host(9, LIMITS, FREE)
    if before is not None:
        scene.host(9, READS, before)
    params = {"duration": duration} if duration else {}
    scene.done(10, ACTION, params=params)
    for when, fact, value in readings:
        scene.host(when, fact, value)
    given = f", with: {{duration: {duration}}}" if duration else ""
    method = f"[{{name: do, action: {ACTION}, target: victim{given}}}]"
    (step,) = judge(experiment(method=method), scene.timeline(300), plugin_registry(), Options()).steps
    return step.proof_status, step.because


FAST = reads(0.02)
IN_FORCE = (12.0, LIMITS, SLOW)


@pytest.mark.parametrize(
    ("before", "readings", "status", "because"),
    [
        (FAST, [IN_FORCE, (14, READS, reads(1.95))], PROVEN, "read 1025 kB/s, before the step 99942 kB/s"),
        # others have used up the limit
        (FAST, [IN_FORCE, (34, READS, reads(20.0, 100_000))], PROVEN, "read 5 kB/s"),
        (FAST, [IN_FORCE, (14, READS, reads(1.95)), (16, READS, reads(1.1))], UNPROVEN, "the limit allows 1000 kB/s"),
        (FAST, [IN_FORCE, (14, READS, reads(0.02))], DISPROVEN, "the limit has no effect"),
        # a disk that is as slow without the limit
        (reads(2.5), [IN_FORCE, (14, READS, reads(2.6))], UNPROVEN, "before the step 800 kB/s"),
        (None, [IN_FORCE, (14, READS, reads(1.95))], UNPROVEN, "was not measured before"),
        ({}, [IN_FORCE, (14, READS, reads(1.95))], UNPROVEN, "was not measured before"),
        (FAST, [IN_FORCE], UNPROVEN, "was not measured before and after"),
        (FAST, [IN_FORCE, (14, READS, reads(1.95, 0))], UNPROVEN, "was not measured before and after"),
        (FAST, [(14, READS, reads(1.95))], UNPROVEN, "was not read"),
        (FAST, [(12, LIMITS, FREE), (14, READS, reads(1.95))], DISPROVEN, "disproven by"),
        (FAST, [(12, LIMITS, OTHER_DISK), (14, READS, reads(1.95))], DISPROVEN, "disproven by"),
        (FAST, [IN_FORCE, (14, READS, reads(1.95)), (16, LIMITS, FREE)], DISPROVEN, "ended 6.0 s after the step"),
    ],
)
def test_reads_take_as_long_as_the_limit_demands(
    before: object, readings: list[tuple[float, str, object]], status: ProofStatus, because: str
) -> None:
    found = judged(readings, before)
    assert found[0] is status, found[1]
    assert because in found[1]


@pytest.mark.parametrize(("ended", "status"), [(25, DISPROVEN), (65, PROVEN)])
def test_the_end_of_the_duration_disproves_nothing(ended: float, status: ProofStatus) -> None:
    readings = [IN_FORCE, (14.0, READS, reads(1.95)), (ended, LIMITS, FREE), (ended + 1, READS, FAST)]
    assert judged(readings, FAST, "1m")[0] is status
