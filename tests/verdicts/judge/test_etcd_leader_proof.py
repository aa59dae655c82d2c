"""Proof of etcd-leader-kill: the leader's container is gone, and no other one runs while the manifest is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import ProofStatus
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import Story, experiment, plugin_registry

ACTION, MANIFEST, MEMBERS, CONTAINERS = "etcd-leader-kill", "etcd-manifest", "etcd-members", "containers"
SHOWN: dict[str, Any] = {"sha256": "9f" * 32, "mounted": False}
HIDDEN = SHOWN | {"mounted": True}
LEADS = {"member": "n1", "leader": "n1", "voters": ["n1", "n2", "n3"], "healthy": ["n1", "n2", "n3"]}
FOLLOWS = LEADS | {"leader": "n2"}
OTHER = {"namespace": "kube-system", "pod": "kube-proxy-x", "uid": "u", "container": "kube-proxy", "id": "b"}
MINE = {"namespace": "shop", "pod": "etcd-0", "uid": "u", "container": "etcd", "id": "c"}
GONE = {"running": [OTHER, MINE]}
PROVEN, UNPROVEN, DISPROVEN = ProofStatus.PROVEN, ProofStatus.UNPROVEN, ProofStatus.DISPROVEN
IN_FORCE = (12.0, MANIFEST, HIDDEN)
BEFORE: list[tuple[float, str, object]] = [(9, MANIFEST, SHOWN), (9, MEMBERS, LEADS)]


def running(identity: str) -> dict[str, Any]:
    etcd = {"namespace": "kube-system", "pod": "etcd-n1", "uid": "e", "container": "etcd", "id": identity}
    return {"running": [OTHER, MINE, etcd]}


WHOLE: list[tuple[float, str, object]] = [*BEFORE, (9, CONTAINERS, running("a"))]


def judged(readings: list[tuple[float, str, object]], duration: str = "") -> tuple[ProofStatus, str]:
    scene = Story().node(0, "n1")
    for when, fact, value in readings:
        if when < 10:
            scene.host(when, fact, value)
    scene.done(10, ACTION, params={"duration": duration} if duration else {})
    for when, fact, value in readings:
        if when >= 10:
            scene.host(when, fact, value)
    given = f", with: {{duration: {duration}}}" if duration else ""
    method = f"[{{name: do, action: {ACTION}, target: victim{given}}}]"
    (step,) = judge(experiment(method=method), scene.timeline(300), plugin_registry(), Options()).steps
    return step.proof_status, step.because


@pytest.mark.parametrize(
    ("readings", "status", "because"),
    [
        ([*WHOLE, IN_FORCE, (14, CONTAINERS, GONE)], PROVEN, "etcd of n1, the leader before, has ended"),
        ([*WHOLE, IN_FORCE], UNPROVEN, "were not read after the step"),
        ([*WHOLE, (14, CONTAINERS, GONE)], UNPROVEN, "was not read"),
        ([*WHOLE, (12, MANIFEST, SHOWN), (14, CONTAINERS, GONE)], DISPROVEN, "disproven by"),
        ([*WHOLE, IN_FORCE, (14, CONTAINERS, GONE), (16, MANIFEST, SHOWN)], DISPROVEN, "the effect ended 6.0 s after"),
        # started again: by the kubelet, or from another manifest
        ([*WHOLE, IN_FORCE, (14, CONTAINERS, running("d"))], DISPROVEN, "etcd ran on n1 4.0 s after the step"),
        (
            [*WHOLE, IN_FORCE, (14, CONTAINERS, GONE), (30, CONTAINERS, running("d"))],
            DISPROVEN,
            "etcd ran on n1 20.0 s",
        ),
        ([*WHOLE, IN_FORCE, (14, CONTAINERS, running("a"))], DISPROVEN, "etcd ran on n1 4.0 s after the step"),
        # not the leader, or not known to be
        ([(9, MEMBERS, FOLLOWS), *WHOLE[::2], IN_FORCE, (14, CONTAINERS, GONE)], UNPROVEN, "not seen to be the leader"),
        ([*WHOLE[::2], IN_FORCE, (14, CONTAINERS, GONE)], UNPROVEN, "not seen to be the leader"),
        ([*BEFORE, IN_FORCE, (14, CONTAINERS, GONE)], UNPROVEN, "etcd was not seen to run on n1 before"),
        ([*BEFORE, (9, CONTAINERS, GONE), IN_FORCE, (14, CONTAINERS, GONE)], UNPROVEN, "etcd was not seen to run"),
        ([*WHOLE, IN_FORCE, (14, CONTAINERS, "x"), (14, CONTAINERS, {})], UNPROVEN, "were not read after the step"),
        ([*BEFORE, (9, CONTAINERS, None), IN_FORCE, (14, CONTAINERS, GONE)], UNPROVEN, "etcd was not seen to run"),
    ],
)
def test_the_leader_has_ended(readings: list[tuple[float, str, object]], status: ProofStatus, because: str) -> None:
    found = judged(readings)
    assert found[0] is status, found[1]
    assert because in found[1]


@pytest.mark.parametrize(("ended", "status"), [(25, DISPROVEN), (75, PROVEN)])
def test_the_end_of_the_duration_disproves_nothing(ended: float, status: ProofStatus) -> None:
    later = [(ended, MANIFEST, SHOWN), (ended + 1, CONTAINERS, running("d"))]
    assert judged([*WHOLE, IN_FORCE, (14, CONTAINERS, GONE), *later], "1m")[0] is status
