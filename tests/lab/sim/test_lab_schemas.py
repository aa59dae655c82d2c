"""Every object that the lab serves is valid at any time by Kubernetes' schemas (kubernetes-validate)."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import jsonschema
import pytest
import referencing

from chaos.lab.cluster import Cluster
from chaos.lab.http import resources
from chaos.lab.http.errors import ApiError
from chaos.lab.http.resources import RESOURCES
from chaos.lab.node.machine import Machine
from chaos.lab.spec import LabSpec, NodeSpec
from tests.kit.simkit import STORED_OBJECTS, VICTIM, apply_recorded_workload, workload

SCHEMAS = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema" / "v1.36.0-local-strict"
MOMENTS = (1, 9, 50, 60, 240, 300)  # seconds between inspections
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@cache
def definitions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / "_definitions.json").read_text())
    return found


@cache
def validator(kind: str, api_version: str) -> Any:
    """Validator of kubernetes_validate.validate, which would read all its files for each object."""
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    types = definitions()["$defs"].items()
    (name,) = [name for name, schema in types if wanted in schema.get("x-kubernetes-group-version-kind", [])]
    registry = referencing.Resource.from_contents(definitions()) @ referencing.Registry()
    return jsonschema.Draft202012Validator({"$ref": f"{definitions()['$id']}#/$defs/{name}"}, registry=registry)


def faults(shown: dict[str, Any]) -> set[tuple[str, str]]:
    """Differences between the object and the schema of its kind."""
    found = validator(shown["kind"], shown["apiVersion"]).iter_errors(shown)
    return {(f"{shown['kind']}: {error.json_path}", error.message) for error in found}


class Inspector:
    """Checks objects that it has not seen at their version; ``kinds``: what there was so far."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._version = 0
        self.kinds: set[str] = set()

    def inspect(self) -> None:
        for resource in RESOURCES.values():
            for obj in self._cluster.store.list(resource.plural):
                if int(obj["metadata"]["resourceVersion"]) > self._version:
                    assert faults(resource.show(obj)) == set()
                    self.kinds.add(resource.kind)
        self._version = self._cluster.store.version


def busy_cluster() -> Cluster:
    """Cluster with every kind that a client can create."""
    names = ("cp", VICTIM, "other", "third")
    nodes = [NodeSpec(name=name, role="control-plane" if name == "cp" else "worker", zone=name[0]) for name in names]
    cluster = Cluster(LabSpec(nodes=nodes, seed=3))
    cluster.start()
    apply_recorded_workload(cluster)
    cluster.create_object("daemonsets", workload("agent"))
    mounts = [{"name": "c", "image": "busybox", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]
    disk = workload("disk", replicas=2, volumeClaimTemplates=[CLAIM], pod={"containers": mounts})
    cluster.create_object("statefulsets", disk)
    job = workload("once", stops=5, pod={"restartPolicy": "Never"})
    del job["spec"]["selector"]
    cluster.create_object("jobs", job)
    crashing = workload("crashing", annotations={"lab.nodefall.dev/runs-for": "2"})
    cluster.create_object("deployments", crashing)
    ports = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    cluster.create_object("services", {"metadata": {"name": "web", "namespace": "demo"}, "spec": ports})
    for plural in ("configmaps", "secrets", "serviceaccounts"):
        cluster.create_object(plural, {"metadata": {"name": "some", "namespace": "demo"}})
    cluster.create_object("storageclasses", {"metadata": {"name": "fast"}, "provisioner": "csi.example.com"})
    cluster.create_object("csidrivers", {"metadata": {"name": "csi.example.com"}, "spec": {"attachRequired": False}})
    for plural, body in STORED_OBJECTS.items():
        cluster.create_object(plural, {"metadata": {"name": "some", "namespace": "demo"}, **body})
    return cluster


@pytest.mark.parametrize(
    "operation",
    [Machine.power_off, Machine.reset, Machine.partition, lambda machine: machine.shut_down("poweroff")],
    ids=["power-off", "reset", "partition", "shutdown"],
)
def test_objects_served(operation: Callable[[Machine], None]) -> None:
    cluster = busy_cluster()
    inspector = Inspector(cluster)
    inspector.inspect()
    for seconds in (0.5, 2.5, 57):
        cluster.sim.run_until(cluster.sim.now + seconds)
        inspector.inspect()
    operation(cluster.machines[VICTIM])
    cluster.delete_object("pods", "demo", "db-0")
    for seconds in MOMENTS:
        cluster.sim.run_until(cluster.sim.now + seconds)
        inspector.inspect()
    assert inspector.kinds == {resource.kind for resource in RESOURCES.values()}


def test_an_invalid_object_is_detected() -> None:
    spec = {"containers": [{"image": 1}], "colour": ""}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": spec}
    assert {place for place, _ in faults(pod)} == {
        "Pod: $.spec",
        "Pod: $.spec.containers[0]",
        "Pod: $.spec.containers[0].image",
    }


def test_discovery_documents() -> None:
    for group_version in resources.group_versions():
        assert faults(resources.resource_list(group_version) or {}) == set()
    assert faults(resources.group_list()) == set()


@pytest.mark.parametrize("details", [{}, {"name": "x", "kind": "pods", "causes": [{"reason": "r", "message": "m"}]}])
def test_rejected_requests(details: dict[str, Any]) -> None:
    assert faults(ApiError(404, "no", details=details).status()) == set()
