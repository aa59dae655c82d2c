"""kubectl get and other read commands, with the real binary, on a free-running lab."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.kit.kubectl_lab import Kubectl, table

pytestmark = pytest.mark.lab
AGE = re.compile(r"\d+[smh](\d+s)?")


@pytest.fixture(scope="module")
def ready(kubectl: Kubectl) -> Kubectl:
    """kubectl, once the workload runs."""
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
    kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s")
    kubectl.wait_until_ready("db-1")
    return kubectl


def test_nodes(kubectl: Kubectl) -> None:
    rows = table(kubectl("get", "nodes"))
    assert [row["NAME"] for row in rows] == ["cp", "w1", "w2"]
    assert [row["ROLES"] for row in rows] == ["control-plane", "<none>", "<none>"]
    assert {row["STATUS"] for row in rows} == {"Ready"}
    assert all(AGE.fullmatch(row["AGE"]) for row in rows)
    assert list(rows[0]) == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]


def test_wide_nodes(kubectl: Kubectl) -> None:
    (row,) = table(kubectl("get", "node", "w1", "-o", "wide"))
    assert list(row)[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert (row["INTERNAL-IP"], row["EXTERNAL-IP"]) == ("127.0.0.1", "<none>")


def test_pods_of_all_namespaces(ready: Kubectl) -> None:
    rows = table(ready("get", "pods", "-A"))
    assert {(row["NAMESPACE"], row["READY"], row["STATUS"], row["RESTARTS"]) for row in rows} == {
        ("default", "1/1", "Running", "0")
    }
    assert len(rows) == 8


def test_pods_in_chunks_are_the_same_pods(ready: Kubectl) -> None:
    assert ready("get", "pods", "-o", "name", "--chunk-size=3") == ready("get", "pods", "-o", "name")
    assert len(table(ready("get", "pods", "--chunk-size=2"))) == 8


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--selector", "app=db"], ["db-0", "db-1"]),
        (["-l", "app in (db),statefulset.kubernetes.io/pod-name!=db-0"], ["db-1"]),
        (["--field-selector", "metadata.name=db-0"], ["db-0"]),
        (["--field-selector", "status.phase=Running,metadata.name!=db-0", "-l", "app=db"], ["db-1"]),
        (["-l", "app=nothing"], []),
    ],
)
def test_selectors(ready: Kubectl, arguments: list[str], names: list[str]) -> None:
    assert ready("get", "pods", "-o", "name", *arguments).split() == [f"pod/{name}" for name in names]


def test_output_formats(ready: Kubectl) -> None:
    pod = ready.json("get", "pod", "db-0")
    assert yaml.safe_load(ready("get", "pod", "db-0", "-o", "yaml")) == pod
    assert (pod["kind"], pod["apiVersion"]) == ("Pod", "v1")
    assert ready("get", "po/db-0", "-o", "name") == "pod/db-0\n"
    assert ready("get", "pod", "db-0", "-o", "jsonpath={.status.phase}") == "Running"
    assert ready("get", "pod", "db-0", "--no-headers", "-o", "custom-columns=N:.metadata.name") == "db-0\n"
    listed = ready.json("get", "pods", "-l", "app=db")
    assert (listed["kind"], [item["kind"] for item in listed["items"]]) == ("List", ["Pod", "Pod"])


def test_columns_made_of_labels_and_sorting(ready: Kubectl) -> None:
    rows = table(ready("get", "pods", "-L", "app", "--sort-by", ".metadata.labels.app"))
    assert [row["APP"] for row in rows] == ["agent"] * 3 + ["db"] * 2 + ["web"] * 3


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("deploy/web", {"READY": "3/3", "UP-TO-DATE": "3", "AVAILABLE": "3"}),
        ("sts/db", {"READY": "2/2"}),
        ("ds/agent", {"DESIRED": "3", "READY": "3", "NODE SELECTOR": "<none>"}),
        ("pdb/web", {"MIN AVAILABLE": "2", "MAX UNAVAILABLE": "N/A", "ALLOWED DISRUPTIONS": "1"}),
        ("cm/settings", {"DATA": "1"}),
        ("ns/default", {"STATUS": "Active"}),
        ("pc/system-node-critical", {"VALUE": "2000001000", "GLOBAL-DEFAULT": "false"}),
    ],
)
def test_short_names_and_columns(ready: Kubectl, name: str, row: dict[str, str]) -> None:
    (found,) = table(ready("get", name))
    assert {key: found[key] for key in row} == row


def test_all(ready: Kubectl) -> None:
    kinds = {name.partition("/")[0] for name in ready("get", "all", "-o", "name").split()}
    assert {"pod", "daemonset.apps", "deployment.apps", "replicaset.apps", "statefulset.apps"} <= kinds
    assert not kinds & {"configmap", "event", "poddisruptionbudget.policy"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["get", "gadgets"], 1, 'error: the server doesn\'t have a resource type "gadgets"'),
        (["get", "pods.v1.apps"], 1, 'error: the server doesn\'t have a resource type "pods"'),
        (["get", "pod", "nope"], 1, 'Error from server (NotFound): pods "nope" not found'),
        (["get", "deploy", "nope"], 1, 'Error from server (NotFound): deployments.apps "nope" not found'),
        (["get", "pods", "-n", "nowhere"], 0, "No resources found in nowhere namespace."),
        (
            ["get", "--raw", "/nope"],
            1,
            "(NotFound): the server could not find the requested resource",
        ),
        (["get", "pods", "--field-selector", "spec.colour=1"], 1, "field label not supported: spec.colour"),
        (["describe", "pod", "nope"], 1, 'Error from server (NotFound): pods "nope" not found'),
        (["wait", "--for=condition=Ready", "pod/nope"], 1, 'Error from server (NotFound): pods "nope" not found'),
        (["--token", "wrong", "get", "pods"], 1, "error: You must be logged in to the server (Unauthorized)"),
    ],
)
def test_top_level_errors(kubectl: Kubectl, arguments: list[str], code: int, message: str) -> None:
    ran = kubectl.run(*arguments)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert message in ran.stderr


def test_api_resources(kubectl: Kubectl) -> None:
    kinds = {row["KIND"]: row for row in table(kubectl("api-resources"))}
    assert kinds["Deployment"] == {
        "NAME": "deployments",
        "SHORTNAMES": "deploy",
        "APIVERSION": "apps/v1",
        "NAMESPACED": "true",
        "KIND": "Deployment",
    }
    assert "policy/v1" in kubectl("api-versions").split()
    assert "Server Version: v1.36.2" in kubectl("version")
    assert "control plane" in kubectl("cluster-info")
    assert kubectl("get", "--raw", "/readyz") == "ok"


def test_explain(kubectl: Kubectl) -> None:
    text = kubectl("explain", "deployment.spec.template.spec.tolerations")
    assert "FIELD: tolerations <[]Toleration>" in text
    assert re.search(r"tolerationSeconds\s+<integer>", text)
    refused = kubectl.run("explain", "pod.spec.colour")
    assert (refused.returncode, refused.stderr) == (1, 'error: field "colour" does not exist\n')


def test_the_items_of_a_list_are_checked(kubectl: Kubectl, tmp_path: Path) -> None:
    """By kubectl itself, with OpenAPI v2 in protobuf."""
    file = tmp_path / "list.json"
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}}
    good = {**budget, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "x"}}}}
    bad = {**budget, "spec": {"minAvailable": 1, "selektor": {}}}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [good]}))
    assert kubectl("create", "--dry-run=server", "-o", "name", "-f", str(file)) == "poddisruptionbudget.policy/x\n"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [good, bad]}))
    ran = kubectl.run("create", "--dry-run=server", "-f", str(file))
    assert ran.returncode == 1
    assert 'unknown field "selektor" in io.k8s.api.policy.v1.PodDisruptionBudgetSpec' in ran.stderr
