"""Every key of --what-if changes exactly what it names, or says why it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.cluster.snapshot.document import Contents, Object
from chaos.cluster.snapshot.whatif.change import ChangeError
from chaos.cluster.snapshot.whatif.changes import CHANGES, apply_changes, parse_change

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def owned(name: str, owner: str, **more: Any) -> Object:
    references = [{"uid": owner, "controller": True}]
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": f"uid-{name}", "ownerReferences": references},
        **more,
    }


def pod(name: str, owner: str, node: str) -> Object:
    tolerations = [{"key": key, "effect": "NoExecute", "tolerationSeconds": 300} for key in (NOT_READY, UNREACHABLE)]
    return owned(name, owner, spec={"nodeName": node, "terminationGracePeriodSeconds": 30, "tolerations": tolerations})


def node(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name, **labels}}, "spec": {}}


@pytest.fixture
def contents() -> Contents:
    def template() -> Object:
        return {"spec": {"terminationGracePeriodSeconds": 30}}

    web = {
        "metadata": {"namespace": "shop", "name": "web", "uid": "web"},
        "spec": {"replicas": 3, "template": template()},
    }
    attachment = {"metadata": {"name": "a"}, "spec": {"nodeName": "w2"}}
    return Contents(
        {"kubernetes": "v1.36.2"},
        {
            "nodes": [node("cp", **{"node-role.kubernetes.io/control-plane": ""}), node("w1"), node("w2")],
            "deployments": [web],
            "replicasets": [owned("web-1", "web", spec={"template": template()})],
            "pods": [pod("web-1-a", "uid-web-1", "w1"), pod("web-1-b", "uid-web-1", "w2"), pod("other", "x", "w2")],
            "volumeattachments": [attachment],
        },
        {"w2": {"shutdownGracePeriodByPodPriority": [{}]}},
        {"w2": {"systemd": 252}},
    )


def change(contents: Contents, *texts: str) -> list[str]:
    return apply_changes(contents, [parse_change(text) for text in texts])


def graces(contents: Contents) -> list[int]:
    return [item["spec"]["terminationGracePeriodSeconds"] for item in contents.of("pods")]


def test_grace_is_that_of_templates_and_pods_of_the_workload_only(contents: Contents) -> None:
    assert change(contents, "grace=shop/web:5") == ["pods of shop/web have 5 s to end, instead of 30 s"]
    assert graces(contents) == [5, 5, 30]
    for plural in ("deployments", "replicasets"):  # alike, so that the Deployment finds its set
        assert contents.of(plural)[0]["spec"]["template"]["spec"] == {"terminationGracePeriodSeconds": 5}


def test_toleration_seconds_of_a_workload_and_of_all(contents: Contents) -> None:
    change(contents, "tolerationSeconds=shop/web:30", "tolerationSeconds=60")
    found = [[item["tolerationSeconds"] for item in pod["spec"]["tolerations"]] for pod in contents.of("pods")]
    assert found == [[30, 30], [30, 30], [60, 60]]
    flags = {"defaultNotReadyTolerationSeconds": 60, "defaultUnreachableTolerationSeconds": 60}
    assert contents.header["apiServer"] == flags


def test_replicas(contents: Contents) -> None:
    assert change(contents, "replicas=shop/web:5") == ["shop/web has 5 replicas, instead of 3"]
    assert contents.of("deployments")[0]["spec"]["replicas"] == 5


@pytest.mark.parametrize("text", ["without=w2", "nodes=-1"])
def test_a_node_fewer(contents: Contents, text: str) -> None:
    (sentence,) = change(contents, text)
    assert sentence.startswith("w2 ")
    assert "2 pods are placed again" in sentence
    assert [item["metadata"]["name"] for item in contents.of("nodes")] == ["cp", "w1"]
    assert [item["metadata"]["name"] for item in contents.of("pods")] == ["web-1-a"]
    assert (contents.of("volumeattachments"), contents.configs, contents.hosts) == ([], {}, {})


def test_more_nodes_are_as_one_that_is_there(contents: Contents) -> None:
    change(contents, "nodes=+2:w2")
    assert [item["metadata"]["name"] for item in contents.of("nodes")][3:] == ["w2-more-1", "w2-more-2"]
    added = contents.of("nodes")[3]
    assert added["metadata"]["labels"]["kubernetes.io/hostname"] == "w2-more-1"
    assert contents.of("nodes")[2]["metadata"]["labels"]["kubernetes.io/hostname"] == "w2"
    assert contents.hosts["w2-more-2"] == {"systemd": 252}


def test_settings_of_hosts_kubelets_and_the_control_plane(contents: Contents) -> None:
    change(contents, "systemd=257", "kubernetes=1.33", "shutdownGracePeriod=90", "nodeMonitorGracePeriod=20s")
    change(contents, "disableForceDetachOnTimeout=true", "nodeEvictionRate=0.5", "largeClusterSizeThreshold=10")
    assert {host["systemd"] for host in contents.hosts.values()} == {257}
    assert contents.header["kubernetes"] == "v1.33"
    assert contents.configs["w2"] == {"shutdownGracePeriod": "90s"}
    assert contents.header["controllerManager"] == {
        "nodeMonitorGracePeriod": "20s",
        "disableForceDetachOnTimeout": True,
        "nodeEvictionRate": 0.5,
        "largeClusterSizeThreshold": 10,
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("grase=shop/web:5", "unknown change 'grase=shop/web:5'"),
        ("grace", "unknown change 'grace'"),
        ("grace=web:5", "not NAMESPACE/NAME:SECONDS"),
        ("grace=shop/web:soon", "not a duration: 'soon'"),
        ("grace=shop/web:1.5", "not a whole number of seconds"),
        ("grace=shop/wob:5", "the snapshot has no workload 'shop/wob'"),
        ("replicas=shop/web:-1", "not a number of replicas"),
        ("replicas=shop/web-1:2", "the snapshot has no workload 'shop/web-1'"),
        ("without=w9", "the snapshot has no node 'w9'"),
        ("nodes=-2", "has only 2 workers"),
        ("nodes=0", "not a change of the number of nodes"),
        ("nodes=-1:w1", "not a change of the number of nodes"),
        ("systemd=250", "not a version of systemd"),
        ("kubernetes=latest", "not a version of Kubernetes"),
        ("nodeMonitorGracePeriod=0", "the period is 0"),
        ("nodeEvictionRate=-1", "not a number"),
        ("largeClusterSizeThreshold=1.5", "not a whole number"),
        ("disableForceDetachOnTimeout=yes", "neither true nor false"),
    ],
)
def test_what_cannot_be_is_said(contents: Contents, text: str, why: str) -> None:
    with pytest.raises(ChangeError, match=r"\w") as caught:
        change(contents, text)
    assert why in str(caught.value)
    assert caught.value.hint


def test_subjects_are_what_values_may_begin_with(contents: Contents) -> None:
    assert CHANGES["grace"].subjects(contents) == ["shop/web"]
    assert CHANGES["without"].subjects(contents) == ["cp", "w1", "w2"]
    assert CHANGES["systemd"].subjects(contents) == []
