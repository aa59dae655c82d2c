"""Preemption by the scheduler and PreferNoSchedule. Facts 9; kube-scheduler's DefaultPreemption."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from tests.kit.simkit import VICTIM, History, Object, disruption, events, node, run, spec, spread, started, workload


def _demo(workers: int = 1) -> tuple[Cluster, History]:
    cluster, history = started(spec(workers=workers), settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    for name, value in (("low", 10), ("middle", 100), ("high", 1000)):
        cluster.create_object("priorityclasses", {"metadata": {"name": name}, "value": value})
    never = {"metadata": {"name": "polite"}, "value": 1000, "preemptionPolicy": "Never"}
    cluster.create_object("priorityclasses", never)
    return cluster, history


def _run(cluster: Cluster, name: str, replicas: int, priority: str, cpu: str, **more: Any) -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    pod = {"containers": [container], "priorityClassName": priority, **more}
    cluster.create_object("deployments", workload(name, replicas=replicas, pod=pod, stops=4))
    run(cluster, 2.0)


def _of(cluster: Cluster, app: str) -> list[Object]:
    return [p for p in cluster.store.list("pods") if p["metadata"].get("labels", {}).get("app") == app]


def _victims(cluster: Cluster) -> list[str]:
    pods = cluster.store.list("pods", "demo")
    return sorted(p["metadata"]["labels"]["app"] for p in pods if disruption(p) == "PreemptionByScheduler")


def test_victims_get_reason_and_grace_and_the_pod_is_nominated() -> None:
    cluster, _ = _demo()
    _run(cluster, "small", 2, "low", "900m")
    _run(cluster, "big", 1, "high", "1000m")
    (victim,) = [pod for pod in _of(cluster, "small") if disruption(pod)]
    (target,) = [item for item in victim["status"]["conditions"] if item["type"] == "DisruptionTarget"]
    assert (target["reason"], target["message"]) == (
        "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"
    )  # fmt: skip
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 30
    (big,) = _of(cluster, "big")
    assert big["status"]["nominatedNodeName"] == VICTIM
    (event,) = events(cluster, "Preempted")
    assert event["message"] == f"Preempted by pod {big['metadata']['uid']} on node {VICTIM}"
    run(cluster, 10.0)
    (big,) = _of(cluster, "big")
    assert (big["spec"]["nodeName"], big["status"]["phase"]) == (VICTIM, "Running")
    assert "nominatedNodeName" not in big["status"]
    assert sorted(pod["status"]["phase"] for pod in _of(cluster, "small")) == ["Pending", "Running"]
    assert len(events(cluster, "Preempted")) == 1


@pytest.mark.parametrize("priority", ["low", "polite"])
def test_equal_priority_and_policy_never_do_not_preempt(priority: str) -> None:
    cluster, _ = _demo()
    _run(cluster, "small", 2, "low", "900m")
    _run(cluster, "big", 1, priority, "1000m")
    run(cluster, 5.0)
    assert _victims(cluster) == []
    assert "nodeName" not in _of(cluster, "big")[0]["spec"]


def test_no_victims_if_preemption_does_not_help() -> None:
    cluster, _ = _demo()
    _run(cluster, "small", 2, "low", "900m")
    _run(cluster, "lost", 1, "high", "100m", nodeSelector={"no": "where"})
    _run(cluster, "huge", 1, "high", "5000m")
    assert _victims(cluster) == []


def test_lowest_priority_is_preempted_first() -> None:
    cluster, _ = _demo()
    _run(cluster, "one", 1, "low", "900m")
    _run(cluster, "two", 1, "middle", "900m")
    _run(cluster, "big", 1, "high", "1000m")
    assert _victims(cluster) == ["one"]


def test_node_with_the_lower_victim_is_chosen() -> None:
    cluster, _ = _demo(workers=2)
    _run(cluster, "two", 1, "middle", "1900m", nodeSelector={"kubernetes.io/hostname": VICTIM})
    _run(cluster, "one", 1, "low", "1900m")
    _run(cluster, "big", 1, "high", "1000m")
    assert _victims(cluster) == ["one"]


@pytest.mark.parametrize(
    ("budgets", "expected"), [(["one"], ["two"]), (["two"], ["one"]), (["one", "two"], ["two"]), ([], ["two"])]
)
def test_budget_is_violated_only_if_necessary(budgets: list[str], expected: list[str]) -> None:
    cluster, _ = _demo()
    _run(cluster, "one", 1, "low", "900m")
    _run(cluster, "two", 1, "low", "900m")
    for name in budgets:
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
        cluster.create_object("poddisruptionbudgets", {"metadata": {"name": name, "namespace": "demo"}, "spec": budget})
    run(cluster, 1.0)
    _run(cluster, "big", 1, "high", "1000m")
    assert _victims(cluster) == expected


@pytest.mark.parametrize("tolerated", [False, True])
def test_prefer_no_schedule_is_only_a_preference(tolerated: bool) -> None:
    cluster, _ = _demo(workers=2)
    obj: Object = clone(node(cluster))
    obj["spec"]["taints"] = [{"key": "example.com/rather-not", "effect": "PreferNoSchedule"}]
    cluster.update_object("nodes", obj)
    tolerations = {"tolerations": [{"key": "example.com/rather-not", "operator": "Exists"}]} if tolerated else {}
    _run(cluster, "web", 4, "low", "900m", **tolerations)
    run(cluster, 2.0)
    names = [pod["spec"].get("nodeName") for pod in _of(cluster, "web")]
    assert sorted(names) == [VICTIM, VICTIM, "ra-worker2", "ra-worker2"]  # free resources decide
    cluster.delete_object("deployments", "demo", "web")
    run(cluster, 10.0)
    _run(cluster, "few", 2, "low", "900m", **tolerations)
    assert {pod["spec"]["nodeName"] for pod in _of(cluster, "few")} == (
        {VICTIM, "ra-worker2"} if tolerated else {"ra-worker2"}
    )


def test_resources_of_a_nominated_pod_are_reserved() -> None:
    """The replacement of the victim does not use the resources that the victim freed."""
    cluster, _ = _demo(workers=2)
    _run(cluster, "web", 2, "low", "500m", topologySpreadConstraints=spread("web", "ScheduleAnyway"))
    _run(cluster, "big", 1, "high", "1600m")
    run(cluster, 15.0)
    assert len(events(cluster, "Preempted")) == 1
    (big,) = _of(cluster, "big")
    web = [pod["spec"]["nodeName"] for pod in _of(cluster, "web")]
    assert len(web) == 2
    assert big["spec"]["nodeName"] not in web
