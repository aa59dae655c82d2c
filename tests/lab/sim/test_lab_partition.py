"""Partitions between a node and the control plane by family and direction; a kubelet that is stopped or frozen.

A kubelet with a CPU quota: the less it has, the later its Lease, and without the quota it is in time again.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from chaos.lab.cluster import Cluster
from chaos.lab.node.network import DIRECTIONS, FAMILIES, Direction, Family
from tests.kit.simkit import VICTIM, History, disruption, events, node, pods_on, ready, run, spec, started, taints


def _renewals(cluster: Cluster) -> list[float]:
    """Times of writes of the victim's Lease; the list grows while the cluster runs."""
    seen: list[float] = []
    cluster.store.subscribe(
        lambda change: (
            seen.append(cluster.sim.now)
            if change.plural == "leases" and change.object["metadata"]["name"] == VICTIM
            else None
        )
    )
    return seen


def _status(cluster: Cluster) -> str:
    return str(ready(node(cluster))["status"])


def _power(cluster: Cluster) -> str:
    return cluster.machines[VICTIM].state


def _restarts(cluster: Cluster) -> dict[str, int]:
    pods = pods_on(cluster, VICTIM)
    return {pod["metadata"]["uid"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods}


@pytest.mark.parametrize("seed", range(1, 6))
def test_dual_stack_kubelet_reconnects_after_45_seconds_over_the_other_family(seed: int) -> None:
    cluster, _ = started(spec(seed=seed))
    seen = _renewals(cluster)
    run(cluster, 12.0)
    cluster.machines[VICTIM].partition(["ipv4"])
    assert cluster.machines[VICTIM].network.reachability() == {"ipv4": False, "ipv6": True}
    states = set()
    for _ in range(100):
        run(cluster, 1.0)
        states.add((_status(cluster), frozenset(taints(node(cluster)))))
    gaps = [later - earlier for earlier, later in pairwise(seen)]
    assert 45.3 <= max(gaps) <= 45.3 + 10.5  # the last response may be later than that of the Lease; recording 12: 45.3
    assert states == {("True", frozenset())}


@pytest.mark.parametrize("families", [["ipv6"], []])
def test_a_partition_of_the_other_family_has_no_effect(families: list[Family]) -> None:
    cluster, _ = started()
    seen = _renewals(cluster)
    cluster.machines[VICTIM].partition(families)
    run(cluster, 100.0)
    assert max(later - earlier for earlier, later in pairwise(seen)) < 10.5


@pytest.mark.parametrize("directions", [["in"], ["out"], ["in", "out"]])
def test_either_direction_disconnects_within_the_window_of_a_power_cut(directions: list[Direction]) -> None:
    """Facts 5.2 and 14 E: Unknown within [G - 1.04 R, G + 2 M]."""
    cluster, _ = started()
    begin = cluster.sim.now
    cluster.machines[VICTIM].partition(directions=directions)
    while _status(cluster) == "True" and cluster.sim.now < begin + 70.0:
        run(cluster, 0.1)
    assert 39.6 <= cluster.sim.now - begin <= 60.2
    run(cluster, 1.0)
    assert taints(node(cluster)) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    assert {ready(pod)["status"] for pod in pods_on(cluster, VICTIM)} == {"False"}


def test_single_stack_node_has_no_other_family() -> None:
    cluster, _ = started(spec(dual_stack=False))
    assert cluster.machines[VICTIM].network.reachability() == {"ipv4": True}
    cluster.machines[VICTIM].partition(["ipv4"])
    run(cluster, 62.0)
    assert _status(cluster) == "Unknown"


def test_healed_node_returns_within_seconds_and_its_pods_have_not_moved() -> None:
    cluster, _ = started()
    before = _restarts(cluster)
    machine = cluster.machines[VICTIM]
    machine.partition()
    run(cluster, 100.0)
    assert machine.kubelet.is_running
    machine.heal()
    run(cluster, 5.0)  # the SYN of a dial is retransmitted after 1, 2 and 4 s
    moved = {uid for uid, pod in before.items() if uid not in _restarts(cluster)}
    assert len(moved) <= 1  # db tolerates unreachable for 20 s only
    assert {ready(pod)["status"] for pod in pods_on(cluster, VICTIM) if not disruption(pod)} == {"True"}
    run(cluster, 25.0)
    assert _status(cluster) == "True"
    assert taints(node(cluster)) == set()
    assert all(before.get(uid, 0) == count for uid, count in _restarts(cluster).items())


@pytest.mark.parametrize("seconds", [1.0, 8.0, 20.0])
def test_short_partition_ends_with_a_tcp_retransmission(seconds: float) -> None:
    """Under 45 s the connection survives; the retransmission takes at most as long as the partition."""
    cluster, _ = started()
    seen = _renewals(cluster)
    run(cluster, 12.0)
    cluster.machines[VICTIM].partition()
    run(cluster, seconds)
    cluster.machines[VICTIM].heal()
    run(cluster, 60.0)
    assert max(later - earlier for earlier, later in pairwise(seen)) < 10.5 + 2 * seconds
    assert _status(cluster) == "True"


def test_partition_ends_with_the_power_and_heals_only_named_families() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    machine.partition()
    machine.heal(["ipv6"], ["in"])
    assert machine.network.drops() == {("ipv4", "in"), ("ipv4", "out"), ("ipv6", "out")}
    machine.power_off()
    assert machine.network.reachability() == dict.fromkeys(FAMILIES, True)
    assert len(DIRECTIONS) == 2


def test_shutdown_behind_a_partition_is_not_reported_and_its_pods_still_end() -> None:
    """The kubelet continues alone: no write arrives before the machine is off."""
    cluster, history = started()
    machine = cluster.machines[VICTIM]
    machine.partition()
    run(cluster, 1.0)
    begin = cluster.sim.now
    machine.logind.power_off()
    run(cluster, 12.0)
    assert machine.state == "off"  # in order, not after InhibitDelayMaxSec
    assert not [pod for _, _, pod in history.since(begin, "pods") if disruption(pod)]
    assert _status(cluster) == "True"


def test_pod_deleted_behind_a_partition_is_stopped_after_it() -> None:
    cluster, _ = started()
    victim = next(pod for pod in pods_on(cluster, VICTIM) if pod["metadata"]["labels"]["app"] == "web")
    machine, uid = cluster.machines[VICTIM], victim["metadata"]["uid"]
    machine.partition()
    cluster.delete_object("pods", "demo", victim["metadata"]["name"], grace=0)
    run(cluster, 30.0)
    assert [item.state for item in machine.runtime.containers(uid)] == ["running"]
    run(cluster, 20.0)
    machine.heal()
    run(cluster, 12.0)
    assert machine.runtime.containers(uid) == []


def test_kubelet_that_starts_behind_a_partition_waits_for_its_end() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    machine.partition()
    machine.kubelet.restart()
    run(cluster, 70.0)
    assert machine.kubelet.is_running
    assert _status(cluster) == "Unknown"
    machine.heal()
    run(cluster, 22.0)
    assert _status(cluster) == "True"


@pytest.mark.parametrize("operation", ["stop", "freeze"])
def test_stopped_or_frozen_kubelet_appears_as_a_power_cut_but_containers_run_on(operation: str) -> None:
    """Facts 5.1: the control plane sees the same; after a timely return the same uids continue without a restart."""
    cluster, _ = started()
    before = _restarts(cluster)
    machine = cluster.machines[VICTIM]
    getattr(machine.kubelet, operation)()
    assert [item["who"] for item in machine.logind.inhibitors()] == ([] if operation == "stop" else ["kubelet"])
    run(cluster, 62.0)
    assert _status(cluster) == "Unknown"
    assert ("unreachable", "NoExecute") in taints(node(cluster))
    for uid in before:
        assert [item.state for item in machine.runtime.containers(uid)] == ["running"]
    (machine.kubelet.start if operation == "stop" else machine.kubelet.thaw)()
    run(cluster, 25.0)
    assert _status(cluster) == "True"
    assert taints(node(cluster)) == set()
    assert all(before.get(uid, 0) == count for uid, count in _restarts(cluster).items())


def test_frozen_kubelet_makes_logind_wait_for_its_whole_delay() -> None:
    cluster, history = started()
    machine = cluster.machines[VICTIM]
    machine.kubelet.freeze()
    begin = cluster.sim.now
    machine.logind.power_off()
    run(cluster, 29.5)
    assert _power(cluster) == "on"
    run(cluster, 3.0)
    assert _power(cluster) == "off"
    assert not [pod for _, _, pod in history.since(begin, "pods") if disruption(pod)]


def test_events_of_a_short_partition_arrive_late_and_of_a_long_one_never() -> None:
    """client-go tries 12 times, 10 s apart."""
    for seconds, count in ((60.0, 1), (200.0, 0)):
        cluster, _ = started(recorded=False)
        machine = cluster.machines[VICTIM]
        machine.partition()
        machine.logind.emit_prepare_for_shutdown(True)
        run(cluster, seconds)
        assert not events(cluster, "Shutdown")
        machine.heal()
        run(cluster, 25.0)
        assert len(events(cluster, "Shutdown")) == count


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
