"""Every field of the API of a kind is allowed or left out by name, so that only new ones are unknown.

What is measured of pods, images and terminations.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster.snapshot.kinds import KINDS
from chaos.cluster.snapshot.measure import Measurements, owner_of, spread
from chaos.cluster.snapshot.projection import DROP, Projector, Tree, plain_conversions

ROOT = Path(__file__).parents[3]
SCHEMAS: dict[str, Any] = json.loads((ROOT / "chaos/lab/http/schemas.json").read_text(encoding="utf-8"))
PREFIX = "#/components/schemas/"
NAMES = {plural: plural for plural in KINDS} | {
    "persistentvolumes": "PersistentVolume", "priorityclasses": "PriorityClass", "storageclasses": "StorageClass",
    "csidrivers": "CSIDriver", "persistentvolumeclaims": "PersistentVolumeClaim",
    "volumeattachments": "VolumeAttachment", "poddisruptionbudgets": "PodDisruptionBudget", "deployments": "Deployment",
    "replicasets": "ReplicaSet", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "cronjobs": "CronJob",
    "controllerrevisions": "ControllerRevision", "jobs": "Job", "pods": "Pod", "nodes": "Node", "services": "Service",
    "namespaces": "Namespace",
}  # fmt: skip
Object = dict[str, Any]
DAY = "2026-11-23T07:"


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


def pod(name: str, ready: str = "00:12", restarts: int = 0, **more: Any) -> Object:
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": f"{DAY}00:02Z"},
        {"type": "Ready", "status": "True", "lastTransitionTime": f"{DAY}{ready}Z"},
    ]
    reference = {"kind": "ReplicaSet", "name": "web-abc", "uid": "rs", "controller": True}
    metadata = {"name": name, "namespace": "shop", "uid": name, "labels": {"pod-template-hash": "abc"}}
    statuses = [{"name": "c", "restartCount": restarts, **more}]
    return {
        "metadata": metadata | {"ownerReferences": [reference]},
        "status": {"conditions": conditions, "containerStatuses": statuses},
    }


def event(reason: str, message: str = "", about: str = "p", first: str = "01:00", last: str = "01:00") -> Object:
    involved = {"kind": "Pod", "namespace": "shop", "name": about, "uid": about}
    times = {"firstTimestamp": f"{DAY}{first}Z", "lastTimestamp": f"{DAY}{last}Z"}
    return {"involvedObject": involved, "reason": reason, "message": message, **times}


def ended(code: int, at: str, reason: str = "Error") -> Object:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": f"{DAY}{at}Z"}}}


def test_starts_are_from_scheduled_to_ready() -> None:
    found = Measurements()
    for each in (pod("a"), pod("b", "00:22"), pod("c", restarts=1), pod("d", "00:01")):  # restarted, clock changed
        found.add_pod(each)
    times = {"number": 2, "p5": 10.0, "p50": 10.0, "p95": 20.0}
    assert found.lines() == [{"namespace": "shop", "kind": "Deployment", "name": "web", "start": times}]


def test_ends_are_from_killing_to_exit_but_not_by_a_loss_of_power() -> None:
    found = Measurements()
    for name in ("a", "b", "c"):
        found.add_event(event("Killing", about=name))
    found.add_pod(pod("a", restarts=1, **ended(3, "01:07")))
    found.add_pod(pod("b", restarts=1, **ended(137, "01:30")))
    found.add_pod(pod("c", restarts=1, **ended(255, "01:40", "Unknown")))
    found.add_pod(pod("d", restarts=1, **ended(0, "01:40")))  # ended by itself
    times = {"number": 2, "p5": 7.0, "p50": 7.0, "p95": 30.0, "killed": 1, "exitCode": 3}
    assert found.lines() == [{"namespace": "shop", "kind": "Deployment", "name": "web", "end": times}]


def test_a_stateful_set_creates_a_pod_once_its_predecessor_is_gone() -> None:
    found = Measurements()
    for verb, at in (("delete", "02:00"), ("create", "02:25")):
        message = f"{verb} Pod db-0 in StatefulSet db successful"
        found.add_event(event(f"Successful{verb.capitalize()}", message, last=at))
    found.add_event(event("SuccessfulDelete", "delete Pod db-1 in StatefulSet db successful"))  # not gone yet
    (row,) = found.lines()
    assert (row["kind"], row["name"], row["end"]["p50"], row["end"]["number"]) == ("StatefulSet", "db", 25.0, 1)


@pytest.mark.parametrize(
    ("deletions", "creations", "created"),
    [(1, 3, "02:05"), (1, 2, "04:00"), (1, 1, "01:59")],
    ids=["others deleted it, too", "longer than its grace", "before"],
)
def test_a_stateful_set_whose_pod_ended_otherwise(deletions: int, creations: int, created: str) -> None:
    found = Measurements()
    for verb, at, count in (("delete", "02:00", deletions), ("create", created, creations)):
        message = f"{verb} Pod db-0 in StatefulSet db successful"
        found.add_event(event(f"Successful{verb.capitalize()}", message, last=at) | {"count": count})
    assert found.lines() == []


def test_the_last_of_several_ends_counts_from_the_last_kill() -> None:
    found = Measurements()
    found.add_event(event("Killing", about="a", first="01:00", last="20:00"))
    found.add_pod(pod("a", restarts=7, **ended(0, "20:04")))
    found.add_event(event("Killing", about="b"))
    found.add_pod(pod("b", restarts=1, **ended(0, "09:00")))  # not within its grace period
    assert found.lines()[0]["end"]["p95"] == 4.0


@pytest.mark.parametrize(("text", "seconds"), [("1.5s", 1.5), ("750ms", 0.75), ("1m2.5s", 62.5), ("2µs", 0.0)])
def test_pulls(text: str, seconds: float) -> None:
    found = Measurements()
    message = f'Successfully pulled image "registry/app:1" in {text} (9s including waiting). Image size: 7 bytes.'
    found.add_event(event("Pulled", message))
    found.add_event(event("Pulled", 'Container image "registry/app:1" already present on machine'))
    times = {"number": 1, "p5": seconds, "p50": seconds, "p95": seconds}
    assert found.lines() == [{"kind": "Image", "name": "registry/app:1", "pull": times}]


def test_events_and_pods_that_measure_nothing() -> None:
    found = Measurements()
    for each in ({}, {"reason": "Killing"}, event("Killing") | {"firstTimestamp": "soon"}, event("Pulled", "in 5s")):
        found.add_event(each)
    found.add_pod({"metadata": {"name": "x"}})
    found.add_pod({"metadata": {"name": "x"}, "status": {"conditions": None, "containerStatuses": [None]}})
    assert found.lines() == []


def test_owners() -> None:
    assert owner_of(pod("a")) == ("shop", "Deployment", "web")
    assert owner_of({"metadata": {"name": "x", "namespace": "n"}}) == ("n", "Pod", "x")


def test_percentiles_by_the_nearest_rank() -> None:
    assert spread(range(1, 101)) == {"number": 100, "p5": 5, "p50": 50, "p95": 95}
