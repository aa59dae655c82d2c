"""Defaults of Services."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(LabSpec(nodes=[NodeSpec(name="only")]))
    made.start()
    return made


def create(cluster: Cluster, name: str, **spec: Any) -> Any:
    return cluster.create_object("services", {"metadata": {"name": name}, "spec": spec})["spec"]


def test_defaults(cluster: Cluster) -> None:
    spec = create(cluster, "web", ports=[{"port": 80}, {"port": 53, "protocol": "UDP", "targetPort": "dns"}])
    assert (spec["type"], spec["clusterIP"], spec["clusterIPs"]) == ("ClusterIP", "10.96.0.2", ["10.96.0.2"])
    assert spec["ports"] == [
        {"port": 80, "protocol": "TCP", "targetPort": 80},
        {"port": 53, "protocol": "UDP", "targetPort": "dns"},
    ]


def test_addresses_are_unique_and_reused_after_deletion(cluster: Cluster) -> None:
    assert create(cluster, "own", clusterIP="10.96.0.3")["clusterIPs"] == ["10.96.0.3"]
    assert [create(cluster, name)["clusterIP"] for name in ("a", "b")] == ["10.96.0.2", "10.96.0.4"]
    cluster.delete_object("services", "default", "a")
    assert create(cluster, "c")["clusterIP"] == "10.96.0.2"


def test_headless(cluster: Cluster) -> None:
    assert create(cluster, "db", clusterIP="None")["clusterIPs"] == ["None"]


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer", "ExternalName", "x"])
def test_other_types_are_rejected(cluster: Cluster, kind: str) -> None:
    with pytest.raises(InvalidError, match="ClusterIP"):
        create(cluster, "web", type=kind)


def test_a_port_without_a_number_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(InvalidError, match=r"spec.ports\[1\].port: Required value"):
        create(cluster, "web", ports=[{"port": 80}, {"name": "x"}])
