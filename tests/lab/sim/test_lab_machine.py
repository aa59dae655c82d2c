"""Services and kernel of a machine: container runtime, D-Bus, logind, crash, reset."""

from __future__ import annotations

import pytest

from chaos.lab.cluster import Cluster
from chaos.lab.node.logind import inhibit_delay_max
from chaos.lab.spec import LabSpec
from tests.kit.simkit import VICTIM, disruption, node, pods_on, ready, run, spec, started, taints


def _ready(cluster: Cluster) -> tuple[str, str, str]:
    item = ready(node(cluster))
    return item["status"], item["reason"], item["message"]


def _power(cluster: Cluster) -> tuple[str, bool]:
    machine = cluster.machines[VICTIM]
    return machine.state, machine.kubelet.is_running


def _holders(cluster: Cluster) -> list[str]:
    return [str(item["who"]) for item in cluster.machines[VICTIM].logind.inhibitors()]


def _after(cluster: Cluster, status: str, limit: float) -> float:
    begin = cluster.sim.now
    while ready(node(cluster))["status"] != status and cluster.sim.now < begin + limit:
        run(cluster, 0.1)
    return cluster.sim.now - begin


@pytest.mark.parametrize("seed", range(1, 9))
def test_runtime_down_is_false_after_25_to_41_seconds_and_never_unreachable(seed: int) -> None:
    """Facts 5.1; the Lease stays fresh, the pods' Ready stays True (facts 5.3)."""
    cluster, _ = started(spec(seed=seed))
    machine = cluster.machines[VICTIM]
    machine.runtime.stop_service()
    assert 25.0 <= _after(cluster, "False", 60.0) <= 41.0
    assert _ready(cluster) == ("False", "KubeletNotReady", "container runtime is down")
    run(cluster, 200.0)
    assert taints(node(cluster)) == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}
    assert _ready(cluster)[2].startswith("[container runtime is down, PLEG is not healthy: pleg was last seen active ")
    assert {ready(pod)["status"] for pod in pods_on(cluster, VICTIM) if not disruption(pod)} == {"True"}
    before = {pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM) if not disruption(pod)}
    machine.runtime.start_service()
    assert _after(cluster, "True", 30.0) <= 15.5
    run(cluster, 6.0)
    assert taints(node(cluster)) == set()
    for pod in pods_on(cluster, VICTIM):
        if pod["metadata"]["uid"] in before:
            assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_without_a_runtime_nothing_is_stopped_and_nothing_starts() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    machine.runtime.stop_service()
    victim = next(pod for pod in pods_on(cluster, VICTIM) if pod["metadata"]["labels"]["app"] == "web")
    cluster.delete_object("pods", "demo", victim["metadata"]["name"])
    run(cluster, 25.0)
    assert cluster.store.get("pods", "demo", victim["metadata"]["name"]) is not None
    machine.runtime.start_service()
    run(cluster, 10.0)
    assert cluster.store.get("pods", "demo", victim["metadata"]["name"]) is None


def test_kubelet_restarts_every_ten_seconds_without_a_runtime() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    machine.runtime.stop_service()
    machine.kubelet.restart()
    run(cluster, 25.0)
    assert _power(cluster) == ("on", False)
    machine.runtime.start_service()
    run(cluster, 10.0)
    assert _power(cluster) == ("on", True)


def test_killed_kubelet_is_restarted_after_ten_seconds_and_a_stopped_one_is_not() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    pid = machine.kubelet.pid
    machine.kubelet.kill()
    run(cluster, 9.9)
    assert _power(cluster) == ("on", False)
    run(cluster, 1.0)
    assert _holders(cluster) == ["kubelet"]
    assert machine.kubelet.pid not in (0, pid)
    machine.kubelet.kill()
    machine.kubelet.stop()
    run(cluster, 20.0)
    assert _power(cluster) == ("on", False)


def test_kubelet_reconnects_within_two_seconds_of_a_dbus_restart() -> None:
    """Facts 1.1: a new lock is taken before the old one is released; signals in between are lost."""
    cluster, _ = started()
    logind = cluster.machines[VICTIM].logind
    logind.restart_bus()
    logind.emit_prepare_for_shutdown(True)
    run(cluster, 0.9)
    assert _holders(cluster) == ["kubelet"]
    run(cluster, 10.0)
    assert _ready(cluster)[0] == "True"
    assert _holders(cluster) == ["kubelet"]
    logind.emit_prepare_for_shutdown(True)
    run(cluster, 1.0)
    assert _ready(cluster)[2] == "node is shutting down"


def test_dbus_restart_inside_the_window_does_not_stop_the_shutdown() -> None:
    cluster, history = started()
    begin = cluster.sim.now
    machine = cluster.machines[VICTIM]
    machine.logind.power_off()
    run(cluster, 1.0)
    machine.logind.restart_bus()
    run(cluster, 14.0)
    assert _power(cluster) == ("off", False)
    assert [pod for _, _, pod in history.since(begin, "pods") if disruption(pod)]


def test_signal_after_dbus_restart_in_the_window_is_lost_and_the_manager_reconnects() -> None:
    """The event loop is busy with the buckets and detects the closed bus afterwards."""
    cluster, _ = started()
    logind = cluster.machines[VICTIM].logind
    logind.emit_prepare_for_shutdown(True)
    run(cluster, 1.0)
    logind.restart_bus()
    logind.emit_prepare_for_shutdown(False)
    run(cluster, 25.0)
    assert _ready(cluster)[2] == "node is shutting down"
    logind.emit_prepare_for_shutdown(False)
    run(cluster, 11.0)
    assert _ready(cluster)[0] == "True"


def test_restart_of_logind_preserves_locks_and_listeners() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    machine.logind.restart()
    assert _holders(cluster) == ["kubelet"]
    machine.logind.power_off()
    run(cluster, 1.0)
    assert _ready(cluster)[2] == "node is shutting down"


def _capped(seconds: int) -> LabSpec:
    lab = spec()
    for item in lab.nodes:
        item.logind_drop_ins = {"unattended-upgrades-logind-maxdelay.conf": seconds}
    return lab


@pytest.mark.parametrize(("cap", "held"), [(30, ["kubelet"]), (29, []), (120, ["kubelet"])])
def test_a_drop_in_that_sorts_after_the_kubelets_wins(cap: int, held: list[str]) -> None:
    """Facts 1.7: a cap below 30 s leaves the manager off; a longer one is accepted unchanged."""
    cluster, history = started(_capped(cap))
    machine = cluster.machines[VICTIM]
    assert (machine.logind.inhibit_delay_max, _holders(cluster)) == (cap, held)
    begin = cluster.sim.now
    machine.logind.power_off()
    run(cluster, 10.0)
    assert bool([pod for _, _, pod in history.since(begin, "pods") if disruption(pod)]) == bool(held)


@pytest.mark.parametrize(
    ("files", "seconds"),
    [
        ({}, 5.0),
        ({"/etc/systemd/logind.conf.d/99-kubelet.conf": "[Login]\nInhibitDelayMaxSec=30\n"}, 30.0),
        (
            {
                "/etc/systemd/logind.conf.d/99-kubelet.conf": "InhibitDelayMaxSec=60\n",
                "/usr/lib/systemd/logind.conf.d/unattended.conf": "InhibitDelayMaxSec=30s\n",
            },
            30.0,
        ),
        (
            {  # the workaround: an empty file of that name in /etc
                "/etc/systemd/logind.conf.d/99-kubelet.conf": "InhibitDelayMaxSec=60\n",
                "/etc/systemd/logind.conf.d/unattended.conf": "",
                "/usr/lib/systemd/logind.conf.d/unattended.conf": "InhibitDelayMaxSec=30\n",
            },
            60.0,
        ),
        ({"/usr/lib/systemd/logind.conf.d/a.conf": "#InhibitDelayMaxSec=9\n"}, 5.0),
    ],
)
def test_inhibit_delay_max(files: dict[str, str], seconds: float) -> None:
    assert inhibit_delay_max(files, 5.0) == seconds


def test_node_without_logind_shuts_down_without_a_signal() -> None:
    """Facts 1.7: kind nodes, minimal images."""
    lab = spec()
    for item in lab.nodes:
        item.logind = False
    cluster, history = started(lab)
    machine = cluster.machines[VICTIM]
    assert machine.kubelet.is_running
    assert _holders(cluster) == []
    begin = cluster.sim.now
    machine.shut_down("poweroff")
    run(cluster, 3.0)
    assert _power(cluster) == ("off", False)
    assert not [pod for _, _, pod in history.since(begin, "pods") if disruption(pod)]
    assert ready(node(cluster))["status"] == "True"


def test_kernel_crash_hangs_with_the_power_on_until_reset() -> None:
    lab = spec()
    lab.nodes[1].panic_timeout = 0
    cluster, _ = started(lab)
    machine = cluster.machines[VICTIM]
    machine.crash()
    assert (machine.is_reachable, *_power(cluster)) == (False, "on", False)
    assert 39.6 <= _after(cluster, "Unknown", 70.0) <= 60.2
    machine.power_on()  # it is on
    run(cluster, 20.0)
    assert not machine.is_reachable
    boot = machine.boot_id
    machine.reset()
    run(cluster, 20.0)
    assert (machine.is_reachable, *_power(cluster)) == (True, "on", True)
    assert machine.boot_id != boot
    assert _ready(cluster)[0] == "True"


def test_kernel_crash_with_a_panic_timeout_boots_by_itself() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    machine.crash()
    run(cluster, 9.0)
    assert not machine.is_reachable
    run(cluster, 12.0)
    assert machine.is_reachable


def test_fast_reset_shows_no_condition_change() -> None:
    """Facts 18: only restart counts, events and the boot identity show the reboot."""
    cluster, history = started()
    machine = cluster.machines[VICTIM]
    begin, boot = cluster.sim.now, machine.boot_id
    machine.reset()
    run(cluster, 40.0)
    nodes = [obj for _, _, obj in history.since(begin, "nodes") if obj["metadata"]["name"] == VICTIM]
    assert {ready(obj)["status"] for obj in nodes} == {"True"}
    assert nodes[-1]["status"]["nodeInfo"]["bootID"] != boot
    counts = {pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods_on(cluster, VICTIM)}
    assert counts == {1}


def test_reset_of_a_machine_that_is_off_leaves_it_off() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    machine.power_off()
    machine.reset()
    machine.crash()
    run(cluster, 20.0)
    assert _power(cluster) == ("off", False)


def test_deleted_pod_that_ended_before_the_kubelet_started_is_removed() -> None:
    """PW UpdatePod: a pod that is terminal in API and runtime is still synced as terminated once, then deleted."""
    cluster, _ = started(settle=20.0)
    pod = next(item for item in pods_on(cluster, VICTIM) if item["metadata"]["name"].startswith("web"))
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    cluster.machines[VICTIM].power_off()
    cluster.delete_object("pods", namespace, name)
    cluster.store.patch("pods", namespace, name, lambda obj: obj["status"].update(phase="Failed"))
    run(cluster, 5.0)
    assert cluster.store.get("pods", namespace, name) is not None
    cluster.machines[VICTIM].power_on()
    run(cluster, 15.0)
    assert cluster.store.get("pods", namespace, name) is None
