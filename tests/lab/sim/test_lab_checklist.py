"""Mechanisms of facts 4, 5, 9 and 12 and vectors of facts 16 that no other test runs in a cluster."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.metrics import STATE_FILE
from chaos.lab.spec import ControllerSpec, LabSpec, NodeSpec, PriorityGrace, Taint
from tests.kit.simkit import (
    VICTIM,
    History,
    Object,
    disruption,
    node,
    pods_on,
    ready,
    run,
    spec,
    started,
    taints,
    workload,
)

_BUCKETS = [(0, 30), (1000, 20), (2_000_000_000, 10)]


def _taint(cluster: Cluster, *wanted: tuple[str, str]) -> None:
    """Replace the taints of the victim."""
    obj: Object = clone(node(cluster))
    obj["spec"]["taints"] = [{"key": key, "effect": effect} for key, effect in wanted]
    cluster.update_object("nodes", obj)


def _no_execute(history: History, since: float) -> dict[str, float]:
    """Time of the first NoExecute taint by node."""
    found: dict[str, float] = {}
    for when, _, obj in history.since(since, "nodes"):
        if any(effect == "NoExecute" for _, effect in taints(obj)):
            found.setdefault(obj["metadata"]["name"], when)
    return found


def test_vector_of_a_window_with_one_bucket_that_is_not_empty() -> None:
    """Facts 16: priority-0 pods that stop in 3 s end the window after 3 s and volumes, not after 60 s."""
    listed = [PriorityGrace(priority=p, shutdown_grace_period_seconds=s) for p, s in _BUCKETS]
    victim = NodeSpec(
        name=VICTIM,
        shutdown_grace_period="0s",
        shutdown_grace_period_critical_pods="0s",
        shutdown_grace_period_by_pod_priority=listed,
    )
    cluster, _ = started(LabSpec(nodes=[victim]), settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    cluster.create_object("deployments", workload("web", replicas=3, stops=3))
    run(cluster, 10.0)
    begin, machine = cluster.sim.now, cluster.machines[VICTIM]
    machine.logind.power_off()
    while [item["who"] for item in machine.logind.inhibitors()] == ["kubelet"]:
        run(cluster, 0.1)
        assert cluster.sim.now - begin < 60
    assert 3.0 <= cluster.sim.now - begin < 6.0


def test_vector_of_a_state_file_in_progress_after_the_reboot() -> None:
    cluster, _ = started(spec(), settle=20.0)
    machine = cluster.machines[VICTIM]
    machine.logind.power_off()
    run(cluster, 2.0)
    begun = cluster.sim.now
    machine.reset()
    assert '"endTime":"0001-01-01T00:00:00Z"' in machine.files[STATE_FILE]
    run(cluster, 25.0)
    text = machine.kubelet.metrics_text()
    lines = dict(line.split(" ") for line in text.splitlines() if line.startswith("kubelet_graceful_shutdown_"))
    start = float(lines["kubelet_graceful_shutdown_start_time_seconds"])
    assert begun - 3.0 <= start <= begun
    assert lines["kubelet_graceful_shutdown_end_time_seconds"] == "0"


def _zoned(*zones: str) -> LabSpec:
    nodes = [NodeSpec(name=f"n{index}", zone=zone) for index, zone in enumerate(zones)]
    return LabSpec(nodes=nodes, controllers=ControllerSpec(node_monitor_grace_period=20))


def test_vector_of_two_zones_with_one_in_full_disruption() -> None:
    """Nodes of a zone in full disruption are tainted, one every 10 s."""
    cluster, history = started(_zoned("a", "a", "b"), settle=10.0, recorded=False)
    begin = cluster.sim.now
    for name in ("n0", "n1"):
        cluster.machines[name].power_off()
    run(cluster, 80.0)
    found = _no_execute(history, begin)
    assert sorted(found) == ["n0", "n1"]
    assert 9.5 <= abs(found["n0"] - found["n1"]) <= 16.0


def test_vector_of_partial_disruption_in_a_small_zone() -> None:
    """Partial disruption of a small zone: no node is tainted, except one by chance. Facts 5.5."""
    cluster, history = started(_zoned("a", "a", "a", "a"), settle=10.0, recorded=False)
    begin = cluster.sim.now
    for name in ("n0", "n1", "n2"):
        cluster.machines[name].power_off()
    run(cluster, 200.0)
    assert len(_no_execute(history, begin)) <= 1


def test_excluded_nodes_do_not_count_in_their_zone() -> None:
    """Three of four are down, but one of them is excluded: two of three is Normal."""
    lab = _zoned("a", "a", "a", "a")
    lab.nodes[0].labels = {"node.kubernetes.io/exclude-disruption": "any"}
    cluster, history = started(lab, settle=10.0, recorded=False)
    begin = cluster.sim.now
    for name in ("n0", "n1", "n2"):
        cluster.machines[name].power_off()
    run(cluster, 200.0)
    assert sorted(_no_execute(history, begin)) == ["n0", "n1", "n2"]


def test_periods_and_jitter_of_leases_and_status() -> None:
    cluster, history = started(spec(), settle=5.0, recorded=False)
    begin = cluster.sim.now
    run(cluster, 400.0)
    renewals = [when for when, _, obj in history.since(begin, "leases") if obj["metadata"]["name"] == VICTIM]
    gaps = [later - earlier for earlier, later in pairwise(renewals)]
    assert len(gaps) > 35, "a kubelet renews its Lease every 10 s, and up to 4 % later"
    assert 10.0 <= min(gaps) < max(gaps) <= 10.42
    beats = {
        ready(obj)["lastHeartbeatTime"]
        for _, _, obj in history.since(begin, "nodes")
        if obj["metadata"]["name"] == VICTIM
    }
    assert 1 <= len(beats) <= 4  # every 5 min if nothing changes, the first one earlier or later


def test_node_registers_with_its_taints_once() -> None:
    lab = spec(workers=1)
    lab.nodes[1].taints = [Taint(key="example.com/own", value="x", effect="NoExecute")]
    cluster, _ = started(lab, settle=10.0, recorded=False)
    assert ("example.com/own", "NoExecute") in taints(node(cluster))
    _taint(cluster)
    cluster.machines[VICTIM].kubelet.restart()
    run(cluster, 20.0)
    assert taints(node(cluster)) == set()  # a restart does not restore them
    cluster.delete_object("nodes", "", VICTIM)
    cluster.machines[VICTIM].kubelet.restart()
    run(cluster, 20.0)
    assert taints(node(cluster)) == {("example.com/own", "NoExecute")}  # a new registration does


@pytest.mark.parametrize("added", [20.0, 200.0])
def test_countdown_survives_a_swap_of_taints_and_only_gets_shorter(added: float) -> None:
    cluster, history = started(spec(workers=1), settle=2.0, recorded=False)
    tolerations = [
        {"key": "first", "operator": "Exists", "tolerationSeconds": 100},
        {"key": "second", "operator": "Exists", "tolerationSeconds": added},
    ]
    body = {"containers": [{"name": "c"}], "nodeName": VICTIM, "tolerations": tolerations}
    cluster.create_object("pods", {"metadata": {"name": "bare"}, "spec": body})
    run(cluster, 3.0)
    begin = cluster.sim.now
    _taint(cluster, ("first", "NoExecute"))
    run(cluster, 50.0)
    _taint(cluster, ("second", "NoExecute"))
    run(cluster, 200.0)
    deleted = min(when for when, _, pod in history.since(begin, "pods") if "deletionTimestamp" in pod["metadata"])
    assert deleted == pytest.approx(50.0 if added == 20.0 else 100.0, abs=0.1)


def test_default_tolerations_follow_the_flags_of_the_api_server() -> None:
    flags = ControllerSpec(default_not_ready_toleration_seconds=7, default_unreachable_toleration_seconds=9)
    cluster, _ = started(spec(workers=1, controllers=flags), settle=1.0, recorded=False)
    pod = cluster.create_object("pods", {"metadata": {"name": "bare"}, "spec": {"containers": [{"name": "c"}]}})
    seconds = {item["key"].rpartition("/")[2]: item["tolerationSeconds"] for item in pod["spec"]["tolerations"]}
    assert seconds == {"not-ready": 7, "unreachable": 9}


def test_out_of_service_pod_gc_sets_failed_and_no_disruption_target() -> None:
    """Facts 6 and 9: the pods were already deleted by another client, so no controller has set the condition."""
    cluster, history = started(spec(workers=2), settle=10.0)
    machine = cluster.machines[VICTIM]
    machine.power_off()
    victims = [pod for pod in pods_on(cluster, VICTIM) if pod["metadata"]["labels"]["app"] == "tier-a"]
    for pod in victims:
        cluster.delete_object("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
    run(cluster, 60.0)
    begin = cluster.sim.now
    _taint(cluster, ("node.kubernetes.io/out-of-service", "NoSchedule"))
    run(cluster, 30.0)
    uids = {pod["metadata"]["uid"] for pod in victims}
    last = [
        pod for _, type_, pod in history.since(begin, "pods") if type_ == "DELETED" and pod["metadata"]["uid"] in uids
    ]
    assert len(last) == len(uids) > 0
    assert {(pod["status"]["phase"], pod["status"].get("reason"), disruption(pod)) for pod in last} == {
        ("Failed", None, "")
    }
