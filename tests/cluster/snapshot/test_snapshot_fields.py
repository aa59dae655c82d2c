"""Every field of the API of a kind is allowed or left out by name, so that only new ones are unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster.snapshot.kinds import KINDS
from chaos.cluster.snapshot.projection import DROP, Projector, Tree, plain_conversions

ROOT = Path(__file__).parents[3]
SCHEMAS: dict[str, Any] = json.loads((ROOT / "chaos/lab/apiserver/http/schemas.json").read_text(encoding="utf-8"))
PREFIX = "#/components/schemas/"
NAMES = {plural: plural for plural in KINDS} | {
    "persistentvolumes": "PersistentVolume", "priorityclasses": "PriorityClass", "storageclasses": "StorageClass",
    "csidrivers": "CSIDriver", "persistentvolumeclaims": "PersistentVolumeClaim",
    "volumeattachments": "VolumeAttachment", "poddisruptionbudgets": "PodDisruptionBudget", "deployments": "Deployment",
    "replicasets": "ReplicaSet", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "cronjobs": "CronJob",
    "controllerrevisions": "ControllerRevision", "jobs": "Job", "pods": "Pod", "nodes": "Node", "services": "Service",
    "namespaces": "Namespace",
}  # fmt: skip


def schema_of(plural: str) -> dict[str, Any]:
    """Schema of a kind, by its name: it is the only one that ends so."""
    found = [SCHEMAS[name] for name in SCHEMAS if name.startswith("io.k8s.api.") and name.endswith(f".{NAMES[plural]}")]
    assert len(found) == 1
    return dict(found[0])


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    if "allOf" in schema:
        return resolve(schema["allOf"][0])
    if "$ref" in schema:
        return resolve(SCHEMAS[schema["$ref"].removeprefix(PREFIX)])
    return resolve(schema["items"]) if schema.get("type") == "array" else schema


def unlisted(tree: Tree, schema: dict[str, Any], path: str) -> list[str]:
    found = []
    for name, below in resolve(schema).get("properties", {}).items():
        if name not in tree:
            found.append(f"{path}.{name}")
        elif isinstance(tree[name], dict):
            found += unlisted(tree[name], below, f"{path}.{name}")
    return found


def unserved(tree: Tree, schema: dict[str, Any], path: str) -> list[str]:
    """Fields of a tree that the API does not have."""
    properties = resolve(schema).get("properties", {})
    found = [f"{path}.{name}" for name in tree if name not in properties and tree[name] is not DROP]
    for name, below in tree.items():
        if isinstance(below, dict) and name in properties:
            found += unserved(below, properties[name], f"{path}.{name}")
    return found


@pytest.mark.parametrize("plural", KINDS)
def test_every_field_of_the_api_is_in_the_tree(plural: str) -> None:
    assert unlisted(KINDS[plural].tree, schema_of(plural), plural) == []


# One tree is for several kinds of workloads, so each has fields of others.
@pytest.mark.parametrize("plural", [plural for plural in KINDS if KINDS[plural].prefix != "/apis/apps/v1"])
def test_every_field_of_a_tree_is_in_the_api(plural: str) -> None:
    assert unserved(KINDS[plural].tree, schema_of(plural), plural) == []


def test_a_projection_has_allowed_fields_of_the_right_type_only() -> None:
    projector = Projector("pods", KINDS["pods"].tree, plain_conversions())
    container = {
        "name": "c",
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
        "args": ["--token=hunter2"],
        "lifecycle": {"preStop": {"exec": {"command": ["hunter2"]}}},
        "resources": {"requests": {"cpu": "10m", "memory": {"hunter2": "hunter2"}}},
        "readinessProbe": {"httpGet": {"path": "/hunter2"}, "periodSeconds": 5},
    }
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "lab.nodefall.dev/stops-after": "3"}
    pod = {
        "metadata": {"name": "p", "annotations": annotations, "managedFields": [{"manager": "hunter2"}]},
        "spec": {
            "containers": [container, "hunter2"],
            "volumes": [{"name": "v", "secret": {"secretName": "hunter2"}}, {"name": "e", "emptyDir": {"medium": "x"}}],
            "nodeName": {"hunter2": "hunter2"},
            "tolerations": None,
            "wings": 2,
        },
    }
    assert projector.project(pod) == {
        "metadata": {"name": "p", "annotations": {"lab.nodefall.dev/stops-after": "3"}},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "lifecycle": {"preStop": {"exec": {}}},
                    "resources": {"requests": {"cpu": "10m"}},
                    "readinessProbe": {"periodSeconds": 5},
                }
            ],
            "volumes": [{"name": "v"}, {"name": "e", "emptyDir": {}}],
        },
    }
    assert dict(projector.unknown) == {"pods.spec.wings": 1}
