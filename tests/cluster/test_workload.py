"""The workload's commands."""

from __future__ import annotations

import copy
import re
from typing import Any
from urllib.parse import quote

import pytest

from chaos.cluster.workload import (
    PRIORITY_CLASSES,
    WorkloadState,
    apply,
    collection_path,
    create_commands,
    namespace_for,
    namespaces_for,
    removal,
    workload_state,
)
from chaos.core.command import KubeCommand
from chaos.core.errors import Aborted
from chaos.core.labels import name_from_run
from chaos.core.ports import Response
from tests.kit.fakes import FakeKube


@pytest.mark.parametrize("length", [1, 46, 47, 48, 53, 54, 56, 57, 62, 63])
@pytest.mark.parametrize("prefix", ["", "nodefall-"])
def test_what_is_named_after_a_run_is_short_and_unique(length: int, prefix: str) -> None:
    for name in ("a" * length, f"{'a-' * 40}"[: length - 1] + "b"):
        runs = [f"{name}-{number:06x}" for number in (0, 1, 0xFFFFFF)]
        names = [name_from_run(run, prefix) for run in runs]
        assert len(set(names)) == 3
        for run, found in zip(runs, names, strict=True):
            assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", found)
            assert found.startswith(f"{prefix}{name[:40].rstrip('-')}")
            assert found == prefix + run or len(prefix + run) > 63


def test_the_labels_of_a_long_run_are_those_of_its_undo() -> None:
    run = f"{'n' * 63}-1a2b3c"
    manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 1}
    namespace, priority_class = create_commands([manifest], namespace_for(run), run)
    assert namespace.body
    assert priority_class.body
    label = namespace.body["metadata"]["labels"]["nodefall.dev/run"]
    assert priority_class.body["metadata"]["labels"]["nodefall.dev/run"] == label
    undo = removal(WorkloadState(priority_classes=True), namespace_for(run), run)
    assert [check.value for check in undo.steps[0].when] == [label]
    last = undo.steps[1].command
    assert isinstance(last, KubeCommand)
    assert last.path.endswith(quote(f"nodefall.dev/run={label}"))


def test_a_namespace_of_version_0_2_is_still_that_of_its_run() -> None:
    run = f"{'n' * 50}-1a2b3c"
    assert f"nodefall-{'n' * 50}-1a2"[:63] in namespaces_for(run)
    assert namespaces_for("short-1a2b3c") == ("nodefall-short-1a2b3c",) * 2


COLLECTIONS = [
    ("v1", "Service", "/api/v1/namespaces/ns/services"),
    ("apps/v1", "Deployment", "/apis/apps/v1/namespaces/ns/deployments"),
    ("apps/v1", "StatefulSet", "/apis/apps/v1/namespaces/ns/statefulsets"),
    ("policy/v1", "PodDisruptionBudget", "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"),
    ("networking.k8s.io/v1", "NetworkPolicy", "/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies"),
    ("networking.k8s.io/v1", "Ingress", "/apis/networking.k8s.io/v1/namespaces/ns/ingresses"),
    ("v1", "ResourceQuota", "/api/v1/namespaces/ns/resourcequotas"),
    ("networking.k8s.io/v1", "IngressClass", "/apis/networking.k8s.io/v1/namespaces/ns/ingressclasses"),
]


@pytest.mark.parametrize(("version", "kind", "path"), COLLECTIONS)
def test_collection(version: str, kind: str, path: str) -> None:
    assert collection_path({"apiVersion": version, "kind": kind}, "ns") == path


def test_everything_is_labelled_and_in_the_namespace() -> None:
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"app": "web"}}}
    namespace, service = create_commands([manifest], "nodefall-r1", "r1")
    assert namespace.body is not None
    assert service.body is not None
    assert namespace.body["metadata"]["name"] == "nodefall-r1"
    assert service.body["metadata"]["namespace"] == "nodefall-r1"
    labels = {"app": "web", "nodefall.dev/run": "r1", "app.kubernetes.io/managed-by": "nodefall"}
    assert service.body["metadata"]["labels"] == labels
    assert "namespace" not in manifest["metadata"], "the manifest is not changed"


def affinity(pod_spec: dict[str, Any]) -> Any:
    return pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def named(node: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def test_pods_are_confined_to_nodes() -> None:
    """A field takes one value, and terms are alternatives: one for each node."""
    template: dict[str, Any] = {"spec": {"containers": []}}
    manifests: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": "a"},
            "spec": {"template": copy.deepcopy(template)},
        }
        for kind in ("Deployment", "StatefulSet", "DaemonSet")
    ]
    manifests.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}})
    _, *bodies = (command.body or {} for command in create_commands(manifests, "ns", "r1", ("n1", "n2")))
    terms = [{"matchFields": [named("n1")]}, {"matchFields": [named("n2")]}]
    assert [affinity(body["spec"]["template"]["spec"]) for body in bodies[:2]] == [terms, terms]
    assert bodies[2]["spec"]["template"] == template, "a DaemonSet has a pod on each node anyway"
    assert affinity(bodies[3]["spec"]) == terms
    assert "affinity" not in manifests[0]["spec"]["template"]["spec"], "the manifest is not changed"


def test_the_affinity_of_the_manifest_still_holds() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required: dict[str, Any] = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone, {"matchFields": [named("n1")]}]}
    }
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"affinity": {"nodeAffinity": required}},
    }
    _, created = create_commands([pod], "ns", "r1", ("n1", "n2"))
    assert created.body is not None
    assert affinity(created.body["spec"]) == [
        {**zone, "matchFields": [named("n1")]},
        {**zone, "matchFields": [named("n2")]},
        {"matchFields": [named("n1"), named("n1")]},
        {"matchFields": [named("n1"), named("n2")]},
    ]


def test_a_rejection_has_the_servers_message() -> None:
    kube = FakeKube({"/api/v1/namespaces": Response(403, b'{"message": "namespaces is forbidden"}', {})})
    with pytest.raises(Aborted, match="403: namespaces is forbidden"):
        apply(kube, create_commands([], "nodefall-r1", "r1"))


def test_names_fit_and_removal_is_proven() -> None:
    name = namespace_for("graceful-poweroff-" + "x" * 80)
    assert len(name) <= 63
    assert not name.endswith("-")
    assert [str(check) for check in removal(WorkloadState(), "ns", "r1").proof] == ["namespace/ns is gone"]


def test_only_a_namespace_of_the_run_is_deleted() -> None:
    (step,) = removal(WorkloadState(), "ns", "r1").steps
    assert [str(check) for check in step.when] == [
        "object/api/v1/namespaces/ns#/metadata/labels/nodefall.dev~1run is r1"
    ]


def test_a_priority_class_is_the_runs_own_and_goes_by_its_label() -> None:
    manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "a"}, "value": 7}
    workload = create_commands([manifest], "nodefall-r1", "r1")
    assert workload[1].path == PRIORITY_CLASSES
    assert workload[1].body is not None
    assert workload[1].body["metadata"]["labels"]["nodefall.dev/run"] == "r1"
    assert "namespace" not in workload[1].body["metadata"]
    undo = removal(workload_state(workload), "nodefall-r1", "r1")
    ours = f"{PRIORITY_CLASSES}?labelSelector=nodefall.dev/run%3Dr1"
    assert [str(step.command) for step in undo.steps] == [
        "DELETE /api/v1/namespaces/nodefall-r1",
        f"DELETE {ours}",
    ]
    assert str(undo.proof[1]) == f"object{ours}#/items/0/metadata/name is None"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/kube-system/pods/x",
        "/api/v1%2Fnamespaces%2Fkube-system%2Fpods%2Fx?a=/namespaces/ns/pods/y",  # the API server decodes a path
        "/api/v1/namespaces/kube-system?/namespaces/ns/pods/y",
        "/api/../namespaces/ns/pods/y",
        "/apis/apps/v1#/namespaces/ns/pods/y",
    ],
)
def test_an_object_outside_the_workload_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="does not belong to the workload in ns"):
        removal(WorkloadState(finalizers=(path,)), "ns", "r1")


def test_finalizers_of_the_manifests_do_not_outlive_them() -> None:
    """A run that dies before it removes them would leave a namespace that never ends."""
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "free"}}
    undo = removal(workload_state(create_commands([manifest, plain], "ns", "r1")), "ns", "r1")
    path = "/api/v1/namespaces/ns/pods/held"
    assert [str(step.command) for step in undo.steps] == [
        "DELETE /api/v1/namespaces/ns",
        f'PATCH {path} {{"metadata": {{"finalizers": null}}}}',
    ]
    assert str(undo.steps[1].unless) == f"object{path}#/metadata/finalizers is None"
