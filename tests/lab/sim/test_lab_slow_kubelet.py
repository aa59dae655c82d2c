"""A kubelet with a CPU quota: the less it has, the later its Lease, and without the quota it is in time again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chaos.lab.cluster import Cluster
from tests.kit.simkit import VICTIM, History, node, run, started


def _gaps(history: History, since: float) -> list[float]:
    """Seconds between renewals of the victim's Lease."""
    times = [when for when, _, lease in history.since(since, "leases") if lease["metadata"]["name"] == VICTIM]
    return [later - earlier for earlier, later in pairwise(times)]


def _ready(cluster: Cluster) -> str:
    found = next(item for item in node(cluster)["status"]["conditions"] if item["type"] == "Ready")
    return str(found["status"])


@pytest.mark.parametrize(("share", "least", "most"), [(0.2, 10.0, 12.0), (0.05, 11.0, 40.0), (0.002, 60.0, 400.0)])
def test_the_lease_is_as_late_as_the_quota_is_small(share: float, least: float, most: float) -> None:
    cluster, history = started()
    begin = cluster.sim.now
    cluster.machines[VICTIM].kubelet.cpu.limit(share)
    run(cluster, 900.0)
    gaps = _gaps(history, begin + 60.0)
    assert least <= max(gaps) <= most, gaps


def test_too_little_makes_the_node_unknown_until_the_quota_is_gone() -> None:
    cluster, history = started()
    kubelet = cluster.machines[VICTIM].kubelet
    kubelet.cpu.limit(0.002)
    used, throttled = kubelet.cpu.usage()
    run(cluster, 100.0)
    assert kubelet.cpu.usage() == pytest.approx((used + 100 * 0.002, throttled + 100 * 0.998))
    assert _ready(cluster) == "Unknown"
    kubelet.cpu.limit(None)
    freed = cluster.sim.now
    run(cluster, 25.0)
    assert _ready(cluster) == "True"
    run(cluster, 60.0)
    assert max(_gaps(history, freed + 15.0)) < 12.0
    assert kubelet.cpu.usage()[1] == pytest.approx(throttled + 100 * 0.998)


def test_a_reboot_removes_the_quota() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    machine.kubelet.cpu.limit(0.01)
    machine.power_off()
    assert machine.kubelet.cpu.share is None
