"""Scheduler, workload controllers, budgets, deletion of namespaces."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects import name_of
from chaos.lab.spec import LabSpec, NodeSpec, Taint
from tests.kit.simkit import VICTIM, Object, events, node, pods_on, run, spec, spread, started, taints, workload


def _of(cluster: Cluster, app: str) -> list[Object]:
    return [p for p in cluster.store.list("pods") if p["metadata"].get("labels", {}).get("app") == app]


def _get(cluster: Cluster, plural: str, name: str, namespace: str = "demo") -> Object:
    found = cluster.store.get(plural, namespace, name)
    assert found is not None
    return found


def _demo(lab: LabSpec | None = None) -> Cluster:
    cluster, _ = started(lab, settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    return cluster


def _scale(cluster: Cluster, plural: str, name: str, replicas: int) -> None:
    obj: Object = clone(_get(cluster, plural, name))
    obj["spec"]["replicas"] = replicas
    cluster.update_object(plural, obj)


def _cordon(cluster: Cluster, name: str, unschedulable: bool = True) -> None:
    obj: Object = clone(node(cluster, name))
    obj["spec"]["unschedulable"] = unschedulable
    cluster.update_object("nodes", obj)


def test_recorded_workload_is_up_and_spread() -> None:
    cluster, _ = started()
    phases = Counter(pod["status"]["phase"] for pod in cluster.store.list("pods"))
    assert phases == {"Running": 6 + 3 + 9 + 4}
    assert Counter(pod["spec"]["nodeName"] for pod in _of(cluster, "web")) == Counter(
        dict.fromkeys(("ra-worker", "ra-worker2", "ra-worker3"), 2)
    )
    assert len({pod["spec"]["nodeName"] for pod in _of(cluster, "db")}) == 3
    assert len({pod["spec"]["nodeName"] for pod in _of(cluster, "agent")}) == 4


def test_status_counts_of_the_workloads() -> None:
    cluster, _ = started()
    web = _get(cluster, "deployments", "web")["status"]
    assert (web["replicas"], web["readyReplicas"], web["availableReplicas"], web["updatedReplicas"]) == (6, 6, 6, 6)
    assert {item["type"]: item["status"] for item in web["conditions"]} == {"Available": "True", "Progressing": "True"}
    assert _get(cluster, "statefulsets", "db")["status"]["readyReplicas"] == 3
    agent = _get(cluster, "daemonsets", "agent", "kube-system")["status"]
    assert (agent["desiredNumberScheduled"], agent["numberReady"], agent["numberAvailable"]) == (4, 4, 4)
    budget = _get(cluster, "poddisruptionbudgets", "web")["status"]
    assert (budget["currentHealthy"], budget["desiredHealthy"], budget["disruptionsAllowed"]) == (6, 5, 1)


def test_deployment_pods_carry_the_hash_of_their_set() -> None:
    cluster = _demo()
    cluster.create_object("deployments", workload("web", replicas=2))
    run(cluster, 3.0)
    (replica_set,) = cluster.store.list("replicasets")
    digest = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{digest}"
    for pod in _of(cluster, "web"):
        assert pod["metadata"]["name"].startswith(f"web-{digest}-")
        assert pod["metadata"]["labels"]["pod-template-hash"] == digest


def test_replicaset_replaces_on_deletion_not_on_removal() -> None:
    cluster = _demo()
    cluster.create_object("deployments", workload("web", replicas=2, stops=10))
    run(cluster, 3.0)
    first = _of(cluster, "web")[0]["metadata"]["name"]
    cluster.delete_object("pods", "demo", first)
    run(cluster, 1.0)
    assert len(_of(cluster, "web")) == 3
    assert _get(cluster, "deployments", "web")["status"]["terminatingReplicas"] == 1
    run(cluster, 12.0)
    assert len(_of(cluster, "web")) == 2
    assert first not in {pod["metadata"]["name"] for pod in _of(cluster, "web")}


def test_deployment_scales_up_and_down() -> None:
    cluster = _demo()
    cluster.create_object("deployments", workload("web", replicas=2))
    run(cluster, 3.0)
    for replicas in (5, 1, 0):
        _scale(cluster, "deployments", "web", replicas)
        run(cluster, 5.0)
        assert len(_of(cluster, "web")) == replicas
    assert "readyReplicas" not in _get(cluster, "deployments", "web")["status"]


def test_deleting_a_deployment_takes_its_set_and_pods() -> None:
    cluster = _demo()
    cluster.create_object("deployments", workload("web", replicas=3))
    run(cluster, 3.0)
    cluster.delete_object("deployments", "demo", "web")
    run(cluster, 5.0)
    assert (list(cluster.store.list("replicasets")), _of(cluster, "web")) == ([], [])


def test_ordered_statefulset_starts_one_after_the_other() -> None:
    cluster = _demo()
    cluster.create_object("statefulsets", workload("db", replicas=3))
    run(cluster, 0.5)
    assert [pod["metadata"]["name"] for pod in _of(cluster, "db")] == ["db-0"]
    run(cluster, 10.0)
    assert [pod["metadata"]["name"] for pod in _of(cluster, "db")] == ["db-0", "db-1", "db-2"]
    created = [pod["metadata"]["creationTimestamp"] for pod in _of(cluster, "db")]
    assert created == sorted(created)


def test_ordered_statefulset_stops_at_a_pod_that_is_not_ready() -> None:
    cluster = _demo()
    cluster.create_object("statefulsets", workload("db", replicas=2, stops=20))
    run(cluster, 6.0)
    cluster.delete_object("pods", "demo", "db-0", 25)
    cluster.delete_object("pods", "demo", "db-1", 0)
    run(cluster, 10.0)
    assert [pod["metadata"]["name"] for pod in _of(cluster, "db")] == ["db-0"]
    run(cluster, 20.0)
    assert [pod["metadata"]["name"] for pod in _of(cluster, "db")] == ["db-0", "db-1"]


def test_parallel_statefulset_starts_all_and_scales_down_from_the_top() -> None:
    cluster = _demo()
    cluster.create_object("statefulsets", workload("db", replicas=3, podManagementPolicy="Parallel"))
    run(cluster, 0.5)
    assert len(_of(cluster, "db")) == 3
    _scale(cluster, "statefulsets", "db", 1)
    run(cluster, 5.0)
    assert [pod["metadata"]["name"] for pod in _of(cluster, "db")] == ["db-0"]


def test_unsatisfiable_spread_leaves_the_pod_pending_with_a_reason() -> None:
    cluster = _demo()
    pod = {"topologySpreadConstraints": spread("db", "DoNotSchedule")}
    cluster.create_object("statefulsets", workload("db", replicas=4, podManagementPolicy="Parallel", pod=pod))
    run(cluster, 3.0)
    (pending,) = [pod for pod in _of(cluster, "db") if "nodeName" not in pod["spec"]]
    (item,) = pending["status"]["conditions"]
    text = (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), "
        "3 node(s) didn't match pod topology spread constraints."
    )
    assert (item["type"], item["status"], item["reason"], item["message"]) == (
        "PodScheduled", "False", "Unschedulable", text
    )  # fmt: skip
    assert events(cluster, "FailedScheduling")


def test_pods_that_exceed_free_resources_stay_pending() -> None:
    cluster = _demo()
    container = {"name": "c", "resources": {"requests": {"cpu": "900m", "memory": "64Mi"}}}
    cluster.create_object("deployments", workload("big", replicas=7, pod={"containers": [container]}))
    run(cluster, 3.0)
    assert Counter(pod["spec"].get("nodeName", "") for pod in _of(cluster, "big")) == {
        "ra-worker": 2,
        "ra-worker2": 2,
        "ra-worker3": 2,
        "": 1,
    }
    (event,) = events(cluster, "FailedScheduling")
    assert event["message"] == "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu."


def test_cordon_taints_and_uncordon_admits_pending_pods() -> None:
    cluster = _demo(spec(workers=1))
    _cordon(cluster, VICTIM)
    run(cluster, 1.0)
    assert taints(node(cluster)) == {("unschedulable", "NoSchedule")}
    cluster.create_object("deployments", workload("web", replicas=1))
    run(cluster, 2.0)
    assert not pods_on(cluster, VICTIM)
    _cordon(cluster, VICTIM, False)
    run(cluster, 3.0)
    assert taints(node(cluster)) == set()
    assert [pod["status"]["phase"] for pod in pods_on(cluster, VICTIM)] == ["Running"]


def test_node_selector_affinity_and_zone_spread() -> None:
    nodes = [NodeSpec(name=f"n{i}", zone="ab"[i % 2], labels={"disk": "ssd" if i < 2 else "hdd"}) for i in range(4)]
    cluster = _demo(LabSpec(nodes=nodes))
    cluster.create_object("deployments", workload("fast", replicas=4, pod={"nodeSelector": {"disk": "ssd"}}))
    term: dict[str, Any] = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    slow = {"affinity": {"nodeAffinity": required}}
    cluster.create_object("deployments", workload("slow", replicas=4, pod=slow))
    constraint = {**spread("zoned", "DoNotSchedule")[0], "topologyKey": "topology.kubernetes.io/zone"}
    cluster.create_object("deployments", workload("zoned", replicas=5, pod={"topologySpreadConstraints": [constraint]}))
    run(cluster, 3.0)
    assert {pod["spec"]["nodeName"] for pod in _of(cluster, "fast")} == {"n0", "n1"}
    assert {pod["spec"]["nodeName"] for pod in _of(cluster, "slow")} == {"n2", "n3"}
    zones = Counter("ab"[int(pod["spec"]["nodeName"][1]) % 2] for pod in _of(cluster, "zoned"))
    assert sorted(zones.values()) == [2, 3]


def test_daemonset_follows_taints_and_labels() -> None:
    nodes = [NodeSpec(name="n0"), NodeSpec(name="n1", taints=[Taint(key="example.com/own", effect="NoSchedule")])]
    cluster = _demo(LabSpec(nodes=nodes))
    cluster.create_object("daemonsets", workload("agent"))
    run(cluster, 3.0)
    assert [pod["spec"]["nodeName"] for pod in _of(cluster, "agent")] == ["n0"]
    obj: Object = clone(node(cluster, "n1"))
    del obj["spec"]["taints"]
    cluster.update_object("nodes", obj)
    run(cluster, 3.0)
    assert sorted(pod["spec"]["nodeName"] for pod in _of(cluster, "agent")) == ["n0", "n1"]


def test_rejected_daemon_pods_are_retried_with_a_back_off_that_doubles() -> None:
    cluster, history = started(settle=20.0)
    begin = cluster.sim.now
    logind = cluster.machines[VICTIM].logind
    logind.emit_prepare_for_shutdown(True)
    run(cluster, 60.0)
    gone = [
        when
        for when, type_, pod in history.since(begin, "pods")
        if type_ == "DELETED" and pod["status"].get("reason") == "NodeShutdown" and name_of(pod).startswith("agent")
    ]
    waits = [round(later - earlier) for earlier, later in pairwise(gone)]
    assert waits[:4] == [1, 2, 4, 8]


def test_user_taint_no_execute_evicts_at_once_with_the_reason() -> None:
    cluster = _demo(spec(workers=2))
    cluster.create_object("deployments", workload("web", replicas=2, stops=5))
    run(cluster, 3.0)
    victims = [pod["metadata"]["name"] for pod in pods_on(cluster, VICTIM)]
    obj: Object = clone(node(cluster))
    obj["spec"]["taints"] = [{"key": "example.com/out", "effect": "NoExecute"}]
    cluster.update_object("nodes", obj)
    run(cluster, 1.0)
    for name in victims:
        pod = _get(cluster, "pods", name)
        (target,) = [item for item in pod["status"]["conditions"] if item["type"] == "DisruptionTarget"]
        assert (target["reason"], target["message"]) == (
            "DeletionByTaintManager",
            "Taint manager: deleting due to NoExecute taint",
        )
        assert "deletionTimestamp" in pod["metadata"]
    run(cluster, 10.0)
    assert victims
    assert {pod["spec"]["nodeName"] for pod in _of(cluster, "web")} == {"ra-worker2"}


def test_namespace_is_removed_after_its_last_pod() -> None:
    cluster, _ = started()
    cluster.delete_object("namespaces", "", "demo")
    run(cluster, 2.0)
    assert _get(cluster, "namespaces", "demo", "")["status"]["phase"] == "Terminating"
    run(cluster, 20.0)
    assert cluster.store.get("namespaces", "", "demo") is None
    left = [obj for plural in cluster.store.plurals() for obj in cluster.store.list(plural, "demo")]
    assert left == []


def test_namespace_with_a_pod_on_a_dead_node_stays() -> None:
    cluster, _ = started()
    cluster.machines[VICTIM].power_off()
    cluster.delete_object("namespaces", "", "demo")
    run(cluster, 120.0)
    assert _get(cluster, "namespaces", "demo", "")["status"]["phase"] == "Terminating"
    cluster.machines[VICTIM].power_on()
    run(cluster, 20.0)
    assert cluster.store.get("namespaces", "", "demo") is None


def test_deleted_pod_runs_until_its_grace_is_over() -> None:
    cluster = _demo(spec(workers=1))
    annotations = {"lab.nodefall.dev/ignores-sigterm": "true"}
    cluster.create_object("statefulsets", workload("db", replicas=1, grace=7, annotations=annotations))
    run(cluster, 4.0)
    uid = _get(cluster, "pods", "db-0")["metadata"]["uid"]
    cluster.delete_object("pods", "demo", "db-0")
    run(cluster, 6.5)
    assert _get(cluster, "pods", "db-0")["status"]["phase"] == "Running"
    run(cluster, 3.0)
    assert _get(cluster, "pods", "db-0")["metadata"]["uid"] != uid


def test_pre_stop_sleep_runs_within_the_grace() -> None:
    cluster, history = started(spec(workers=1), settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    container = {"name": "c", "lifecycle": {"preStop": {"sleep": {"seconds": 4}}}}
    cluster.create_object("deployments", workload("slow", replicas=1, pod={"containers": [container]}))
    run(cluster, 4.0)
    begin = cluster.sim.now
    (pod,) = _of(cluster, "slow")
    cluster.delete_object("pods", "demo", pod["metadata"]["name"])
    run(cluster, 10.0)
    ended = [when for when, _, obj in history.since(begin, "pods") if obj["status"]["phase"] == "Succeeded"]
    assert 4.0 < min(ended) < 5.0


def test_user_untaint_stops_the_countdown() -> None:
    cluster = _demo(spec(workers=1))
    toleration = {"key": "example.com/out", "operator": "Exists", "tolerationSeconds": 10}
    cluster.create_object("deployments", workload("web", replicas=1, pod={"tolerations": [toleration]}))
    run(cluster, 3.0)
    obj: Object = clone(node(cluster))
    obj["spec"]["taints"] = [{"key": "example.com/out", "effect": "NoExecute"}]
    cluster.update_object("nodes", obj)
    run(cluster, 5.0)
    obj = clone(node(cluster))
    del obj["spec"]["taints"]
    cluster.update_object("nodes", obj)
    run(cluster, 75.0)
    assert not any("deletionTimestamp" in pod["metadata"] for pod in _of(cluster, "web"))


def test_a_namespace_deleted_right_after_its_workload_was_created_ends() -> None:
    """Controllers that come late get an error on create, and do not crash."""
    cluster = _demo()
    for plural in ("deployments", "statefulsets", "daemonsets"):
        cluster.create_object(plural, workload(plural, replicas=2) if plural != "daemonsets" else workload(plural))
    run(cluster, 0.001)
    cluster.delete_object("namespaces", "", "demo")
    run(cluster, 60)
    assert cluster.store.get("namespaces", "", "demo") is None
