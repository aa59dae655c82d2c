"""Elections of etcd's members, and what waits for them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chaos.lab.apiserver.store import Change
from chaos.lab.objects import name_of
from chaos.lab.recorded.recording import to_epoch
from tests.kit.lab_host import EtcdLab

SEEDS = range(1, 6)


def stop(lab: EtcdLab, *members: str) -> None:
    for member in members:
        lab.cluster.machines[member].power_off()


def test_a_cluster_without_etcd_never_waits() -> None:
    lab = EtcdLab(0)
    assert (lab.etcd.leader(), lab.etcd.ready_at()) == ("", lab.sim.now)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_election_takes_one_to_two_election_timeouts(seed: int) -> None:
    lab = EtcdLab(3, seed)
    assert lab.etcd.leader() == "cp-1"
    begin = lab.sim.now
    stop(lab, "cp-1")
    due = lab.etcd.ready_at()
    assert lab.etcd.leader() == ""
    assert due is not None
    assert begin + 1.0 <= due <= begin + 2.0
    lab.sim.run_until(due)
    assert lab.etcd.leader() in ("cp-2", "cp-3")


def test_seeds_elect_different_members() -> None:
    elected = set()
    for seed in SEEDS:
        lab = EtcdLab(3, seed)
        stop(lab, "cp-1")
        lab.wait(2.0)
        elected.add(lab.etcd.leader())
    assert elected == {"cp-2", "cp-3"}


def test_a_follower_that_ends_changes_nothing() -> None:
    lab = EtcdLab()
    stop(lab, "cp-3")
    assert (lab.etcd.leader(), lab.etcd.ready_at()) == ("cp-1", lab.sim.now)


def test_without_a_majority_there_is_no_leader_until_it_is_back() -> None:
    lab = EtcdLab()
    stop(lab, "cp-2", "cp-3")
    assert (lab.etcd.leader(), lab.etcd.ready_at()) == ("", None)
    lab.cluster.machines["cp-3"].power_on()
    lab.wait(60.0)
    assert lab.etcd.leader() in ("cp-1", "cp-3")


def test_a_leader_that_gets_sigterm_hands_over() -> None:
    lab = EtcdLab()
    lab.cluster.machines["cp-1"].hidden_files.add("/etc/kubernetes/manifests/etcd.yaml")
    for _ in range(300):
        lab.wait(0.1)
        assert lab.etcd.ready_at() == lab.sim.now
    assert lab.etcd.leader() in ("cp-2", "cp-3")


def test_kubelets_write_once_there_is_a_leader() -> None:
    lab = EtcdLab()
    lease = lab.cluster.store.get("leases", "kube-node-lease", "w1")
    stop(lab, "cp-2", "cp-3")
    lab.wait(30.0)
    assert lab.cluster.store.get("leases", "kube-node-lease", "w1") == lease
    for member in ("cp-2", "cp-3"):
        lab.cluster.machines[member].power_on()
    lab.wait(90.0)
    assert lab.cluster.store.get("leases", "kube-node-lease", "w1") != lease


@pytest.mark.parametrize("seed", SEEDS)
def test_a_renewal_sent_during_an_election_is_sent_again_after_10_s(seed: int) -> None:
    """The kubelet's heartbeat client gives up; the member that had it has forwarded it to the last leader."""
    lab, renewed = EtcdLab(3, seed), list[float]()

    def note(change: Change) -> None:
        if name_of(change.object) == "w1":
            renewed.append(to_epoch(change.object["spec"]["renewTime"]))

    lab.cluster.store.subscribe(note, "leases")
    while not renewed:
        lab.wait(0.1)
    lab.wait(renewed[0] + 9.9 - lab.sim.now)
    stop(lab, "cp-1")
    lab.wait(40.0)
    gaps = [after - before for before, after in pairwise(renewed)]
    assert 20.0 <= gaps[0] <= 20.5
    assert max(gaps[1:]) <= 10.5
