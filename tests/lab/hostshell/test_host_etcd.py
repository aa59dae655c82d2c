"""kubeadm's etcd on simulated hosts: killed while it leads, elections, and what ends the fault."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import Target
from chaos.core.command import HostCommand
from chaos.faults.actions.etcd_leader_kill import ACTION, LeaderState, Params
from chaos.faults.readings.etcd import MANIFEST
from tests.kit.lab_host import CLIENT, EtcdLab

CRICTL = f"crictl --runtime-endpoint unix://{CLIENT['runtime-socket']}"


def prepared(lab: EtcdLab, node: str = "cp-1") -> LeaderState:
    facts: dict[str, Any] = {name: lab.fact(node, name) for name in ("etcd-manifest", "etcd-members")}
    return ACTION.prepare(Target(node, facts=facts | CLIENT, tag="t", max_duration=300.0), Params())


def kill(lab: EtcdLab, node: str = "cp-1") -> float:
    """Kill the leader; the seconds that takes."""
    (command,) = ACTION.program(prepared(lab, node)).commands
    assert isinstance(command, HostCommand)
    begin = lab.sim.now
    assert lab.run(node, str(command))[0] == 0
    return lab.sim.now - begin


def test_a_leader_is_killed_and_comes_back() -> None:
    lab = EtcdLab()
    former = lab.fact("cp-1", "etcd-manifest")
    assert lab.fact("cp-1", "etcd-members")["leader"] == "cp-1"
    assert kill(lab) <= 25.0
    assert lab.etcd.process("cp-1") is None
    assert lab.fact("cp-1", "etcd-manifest")["mounted"]
    assert not lab.fact("cp-1", "etcd-health")
    with pytest.raises(ValueError, match="did not answer"):
        lab.fact("cp-1", "etcd-members")
    lab.wait(60.0)
    assert (lab.etcd.process("cp-1"), lab.mirror("cp-1")) == (None, None)
    members = lab.fact("cp-2", "etcd-members")
    assert members["leader"] in ("cp-2", "cp-3")
    assert (members["voters"], members["healthy"]) == (["cp-1", "cp-2", "cp-3"], ["cp-2", "cp-3"])
    assert lab.run("cp-1", f"umount --lazy {MANIFEST}") == (0, "", "")
    lab.wait(25.0)
    assert lab.fact("cp-1", "etcd-manifest") == former
    assert lab.fact("cp-1", "etcd-health")
    assert lab.mirror("cp-1")["status"]["phase"] == "Running"
    again = lab.fact("cp-1", "etcd-members")
    assert (again["leader"], again["healthy"]) == (members["leader"], ["cp-1", "cp-2", "cp-3"])


def test_one_kill_alone_is_only_a_restart() -> None:
    """Without the loop: the kubelet starts it before it lists the manifests."""
    lab = EtcdLab()
    lab.run("cp-1", f"mount --bind /dev/null {MANIFEST}; {CRICTL} stop --timeout 0 {running_id(lab)}")
    lab.wait(2.0)
    assert lab.etcd.process("cp-1")
    lab.wait(20.0)
    assert lab.etcd.process("cp-1") is None


def running_id(lab: EtcdLab) -> str:
    container = lab.etcd.process("cp-1")
    assert container
    return container.id.removeprefix("containerd://")


def test_the_loop_ends_with_the_mount() -> None:
    """An undo while the step is at work: what it has restored is not killed any more."""
    lab = EtcdLab()
    (command,) = ACTION.program(prepared(lab)).commands
    lab.sim.after(3.0, lab.cluster.machines["cp-1"].hidden_files.clear)
    begin = lab.sim.now
    assert lab.run("cp-1", str(command))[0] == 0
    assert lab.sim.now - begin < 4.0
    lab.wait(30.0)
    assert lab.fact("cp-1", "etcd-health")


def test_a_boot_ends_it() -> None:
    lab = EtcdLab()
    kill(lab)
    machine = lab.cluster.machines["cp-1"]
    machine.reset()
    lab.wait(60.0)
    assert lab.fact("cp-1", "etcd-health")
    assert not lab.fact("cp-1", "etcd-manifest")["mounted"]


def test_a_second_one_has_no_majority_left() -> None:
    lab = EtcdLab()
    kill(lab)
    leader = lab.etcd.leader()
    with pytest.raises(Exception, match="only 1 of 3 voting members"):
        prepared(lab, leader)
    follower = next(name for name in ("cp-2", "cp-3") if name != leader)
    with pytest.raises(Exception, match=f"{follower} is not the leader of etcd: {leader} is"):
        prepared(lab, follower)


def test_members_that_do_not_answer_take_time_and_are_missing() -> None:
    """crictl prints the answers of the other ones, though etcdctl fails; without a majority there is no list."""
    lab = EtcdLab()
    stop(lab, "cp-3")
    lab.wait(3.0)
    begin = lab.sim.now
    found = lab.fact("cp-1", "etcd-members")
    assert (found["leader"], found["healthy"], lab.sim.now - begin) == ("cp-1", ["cp-1", "cp-2"], 5.0)
    stop(lab, "cp-2")
    lab.wait(3.0)
    begin = lab.sim.now
    with pytest.raises(ValueError, match="did not answer"):
        lab.fact("cp-1", "etcd-members")
    assert lab.sim.now - begin == 5.0
    assert not lab.fact("cp-1", "etcd-health")


def stop(lab: EtcdLab, node: str) -> None:
    """End a member, with its machine."""
    lab.cluster.machines[node].power_off()


def test_other_users_and_commands_are_refused() -> None:
    lab = EtcdLab()
    identity = running_id(lab)
    for script in (f"mount --bind /dev/null {MANIFEST}", f"{CRICTL} stop --timeout 0 {identity}", f"umount {MANIFEST}"):
        assert lab.run("cp-1", script, root=False)[0] != 0
    for script, why in (
        (f"umount {MANIFEST}", "not mounted"),
        ("mount --bind /dev/null /etc/kubernetes/manifests/x.yaml", "mount point does not exist"),
        (f"{CRICTL} stop {identity}", "does not simulate"),
        (f"{CRICTL} stop --timeout 0 {'0' * 64}", "not found"),
        (f"{CRICTL} exec --sync {identity} etcdctl", "unrecognized option '--sync'"),
        (f"{CRICTL} exec {identity} sh", "does not simulate"),
        (f"{CRICTL} exec {identity} etcdctl get /", "the lab simulates only etcdctl"),
        (f"{CRICTL} pods --quiet --state NotReady", "simulates only"),
    ):
        code, _, error = lab.run("cp-1", script)
        assert (code != 0, why in error) == (True, True), (script, error)
    assert lab.etcd.leader() == "cp-1"
