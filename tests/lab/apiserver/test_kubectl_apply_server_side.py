"""kubectl apply --server-side, with the real binary, on a free-running lab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.kubectl_lab import Kubectl

pytestmark = pytest.mark.lab
APPLY = ("apply", "--server-side", "-f", "-")
APPLIED = "deployment.apps/side serverside-applied\n"


def manifest(image: str = "busybox:1", **spec: Any) -> str:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    pod = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": image, "ports": ports}]}
    labels = {"app": "side"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    full = {"selector": {"matchLabels": labels}, "template": template, **spec}
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "side", "labels": {"tier": "a"}}}
    return json.dumps({**head, "spec": full})


@pytest.fixture
def clean(kubectl: Kubectl) -> Iterator[None]:
    yield
    kubectl("delete", "deployment", "side", "--ignore-not-found", "--timeout=30s")


def managers(kubectl: Kubectl) -> dict[tuple[str, str, str], Any]:
    found = json.loads(kubectl("get", "deployment", "side", "-o", "json", "--show-managed-fields"))
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in found["metadata"]["managedFields"]
    }


def test_create_change_and_remove(kubectl: Kubectl, clean: None) -> None:
    assert kubectl(*APPLY, "--dry-run=server", stdin=manifest()).endswith("serverside-applied (server dry run)\n")
    assert kubectl.run("get", "deployment", "side").returncode == 1
    assert kubectl(*APPLY, stdin=manifest(replicas=2)) == APPLIED
    first = kubectl.json("get", "deployment", "side")
    assert (first["spec"]["replicas"], "managedFields" in first["metadata"]) == (2, False)
    assert kubectl("rollout", "status", "deployment/side", "--timeout=30s").endswith("successfully rolled out\n")
    before = kubectl.json("get", "deployment", "side")["metadata"]["resourceVersion"]
    assert kubectl(*APPLY, stdin=manifest(replicas=2)) == APPLIED
    assert kubectl.json("get", "deployment", "side")["metadata"]["resourceVersion"] == before
    changed = json.loads(manifest("busybox:2"))
    del changed["metadata"]["labels"]
    assert kubectl(*APPLY, stdin=json.dumps(changed)) == APPLIED
    second = kubectl.json("get", "deployment", "side")
    assert second["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox:2"
    assert (second["metadata"].get("labels"), second["spec"]["replicas"]) == (None, 1)
    owned = managers(kubectl)["kubectl", "Apply", ""]
    (container,) = owned["f:spec"]["f:template"]["f:spec"]["f:containers"].items()
    assert container[0] == 'k:{"name":"c"}'
    assert 'k:{"containerPort":80,"protocol":"TCP"}' in container[1]["f:ports"]
    assert "f:metadata" not in owned


def test_a_conflict_with_another_applier(kubectl: Kubectl, clean: None) -> None:
    kubectl(*APPLY, stdin=manifest(replicas=2))
    ran = kubectl.run(*APPLY, "--field-manager=other", stdin=manifest(replicas=3))
    assert ran.returncode == 1
    assert ran.stderr.startswith(
        'error: Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas\n'
        "Please review the fields above--they currently have other managers."
    )
    assert kubectl(*APPLY, "--field-manager=other", "--force-conflicts", stdin=manifest(replicas=3)) == APPLIED
    found = managers(kubectl)
    assert "f:replicas" in found["other", "Apply", ""]["f:spec"]
    assert "f:replicas" not in found["kubectl", "Apply", ""]["f:spec"]
    assert "f:template" in found["kubectl", "Apply", ""]["f:spec"], "shared"
    kubectl(*APPLY, stdin=manifest())
    assert kubectl.json("get", "deployment", "side")["spec"]["replicas"] == 3


def test_conflicts_with_ordinary_writes(kubectl: Kubectl, clean: None) -> None:
    kubectl(*APPLY, stdin=manifest(replicas=2))
    kubectl("scale", "deployment/side", "--replicas=3")
    kubectl("set", "image", "deployment/side", "c=busybox:3")
    ran = kubectl.run(*APPLY, stdin=manifest(replicas=2))
    assert ran.returncode == 1
    assert ran.stderr.startswith(
        "error: Apply failed with 2 conflicts: "
        'conflicts with "kubectl" with subresource "scale" using apps/v1:\n- .spec.replicas\n'
        'conflicts with "kubectl-set" using apps/v1:\n- .spec.template.spec.containers[name="c"].image\n'
    )
    assert kubectl(*APPLY, stdin=manifest("busybox:3")) == APPLIED
    assert kubectl.json("get", "deployment", "side")["spec"]["replicas"] == 3


def test_client_side_apply_gives_way(kubectl: Kubectl, clean: None) -> None:
    """kubectl takes the fields of kubectl-client-side-apply over, and the server updates last-applied."""
    kubectl("apply", "-f", "-", stdin=manifest(replicas=2))
    assert list(managers(kubectl)) == [("kubectl-client-side-apply", "Update", "")]
    assert kubectl(*APPLY, stdin=manifest("busybox:2", replicas=1)) == APPLIED
    assert set(managers(kubectl)) == {("kubectl", "Apply", ""), ("kubectl-last-applied", "Apply", "")}
    found = kubectl.json("get", "deployment", "side")
    last = json.loads(found["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    assert last == {**json.loads(manifest("busybox:2", replicas=1)), "metadata": last["metadata"]}
    assert kubectl("apply", "-f", "-", stdin=manifest("busybox:2", replicas=1)).startswith("deployment.apps/side")


def test_objects_of_the_lab(kubectl: Kubectl) -> None:
    label = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1", "labels": {"kubernetes.io/hostname": "x"}}}
    ran = kubectl.run(*APPLY, stdin=json.dumps(label))
    words = 'conflict with "before-first-apply" using v1: .metadata.labels.kubernetes.io/hostname'
    assert (ran.returncode, words in ran.stderr) == (1, True), ran
    label["metadata"] = {"name": "w1", "labels": {"rack": "7"}}
    kubectl(*APPLY, stdin=json.dumps(label))
    assert kubectl.json("get", "node", "w1")["metadata"]["labels"]["rack"] == "7"
    kubectl(*APPLY, stdin=json.dumps({**label, "metadata": {"name": "w1"}}))
    assert "rack" not in kubectl.json("get", "node", "w1")["metadata"]["labels"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"extra": 1}, ".spec.extra: field not declared in schema"),
        ({"template": {"spec": {"containers": [{"image": "x"}]}}}, "omits all key fields"),
        (
            {"template": {"spec": {"containers": [{"name": "c"}, {"name": "c"}]}}},
            '.spec.template.spec.containers: duplicate entries for key [name="c"]',
        ),
    ],
)
def test_errors(kubectl: Kubectl, change: dict[str, Any], words: str) -> None:
    ran = kubectl.run(*APPLY, "--validate=false", stdin=manifest(**change))
    assert ran.returncode == 1
    assert words in ran.stderr
