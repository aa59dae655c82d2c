"""Write commands of kubectl, with the real binary, on a free-running lab."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.kit.kubectl_lab import Kubectl

pytestmark = pytest.mark.lab
MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {a: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: c, image: "busybox:1", ports: [{containerPort: 80}], env: [{name: A, value: b}, {name: B, value: c}]}
"""


def refused(kubectl: Kubectl, *arguments: str, stdin: str = "") -> str:
    """Stderr of a command that fails."""
    ran = kubectl.run(*arguments, stdin=stdin)
    assert ran.returncode == 1, ran
    return ran.stderr


def test_apply_and_roll_out(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=MANIFEST).split("\n")[:2] == [
        "configmap/shop created",
        "deployment.apps/shop created",
    ]
    assert kubectl("apply", "-f", "-", stdin=MANIFEST).count("unchanged") == 2
    changed = (
        MANIFEST.replace('a: "1"', 'b: "2"').replace("busybox:1", "busybox:2").replace("{name: A, value: b}, ", "")
    )
    assert kubectl("apply", "--dry-run=server", "-f", "-", stdin=changed).count("configured (server dry run)") == 2
    assert kubectl("apply", "-f", "-", stdin=MANIFEST).count("unchanged") == 2
    difference = kubectl.run("diff", "-f", "-", stdin=changed)
    assert difference.returncode == 1
    assert "+        image: busybox:2" in difference.stdout
    assert kubectl("apply", "-f", "-", stdin=changed).count("configured") == 2
    assert kubectl.json("get", "configmap", "shop")["data"] == {"b": "2"}
    (container,) = kubectl.json("get", "deployment", "shop")["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"]) == ("busybox:2", [{"name": "B", "value": "c"}])
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/shop", "--timeout=30s")
    assert [line[0] for line in kubectl("rollout", "history", "deployment/shop").splitlines()[2:-1]] == ["1", "2"]
    undone = kubectl.run("rollout", "undo", "deployment/shop")
    assert (undone.returncode, undone.stdout) == (0, "deployment.apps/shop rolled back\n")
    (container,) = kubectl.json("get", "deployment", "shop")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "busybox:1"
    assert kubectl("set", "image", "deployment/shop", "c=busybox:3") == "deployment.apps/shop image updated\n"
    assert kubectl("rollout", "restart", "deployment/shop") == "deployment.apps/shop restarted\n"
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/shop", "--timeout=30s")
    assert kubectl("wait", "deployment/shop", "--for=condition=Available", "--timeout=30s")
    assert kubectl("scale", "deployment/shop", "--replicas=3") == "deployment.apps/shop scaled\n"
    assert "Expected replicas to be 9, was 3" in refused(
        kubectl, "scale", "deployment/shop", "--current-replicas=9", "--replicas=1"
    )
    assert kubectl("delete", "-f", "-", "--timeout=30s", stdin=MANIFEST).count("deleted") == 2
    kubectl("wait", "pod", "-l", "app=shop", "--for=delete", "--timeout=30s")


@pytest.fixture
def config_map(kubectl: Kubectl) -> Iterator[str]:
    kubectl("create", "configmap", "made", "--from-literal=a=1")
    yield "configmap/made"
    kubectl("delete", "configmap", "made")


def test_create_and_replace(kubectl: Kubectl, config_map: str) -> None:
    assert 'configmaps "made" already exists' in refused(kubectl, "create", "configmap", "made")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"z": "1"}}
    assert kubectl("replace", "-f", "-", stdin=json.dumps(body)) == "configmap/made replaced\n"
    assert kubectl.json("get", config_map)["data"] == {"z": "1"}
    old = {**body, "metadata": {"name": "made", "resourceVersion": "1"}}
    assert "the object has been modified" in refused(kubectl, "replace", "-f", "-", stdin=json.dumps(old))
    other = {**body, "metadata": {"name": "made", "uid": "x"}}
    assert "UID in precondition: x" in refused(kubectl, "replace", "-f", "-", stdin=json.dumps(other))
    nope = {**body, "metadata": {"name": "nope"}}
    assert 'configmaps "nope" not found' in refused(kubectl, "replace", "-f", "-", stdin=json.dumps(nope))


@pytest.mark.parametrize(
    ("kind", "patch", "data"),
    [
        ("strategic", {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
        ("merge", {"data": {"a": None}}, None),
        ("json", [{"op": "replace", "path": "/data/a", "value": "3"}], {"a": "3"}),
    ],
)
def test_patches(kubectl: Kubectl, config_map: str, kind: str, patch: object, data: object) -> None:
    before = kubectl.json("get", config_map)
    kubectl("patch", config_map, f"--type={kind}", "-p", json.dumps(patch), "--dry-run=server")
    assert kubectl.json("get", config_map) == before
    assert kubectl("patch", config_map, f"--type={kind}", "-p", json.dumps(patch)) == "configmap/made patched\n"
    assert kubectl.json("get", config_map).get("data") == (data or {})


def test_labels_and_annotations(kubectl: Kubectl, config_map: str) -> None:
    assert kubectl("label", config_map, "tier=a") == "configmap/made labeled\n"
    assert "already has a value (a)" in refused(kubectl, "label", config_map, "tier=b")
    kubectl("label", config_map, "tier=b", "--overwrite")
    kubectl("annotate", config_map, "note=text")
    metadata = kubectl.json("get", config_map)["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"tier": "b"}, {"note": "text"})
    kubectl("label", config_map, "tier-")
    assert not kubectl.json("get", config_map)["metadata"].get("labels")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--type=json", "-p", '[{"op":"add","path":"/spec/selector/matchLabels/x","value":"y"}]'),
            'The Deployment "web" is invalid: spec.template.metadata.labels: Invalid value:',
        ),
        (
            ("-p", '{"spec":{"selector":{"matchLabels":{"x":"y"}},"template":{"metadata":{"labels":{"x":"y"}}}}}'),
            "field is immutable",
        ),
        (("-p", '{"spec":{"replicas":"three"}}'), "cannot unmarshal string into spec.replicas of type integer"),
        (
            ("-p", '{"spec":{"template":{"spec":{"initContainers":[{"name":"i","image":"x"}]}}}}'),
            "the lab does not simulate initContainers",
        ),
        (("-p", '{"metadata":{"name":"other"}}'), "does not match the URL's"),
    ],
)
def test_refused_changes_of_a_deployment(kubectl: Kubectl, arguments: tuple[str, ...], words: str) -> None:
    assert words in refused(kubectl, "patch", "deployment", "web", *arguments)


def test_unknown_fields(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "typo", "lables": {}}, "dta": {"a": "b"}}
    create = ("create", "-f", "-", "-o", "json")
    assert 'unknown field "metadata.lables"' in refused(kubectl, *create, stdin=json.dumps(body))
    for validation, warnings in (
        ("warn", ['Warning: unknown field "dta"', 'Warning: unknown field "metadata.lables"']),
        ("ignore", []),
    ):
        ran = kubectl.run(*create, f"--validate={validation}", stdin=json.dumps(body))
        assert (ran.returncode, sorted(ran.stderr.splitlines())) == (0, warnings)
        made = json.loads(ran.stdout)
        assert ("dta" in made, "lables" in made["metadata"]) == (False, False)
        kubectl("delete", "configmap", "typo")


def test_names_and_labels_are_checked(kubectl: Kubectl) -> None:
    said = refused(kubectl, "create", "namespace", "Not_a_name")
    assert 'The Namespace "Not_a_name" is invalid: metadata.name: Invalid value: "Not_a_name": a lowercase RFC' in said
    patch = '{"metadata":{"labels":{"a b":"c"}}}'
    said = refused(kubectl, "patch", "node", "w1", "-p", patch)
    assert 'The Node "w1" is invalid: metadata.labels: Invalid value: "a b": name part must consist of' in said


def test_a_list_of_objects(kubectl: Kubectl) -> None:
    items = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "in-list"}, "data": {"a": "b"}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "in-list"},
            "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]},
        },
    ]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert kubectl("apply", "-f", "-", stdin=body) == "configmap/in-list created\nservice/in-list created\n"
    assert kubectl("apply", "-f", "-", stdin=body).count("unchanged") == 2
    assert kubectl("apply", "--server-side", "-f", "-", stdin=body).count("serverside-applied") == 2
    assert kubectl("delete", "-f", "-", stdin=body).count("deleted") == 2


def test_leases_and_budgets_need_a_resource_version(kubectl: Kubectl) -> None:
    budget = kubectl.json("get", "pdb", "web")
    lease = kubectl.json("get", "lease", "w1", "-n", "kube-node-lease")
    for obj, name in ((budget, "poddisruptionbudgets"), (lease, "leases")):
        del obj["metadata"]["resourceVersion"]
        path = f"/apis/{obj['apiVersion']}/namespaces/{obj['metadata']['namespace']}/{name}"
        raw = ("replace", "--raw", f"{path}/{obj['metadata']['name']}", "-f", "-")
        words = "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
        assert f'The {name} "{obj["metadata"]["name"]}" is invalid: {words}' in refused(
            kubectl, *raw, stdin=json.dumps(obj)
        )


def test_secrets(kubectl: Kubectl) -> None:
    assert kubectl("create", "secret", "generic", "hush", "--from-literal=a=value") == "secret/hush created\n"
    assert kubectl.json("get", "secret", "hush")["data"] == {"a": "dmFsdWU="}
    assert "a:  5 bytes" in kubectl("describe", "secret", "hush")
    assert kubectl("get", "secrets").splitlines()[1].split()[:3] == ["hush", "Opaque", "1"]
    text = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hush"}, "stringData": {"b": "x"}}
    kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(text))
    found = kubectl.json("get", "secret", "hush")
    assert (found["data"], "stringData" in found) == ({"a": "dmFsdWU=", "b": "eA=="}, False)
    assert "field is immutable" in refused(kubectl, "patch", "secret", "hush", "-p", '{"type":"other"}')
    bad = refused(kubectl, "patch", "secret", "hush", "-p", '{"data":{"b":"-"}}')
    assert "illegal base64 data" in bad
    kubectl("delete", "secret", "hush")


def test_requests_that_are_not_simulated(kubectl: Kubectl) -> None:
    name = kubectl("get", "pods", "-o", "name").split()[0]
    assert "the lab does not simulate pods/log" in refused(kubectl, "logs", name)
    assert "the lab does not simulate pods/portforward" in refused(kubectl, "port-forward", name, "8080:80")


@pytest.mark.parametrize(("cascade", "left"), [("background", []), ("foreground", []), ("orphan", [[]])])
def test_cascades(kubectl: Kubectl, cascade: str, left: list[list[object]]) -> None:
    """``left``: owner references of the remaining ReplicaSets."""
    name = f"gone-{cascade}"
    kubectl("create", "namespace", name)
    kubectl("create", "deployment", "d", "--image=x", "-n", name)
    kubectl("rollout", "status", "deployment/d", "-n", name, "--timeout=30s")
    kubectl("delete", "deployment", "d", "-n", name, f"--cascade={cascade}", "--timeout=60s")
    if cascade == "background":
        kubectl("wait", "replicaset", "-l", "app=d", "-n", name, "--for=delete", "--timeout=60s")
    items = kubectl.json("get", "replicasets", "-n", name)["items"]
    assert [item["metadata"]["ownerReferences"] for item in items] == left
    kubectl("delete", "namespace", name, "--timeout=60s")
