"""Scenarios of one node as seen by the API: shutdown, cancellation, partition, restart."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.apiserver.store import Change
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.metrics import STATE_FILE
from chaos.lab.node.kubelet.process import Descriptors
from tests.kit.simkit import (
    VICTIM,
    Object,
    disruption,
    events,
    node,
    pods_on,
    ready,
    run,
    spec,
    started,
    taints,
    with_priorities,
    workload,
)


def _gauges(cluster: Cluster, name: str = VICTIM) -> tuple[float, float]:
    lines = dict(
        line.rsplit(" ", 1)
        for line in cluster.machines[name].kubelet.metrics_text().splitlines()
        if not line.startswith("#")
    )
    found = (f"kubelet_graceful_shutdown_{end}_time_seconds" for end in ("start", "end"))
    start, end = (float(lines[key]) for key in found)
    return start, end


def _ready(cluster: Cluster, name: str = VICTIM) -> tuple[str, str]:
    item = ready(node(cluster, name))
    return item["status"], item["message"]


def _power(cluster: Cluster) -> str:
    return cluster.machines[VICTIM].state


def _pod(cluster: Cluster, name: str) -> Object:
    found = cluster.store.get("pods", "demo", name)
    assert found is not None
    return found


def _bare(cluster: Cluster, name: str, node_name: str = VICTIM, grace: int = 30, **annotations: str) -> None:
    cluster.create_object(
        "pods",
        {
            "metadata": {
                "name": name,
                "namespace": "demo",
                "annotations": {
                    f"lab.nodefall.dev/{key.replace('_', '-')}": value for key, value in annotations.items()
                },
            },
            "spec": {
                "nodeName": node_name,
                "containers": [{"name": "c", "image": "busybox:1.36"}],
                "terminationGracePeriodSeconds": grace,
            },
        },
    )


def test_kubelet_holds_its_lock_after_start() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    held = [(item["what"], item["who"], item["why"], item["mode"]) for item in machine.logind.inhibitors()]
    assert held == [("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay")]
    assert machine.logind.inhibit_delay_max == 30.0
    assert "InhibitDelayMaxSec=30\n" in machine.files["/etc/systemd/logind.conf.d/99-kubelet.conf"]


def test_exit_code_decides_phase_and_reason_on_graceful_shutdown() -> None:
    cluster, _ = started()
    for name, code in (("zero", "0"), ("three", "3")):
        _bare(cluster, name, exit_code=code)
    _bare(cluster, "stubborn", grace=120, ignores_sigterm="true")
    run(cluster, 5.0)
    begin = cluster.sim.now
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 19.0)
    assert _pod(cluster, "stubborn")["status"]["phase"] == "Running"
    run(cluster, 15.0)
    seen = {
        name: (pod["status"]["phase"], pod["status"].get("reason"), pod["status"].get("message"), disruption(pod))
        for name, pod in ((name, _pod(cluster, name)) for name in ("zero", "three", "stubborn"))
    }
    text = "Pod was terminated in response to imminent node shutdown."
    assert seen == {
        "zero": ("Succeeded", None, None, "TerminationByKubelet"),
        "three": ("Failed", "Terminated", text, "TerminationByKubelet"),
        "stubborn": ("Failed", "Terminated", text, "TerminationByKubelet"),
    }
    state = _pod(cluster, "stubborn")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert state["exitCode"] == 137
    assert _power(cluster) == "off"
    assert 20.0 < cluster.sim.now - begin < 35.0


def test_terminal_phase_disruption_and_unready_come_in_one_write() -> None:
    """Facts 16, invariant 3: none of them is ever observed without the others."""
    cluster, history = started()
    begin = cluster.sim.now
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 30.0)
    ended = 0
    for _, _, pod in history.since(begin, "pods"):
        status = pod["status"]
        if pod["spec"].get("nodeName") != VICTIM or status.get("reason") == "NodeShutdown":
            continue
        terminal = status["phase"] in ("Succeeded", "Failed")
        running = any("running" in item["state"] for item in status.get("containerStatuses", []))
        assert terminal == (disruption(pod) == "TerminationByKubelet")
        assert not (terminal and running)
        assert not (terminal and any(c["type"] == "Ready" and c["status"] == "True" for c in status["conditions"]))
        ended += terminal
    assert ended >= 5


def test_no_api_delete_and_pods_stay_ready_until_they_end() -> None:
    cluster, _ = started()
    before = {pod["metadata"]["name"] for pod in pods_on(cluster, VICTIM) if pod["metadata"]["labels"]["app"] == "web"}
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 2.0)
    for pod in pods_on(cluster, VICTIM):
        if pod["metadata"]["name"] in before:
            assert "deletionTimestamp" not in pod["metadata"]
            assert [c["status"] for c in pod["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
    assert _ready(cluster) == ("False", "node is shutting down")


def test_critical_pods_end_after_all_others() -> None:
    cluster, history = started()
    begin = cluster.sim.now
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 30.0)
    ends: dict[str, list[float]] = {}
    for when, type_, pod in history.since(begin, "pods"):
        if type_ == "MODIFIED" and disruption(pod) and "deletionTimestamp" not in pod["metadata"]:
            ends.setdefault(pod["metadata"]["labels"]["app"], []).append(when)
    assert min(ends["agent"]) > max(ends["web"]) > 5.0
    assert min(ends["agent"]) < 10.0  # the lower bucket ends when its pods have, not after its 20 s


def test_pods_bound_during_the_shutdown_are_rejected() -> None:
    cluster, _ = started()
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 1.0)
    _bare(cluster, "late")
    run(cluster, 0.5)
    status = _pod(cluster, "late")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "NodeShutdown")
    assert status["message"] == "Pod was rejected: Pod was rejected as the node is shutting down."
    assert "conditions" not in status
    assert 'kubelet_admission_rejections_total{reason="NodeShutdown"} 1' in (
        cluster.machines[VICTIM].kubelet.metrics_text()
    )


def test_priority_buckets_end_low_to_high() -> None:
    cluster, history = started(
        with_priorities(spec(), [(100000, 10), (10000, 20), (1000, 15), (0, 12)]),
    )
    begin = cluster.sim.now
    cluster.machines[VICTIM].logind.power_off()
    run(cluster, 40.0)
    ends: dict[str, list[float]] = {}
    for when, _, pod in history.since(begin, "pods"):
        if disruption(pod) == "TerminationByKubelet":
            ends.setdefault(pod["metadata"]["labels"]["app"], []).append(when)
    order = ["web", "tier-c", "tier-b", "tier-a"]
    assert [min(ends[app]) for app in order] == sorted(min(ends[app]) for app in order)
    assert all(min(ends[later]) > max(ends[app]) for app, later in pairwise(order))


def test_metrics_and_state_file_survive_the_reboot_and_the_first_scrape_is_empty() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    begin = cluster.sim.now
    machine.logind.reboot()
    while _power(cluster) == "on":
        run(cluster, 0.1)
        assert cluster.sim.now - begin < 60
    assert STATE_FILE in machine.files
    while not machine.kubelet.is_running:
        run(cluster, 0.05)
        assert cluster.sim.now - begin < 60
    assert _gauges(cluster) == (0.0, 0.0)
    run(cluster, 2.0)
    start, end = _gauges(cluster)
    assert int(begin) <= start <= end <= cluster.sim.now


def test_reboot_changes_the_boot_identity_and_emits_an_event() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    before, pid1 = machine.boot_id, machine.pid1_start
    machine.logind.reboot()
    run(cluster, 40.0)
    assert machine.boot_id != before
    assert machine.pid1_start > pid1
    assert node(cluster)["status"]["nodeInfo"]["bootID"] == machine.boot_id
    assert len(events(cluster, "Rebooted")) == 1
    assert _ready(cluster) == ("True", "kubelet is posting ready status")


def test_machine_calls_on_change_when_it_goes_down_and_up() -> None:
    cluster, _ = started(recorded=False)
    machine = cluster.machines[VICTIM]
    seen: list[tuple[str, bool, bool]] = []
    machine.on_change.append(lambda m: seen.append((m.state, m.is_reachable, m.kubelet.is_running)))
    machine.logind.power_off()
    run(cluster, 10.0)
    machine.power_on()
    run(cluster, 15.0)
    assert seen[0] == ("on", True, False)
    assert ("off", False, False) in seen
    assert seen[-3:] == [("on", False, False), ("on", True, False), ("on", True, True)]


@pytest.mark.parametrize(("option", "held"), [("always", []), ("never", ["kubelet"])])
def test_lock_after_cancel_depends_on_the_defect(option: str, held: list[str]) -> None:
    cluster, _ = started(spec(inhibitor_lost_after_cancel=option))
    logind = cluster.machines[VICTIM].logind
    logind.emit_prepare_for_shutdown(True)
    run(cluster, 12.0)
    assert logind.inhibitors() == []
    logind.emit_prepare_for_shutdown(False)
    run(cluster, 12.0)
    assert [item["who"] for item in logind.inhibitors()] == held
    assert _ready(cluster)[0] == "True"


def test_seeded_defect_goes_both_ways() -> None:
    lost = set()
    for seed in range(1, 20):
        cluster, _ = started(spec(seed=seed), settle=5.0, recorded=False)
        logind = cluster.machines[VICTIM].logind
        logind.emit_prepare_for_shutdown(True)
        logind_quiet = cluster.sim.now + 2.0
        cluster.sim.run_until(logind_quiet)
        logind.emit_prepare_for_shutdown(False)
        run(cluster, 2.0)
        lost.add(not logind.inhibitors())
    assert lost == {True, False}


def test_a_cancellation_of_nothing_keeps_the_lock() -> None:
    """The former lock is still open: the new one gets another number, and the former one is closed."""
    cluster, _ = started(spec(inhibitor_lost_after_cancel="always"), recorded=False)
    logind = cluster.machines[VICTIM].logind
    for _ in range(3):
        logind.emit_prepare_for_shutdown(False)
        run(cluster, 2.0)
        assert [item["who"] for item in logind.inhibitors()] == ["kubelet"]


def test_a_lost_lock_is_lost_again_at_the_next_cancellation() -> None:
    cluster, _ = started(spec(inhibitor_lost_after_cancel="always"), recorded=False)
    logind = cluster.machines[VICTIM].logind
    for active in (True, False, True, False):
        logind.emit_prepare_for_shutdown(active)
        run(cluster, 4.0)
        assert logind.inhibitors() == []


@pytest.mark.parametrize(("option", "held"), [("always", []), ("never", ["kubelet"])])
def test_a_restart_of_the_bus_after_the_pods_have_ended_loses_the_lock_too(option: str, held: list[str]) -> None:
    """The kubelet connects again, and takes its lock as after a cancellation."""
    cluster, _ = started(spec(inhibitor_lost_after_cancel=option), recorded=False)
    logind = cluster.machines[VICTIM].logind
    logind.emit_prepare_for_shutdown(True)
    run(cluster, 4.0)
    logind.restart_bus()
    run(cluster, 4.0)
    assert [item["who"] for item in logind.inhibitors()] == held


@given(st.lists(st.one_of(st.none(), st.integers(0, 7)), max_size=40))
def test_an_open_file_gets_the_lowest_free_number(actions: list[int | None]) -> None:
    """None opens a file, a number closes the file that was opened as that one; closing twice does nothing."""
    descriptors, numbers, open_, closed = Descriptors(), list[int](), set[int](), list[int]()
    for action in actions:
        if action is None:
            number = descriptors.open(partial(closed.append, len(numbers)))
            assert number == min(set(range(1, len(open_) + 2)) - open_)
            numbers.append(number)
            open_.add(number)
        elif action < len(numbers):
            before, was_open = len(closed), numbers[action] in open_
            descriptors.close(numbers[action])
            open_.discard(numbers[action])
            assert len(closed) - before == was_open
            assert not descriptors.is_open(numbers[action])
    descriptors.close_all()
    assert sorted(closed) == list(range(len(numbers)))


def test_restart_of_the_kubelet_restores_the_lock() -> None:
    cluster, _ = started(spec(inhibitor_lost_after_cancel="always"))
    machine = cluster.machines[VICTIM]
    machine.logind.emit_prepare_for_shutdown(True)
    run(cluster, 12.0)
    machine.logind.emit_prepare_for_shutdown(False)
    run(cluster, 2.0)
    assert machine.logind.inhibitors() == []
    machine.kubelet.restart()
    run(cluster, 2.0)
    assert [item["who"] for item in machine.logind.inhibitors()] == ["kubelet"]


def test_poweroff_without_the_lock_emits_the_signal_but_does_not_wait() -> None:
    cluster, _ = started(spec(inhibitor_lost_after_cancel="always"))
    machine = cluster.machines[VICTIM]
    machine.logind.emit_prepare_for_shutdown(True)
    run(cluster, 12.0)
    machine.logind.emit_prepare_for_shutdown(False)
    run(cluster, 60.0)
    cluster.create_object("deployments", workload("slow", stops=5, replicas=8))
    run(cluster, 10.0)
    running = [p["metadata"]["name"] for p in pods_on(cluster, VICTIM) if p["metadata"]["labels"]["app"] == "slow"]
    assert running
    machine.logind.power_off()
    run(cluster, 3.0)
    assert _power(cluster) == "off"
    assert _ready(cluster) == ("False", "node is shutting down")
    assert {_pod(cluster, name)["status"]["phase"] for name in running} == {"Running"}


def test_cancel_in_the_window_is_handled_only_after_every_bucket() -> None:
    cluster, history = started()
    begin = cluster.sim.now
    machine = cluster.machines[VICTIM]
    machine.logind.emit_prepare_for_shutdown(True)
    run(cluster, 1.0)
    machine.logind.emit_prepare_for_shutdown(False)
    run(cluster, 30.0)
    texts = {
        event["message"]: when
        for when, type_, event in history.since(begin, "events")
        if event["reason"] == "Shutdown" and type_ == "ADDED"
    }
    ends = [when for when, _, pod in history.since(begin, "pods") if disruption(pod)]
    assert texts["Shutdown manager detected shutdown cancellation"] > max(ends)
    start, end = _gauges(cluster)
    assert end >= start > 0


def test_cancelled_node_is_ready_at_a_regular_sync_and_its_taints_follow() -> None:
    cluster, _ = started()
    logind = cluster.machines[VICTIM].logind
    logind.emit_prepare_for_shutdown(True)
    run(cluster, 10.0)
    assert _ready(cluster)[0] == "False"
    assert taints(node(cluster)) == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}
    logind.emit_prepare_for_shutdown(False)
    run(cluster, 10.6)
    assert _ready(cluster)[0] == "True"
    assert ("not-ready", "NoSchedule") not in taints(node(cluster))
    run(cluster, 5.2)
    assert taints(node(cluster)) == set()


def test_cancelled_schedule_has_no_effect() -> None:
    cluster, history = started()
    logind = cluster.machines[VICTIM].logind
    begin = cluster.sim.now
    logind.schedule("poweroff", begin + 60.0)
    run(cluster, 30.0)
    assert logind.scheduled_shutdown() == ("poweroff", begin + 60.0)
    assert logind.cancel_scheduled()
    run(cluster, 90.0)
    assert logind.scheduled_shutdown() is None
    assert not logind.cancel_scheduled()
    assert _power(cluster) == "on"
    assert {ready(obj)["status"] for _, _, obj in history.since(begin, "nodes")} <= {"True"}
    assert not history.since(begin, "pods")


def test_scheduled_shutdown_is_graceful() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    machine.logind.schedule("poweroff", cluster.sim.now + 20.0)
    run(cluster, 19.9)
    before = machine.logind.preparing_for_shutdown
    run(cluster, 1.0)
    assert (before, machine.logind.preparing_for_shutdown) == (False, True)
    assert _ready(cluster) == ("False", "node is shutting down")
    run(cluster, 30.0)
    assert _power(cluster) == "off"


@pytest.mark.parametrize(("systemd", "state"), [(252, "off"), (257, "on")])
def test_cancel_in_flight(systemd: int, state: str) -> None:
    """systemd 252 responds and goes down; 257 stays up and sends the kubelet no signal (facts 18, recording 27)."""
    cluster, _ = started(spec(systemd=systemd))
    machine = cluster.machines[VICTIM]
    machine.logind.power_off()
    run(cluster, 2.0)
    machine.logind.cancel_scheduled()
    assert machine.logind.preparing_for_shutdown == (systemd == 252)
    run(cluster, 60.0)
    assert _power(cluster) == state
    if state == "on":
        assert _ready(cluster) == ("False", "node is shutting down")
        assert machine.logind.inhibitors() == []
        machine.kubelet.restart()
        run(cluster, 2.0)
        assert _ready(cluster)[0] == "True"


def test_kubelet_restart_in_the_window_ends_the_delay_at_once() -> None:
    cluster, _ = started()
    _bare(cluster, "slow", grace=60, stops_after="15")
    run(cluster, 5.0)
    machine = cluster.machines[VICTIM]
    machine.logind.power_off()
    run(cluster, 2.0)
    assert _power(cluster) == "on"
    machine.kubelet.restart()
    run(cluster, 2.5)
    assert _power(cluster) == "off"
    assert _pod(cluster, "slow")["status"]["phase"] == "Running"


def test_power_on_before_eviction_restarts_pods_in_place() -> None:
    cluster, history = started()
    before = {pod["metadata"]["uid"]: pod for pod in pods_on(cluster, VICTIM)}
    begin = cluster.sim.now
    cluster.machines[VICTIM].power_off()
    run(cluster, 5.0)
    cluster.machines[VICTIM].power_on()
    run(cluster, 20.0)
    after = {pod["metadata"]["uid"]: pod for pod in pods_on(cluster, VICTIM)}
    assert set(after) == set(before)
    for pod in after.values():
        status = pod["status"]["containerStatuses"][0]
        assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 255)
        assert "running" in status["state"]
    assert {ready(obj)["status"] for _, _, obj in history.since(begin, "nodes")} == {"True"}


def test_pods_stay_ready_when_the_node_was_not_ready_before_it_was_unknown() -> None:
    """Facts 5.3: only True to Unknown marks pods."""
    cluster, history = started()
    _bare(cluster, "slow", grace=60, stops_after="15")
    run(cluster, 5.0)
    machine = cluster.machines[VICTIM]
    machine.logind.power_off()
    run(cluster, 2.0)
    machine.power_off()
    begin = cluster.sim.now
    run(cluster, 100.0)
    assert _ready(cluster)[0] == "Unknown"
    assert not [obj for _, _, obj in history.since(begin, "events") if obj["message"] == "Node is not ready"]
    conditions = {item["type"]: item["status"] for item in _pod(cluster, "slow")["status"]["conditions"]}
    assert conditions["Ready"] == "True"


def test_stuck_terminating_statefulset_pod_is_never_duplicated() -> None:
    cluster, _ = started()
    mine = [p for p in pods_on(cluster, VICTIM) if p["metadata"]["labels"]["app"] == "db"]
    assert len(mine) == 1
    cluster.machines[VICTIM].power_off()
    run(cluster, 200.0)
    pod = _pod(cluster, mine[0]["metadata"]["name"])
    assert pod["metadata"]["uid"] == mine[0]["metadata"]["uid"]
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 10
    assert pod["status"]["phase"] == "Running"
    cluster.delete_object("pods", "demo", pod["metadata"]["name"], 0)
    run(cluster, 5.0)
    assert _pod(cluster, pod["metadata"]["name"])["metadata"]["uid"] != pod["metadata"]["uid"]


def test_second_node_of_a_zone_is_tainted_ten_seconds_later() -> None:
    cluster, history = started(spec(workers=6))
    begin = cluster.sim.now
    for name in ("ra-worker", "ra-worker2"):
        cluster.machines[name].power_off()
    run(cluster, 100.0)
    first: dict[str, float] = {}
    for when, _, obj in history.since(begin, "nodes"):
        if ("unreachable", "NoExecute") in taints(obj):
            first.setdefault(obj["metadata"]["name"], when)
    assert set(first) == {"ra-worker", "ra-worker2"}
    assert 9.5 < abs(first["ra-worker"] - first["ra-worker2"]) < 15.5


def test_all_nodes_down_evicts_no_pod() -> None:
    cluster, history = started(settle=20.0)
    begin = cluster.sim.now
    for machine in cluster.machines.values():
        machine.power_off()
    run(cluster, 500.0)
    assert {ready(obj)["status"] for obj in cluster.store.list("nodes")} == {"Unknown"}
    assert not any(effect == "NoExecute" for obj in cluster.store.list("nodes") for _, effect in taints(obj))
    assert not [obj for _, _, obj in history.since(begin, "pods") if "deletionTimestamp" in obj["metadata"]]


def test_timeline_vector_of_section_16() -> None:
    """Unknown 50 s after the pass that saw the last lease, deletion 300 s after the taint."""
    cluster, history = started()
    renewed: list[float] = []

    def note(change: Change) -> None:
        if change.plural == "leases" and change.object["metadata"]["name"] == VICTIM:
            renewed.append(cluster.sim.now)

    cluster.store.subscribe(note)
    run(cluster, 11.0)
    last = renewed[-1]
    cluster.machines[VICTIM].power_off()
    run(cluster, 400.0)
    assert renewed[-1] == last
    seen = history.since(last, "nodes")
    mine = [(when, obj) for when, _, obj in seen if obj["metadata"]["name"] == VICTIM]
    unknown = next(when for when, obj in mine if ready(obj)["status"] == "Unknown")
    tainted = next(when for when, obj in mine if ("unreachable", "NoExecute") in taints(obj))
    assert 50.0 < unknown < 60.3
    assert 0.0 <= tainted - unknown < 0.25
    deleted = [
        when
        for when, _, pod in history.since(last, "pods")
        if "deletionTimestamp" in pod["metadata"] and pod["metadata"]["labels"]["app"] == "web"
    ]
    assert deleted
    assert 300.0 <= min(deleted) - tainted < 300.1


def test_node_back_in_time_cancels_the_eviction() -> None:
    cluster, _ = started()
    cluster.machines[VICTIM].power_off()
    run(cluster, 65.0)
    assert ("unreachable", "NoExecute") in taints(node(cluster))
    cluster.machines[VICTIM].power_on()
    run(cluster, 300.0)
    assert taints(node(cluster)) == set()
    assert any(event["message"].startswith("Cancelling deletion") for event in events(cluster, "TaintManagerEviction"))
    web = [pod for pod in pods_on(cluster, VICTIM) if pod["metadata"]["labels"]["app"] == "web"]
    assert web
    assert not any("deletionTimestamp" in pod["metadata"] for pod in web)


def test_restart_of_the_kubelet_leaves_pods_alone() -> None:
    cluster, history = started()
    before = {pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM)}
    begin = cluster.sim.now
    cluster.machines[VICTIM].kubelet.restart()
    run(cluster, 30.0)
    assert {pod["metadata"]["uid"] for pod in pods_on(cluster, VICTIM)} == before
    assert not history.since(begin, "pods")
    assert events(cluster, "Rebooted") == []


def test_stopped_kubelet_appears_as_a_power_cut_but_the_containers_run_on() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    machine.kubelet.stop()
    run(cluster, 65.0)
    assert _ready(cluster) == ("Unknown", "Kubelet stopped posting node status.")
    with pytest.raises(RuntimeError, match="not running"):
        machine.kubelet.metrics_text()
    machine.kubelet.start()
    run(cluster, 12.0)
    assert taints(node(cluster)) == set()
    for pod in pods_on(cluster, VICTIM):
        status = pod["status"]
        assert {item["type"]: item["status"] for item in status["conditions"]}["Ready"] == "True"
        assert status["containerStatuses"][0]["restartCount"] == 0


def test_containers_of_force_deleted_pods_run_until_their_kubelet_is_back() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    (pod,) = [p for p in pods_on(cluster, VICTIM) if p["metadata"]["labels"]["app"] == "db"]
    machine.kubelet.stop()
    cluster.delete_object("pods", "demo", pod["metadata"]["name"], 0)
    run(cluster, 5.0)
    assert pod["metadata"]["uid"] in machine.runtime.pods()
    machine.kubelet.start()
    run(cluster, 5.0)
    assert pod["metadata"]["uid"] not in machine.runtime.pods()


def test_pod_deleted_while_its_node_was_off_is_removed_after_the_boot() -> None:
    cluster, _ = started()
    _bare(cluster, "bare")
    run(cluster, 5.0)
    cluster.machines[VICTIM].power_off()
    cluster.delete_object("pods", "demo", "bare")
    run(cluster, 60.0)
    assert _pod(cluster, "bare")["status"]["phase"] == "Running"
    cluster.machines[VICTIM].power_on()
    run(cluster, 20.0)
    assert cluster.store.get("pods", "demo", "bare") is None


def test_grace_of_a_terminating_pod_does_not_change() -> None:
    """Recordings 16 and 27: the stop in progress is not shortened, and the bucket waits for its whole time."""
    cluster, _ = started(settle=20.0)
    _bare(cluster, "leaving", grace=120, ignores_sigterm="true")
    run(cluster, 5.0)
    cluster.delete_object("pods", "demo", "leaving")
    run(cluster, 5.0)
    cluster.machines[VICTIM].logind.emit_prepare_for_shutdown(True)
    run(cluster, 30.0)
    assert _pod(cluster, "leaving")["status"]["phase"] == "Running"
    start, end = _gauges(cluster)
    assert 19 <= end - start <= 23
    run(cluster, 90.0)
    assert cluster.store.get("pods", "demo", "leaving") is None


def test_restarted_kubelet_restarts_the_grace_period() -> None:
    """Recording 27: no SIGKILL at the end of the first grace; the new process stops with the whole grace."""
    cluster, _ = started(settle=20.0)
    _bare(cluster, "leaving", grace=40, ignores_sigterm="true")
    run(cluster, 5.0)
    cluster.delete_object("pods", "demo", "leaving")
    run(cluster, 30.0)
    cluster.machines[VICTIM].kubelet.restart()
    run(cluster, 30.0)
    assert _pod(cluster, "leaving")["status"]["phase"] == "Running"
    run(cluster, 15.0)
    assert cluster.store.get("pods", "demo", "leaving") is None


def test_power_off_during_the_boot() -> None:
    cluster, _ = started()
    machine = cluster.machines[VICTIM]
    machine.power_off()
    machine.power_on()
    run(cluster, 3.0)
    machine.power_off()
    run(cluster, 30.0)
    assert (_power(cluster), machine.is_reachable, machine.kubelet.is_running) == ("off", False, False)
    machine.power_on()
    machine.power_on()
    run(cluster, 20.0)
    assert (_power(cluster), machine.is_reachable, machine.kubelet.is_running) == ("on", True, True)
