"""Requests to the API server of a lab whose etcd has no leader."""

from __future__ import annotations

import msgspec
import pytest

from chaos.app.lab_spec import lab_spec
from chaos.core.lab_settings import Lab
from chaos.lab.direct.lab import DirectLab
from chaos.lab.spec import LabSpec

CACHED = "/api/v1/nodes?resourceVersion=0"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def direct(count: int) -> DirectLab:
    lab = DirectLab(
        msgspec.convert(lab_spec(Lab.model_validate({"controlPlanes": count, "workers": 1}), 1, 0.0), LabSpec)
    )
    lab.start()
    return lab


@pytest.fixture
def lab() -> DirectLab:
    return direct(3)


def seconds(lab: DirectLab, target: str) -> tuple[float, int]:
    """Of a GET until its answer, and the answer's status."""
    begin, task = lab.sim.now, lab.request("GET", target, {"Authorization": f"Bearer {lab.token}"})
    while not task.done:
        lab.sim.run_until(lab.sim.now + 0.1)
    return round(lab.sim.now - begin, 3), task.result().status


def stop(lab: DirectLab, *numbers: int) -> None:
    for number in numbers:
        lab.cluster.machines[f"control-plane-{number}"].power_off()


def test_control_planes_of_an_inventory(lab: DirectLab) -> None:
    assert list(lab.cluster.machines) == [*(f"control-plane-{number}" for number in (1, 2, 3)), "worker-1"]
    assert lab.cluster.etcd.leader() == "control-plane-1"
    mirror = lab.cluster.store.get("pods", "kube-system", "etcd-control-plane-2")
    assert mirror is not None
    assert mirror["metadata"]["labels"] == {"component": "etcd", "tier": "control-plane"}
    alone = direct(1)
    assert list(alone.cluster.machines) == ["control-plane", "worker-1"]
    assert alone.cluster.etcd.members == {}


def test_requests_wait_for_an_election(lab: DirectLab) -> None:
    assert seconds(lab, LEASES) == (0.0, 200)
    stop(lab, 1)
    assert seconds(lab, CACHED) == (0.0, 200)
    assert seconds(lab, "/version") == (0.0, 200)
    waited, status = seconds(lab, LEASES)
    assert status == 200
    assert 0.9 <= waited <= 2.1
    assert seconds(lab, LEASES) == (0.0, 200)


def test_requests_time_out_without_a_majority(lab: DirectLab) -> None:
    stop(lab, 2, 3)
    waited, status = seconds(lab, LEASES)
    assert (status, 6.9 <= waited <= 7.6) == (500, True)
    assert seconds(lab, CACHED) == (0.0, 200)
    lab.cluster.machines["control-plane-2"].power_on()
    lab.sim.run_until(lab.sim.now + 60.0)
    assert seconds(lab, LEASES) == (0.0, 200)
