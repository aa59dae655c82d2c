"""Authorization: rules as in RBAC, errors as of Kubernetes, and reviews of a user's permissions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.lab.http.access import Access, Attributes, User
from chaos.lab.http.errors import ApiError
from chaos.lab.spec import LabSpec, SpecError
from chaos.lab.users import Rule
from tests.kit.kubectl_lab import Kubectl

VIEW: dict[str, Any] = {"verbs": ["get", "list", "watch"], "resources": ["nodes", "pods"]}
EVICT: dict[str, Any] = {"verbs": ["create"], "resources": ["pods/eviction"], "namespaces": ["default"]}
ONE_NODE: dict[str, Any] = {"verbs": ["patch"], "resources": ["nodes"], "resourceNames": ["w1"]}
METRICS: dict[str, Any] = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
DEPLOYMENTS: dict[str, Any] = {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["deployments", "*/scale"]}
USER = {"name": "tester", "rules": [VIEW, EVICT, ONE_NODE, DEPLOYMENTS]}


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        (Attributes("list", "", "nodes"), True),
        (Attributes("watch", "", "pods", "default"), True),
        (Attributes("delete", "", "pods", "default", "x"), False),
        (Attributes("create", "", "pods/eviction", "default", "x"), True),
        (Attributes("create", "", "pods/eviction", "kube-system", "x"), False),
        (Attributes("create", "", "pods", "default"), False),
        (Attributes("patch", "", "nodes", "", "w1"), True),
        (Attributes("patch", "", "nodes", "", "w2"), False),
        (Attributes("patch", "", "nodes"), False),
        (Attributes("list", "apps", "nodes"), False),
        (Attributes("delete", "apps", "deployments", "default", "x"), True),
        (Attributes("patch", "apps", "statefulsets/scale", "default", "x"), True),
        (Attributes("patch", "apps", "statefulsets", "default", "x"), False),
        (Attributes("get", path="/version"), True),
        (Attributes("get", path="/apis/apps/v1"), True),
        (Attributes("get", path="/metrics"), False),
        (Attributes("post", path="/apis"), False),
    ],
)
def test_rules(wanted: Attributes, allowed: bool) -> None:
    spec = LabSpec.from_json(json.dumps({"nodes": [{"name": "n"}], "users": [USER]}).encode())
    user = Access(spec.users).users[1]
    assert user.is_allowed(wanted) == allowed
    if not allowed:
        with pytest.raises(ApiError) as caught:
            Access.authorize(user, wanted)
        assert caught.value.code == 403


def test_permissions_of_administrator_and_anonymous() -> None:
    access = Access()
    anonymous = access.authenticate("")
    for wanted in (Attributes("delete", "apps", "deployments", "x", "y"), Attributes("get", path="/metrics")):
        assert access.admin.is_allowed(wanted)
        assert not anonymous.is_allowed(wanted)
    assert anonymous.is_allowed(Attributes("get", path="/version"))
    assert not anonymous.is_allowed(Attributes("get", path="/api"))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            Attributes("delete", "", "pods", "default", "x"),
            'pods "x" is forbidden: User "u" cannot delete resource "pods" in API group "" in the namespace "default"',
        ),
        (
            Attributes("list", "apps", "deployments"),
            'deployments.apps is forbidden: User "u" cannot list resource "deployments" in API group "apps"',
        ),
        (Attributes("get", path="/metrics"), 'forbidden: User "u" cannot get path "/metrics"'),
    ],
)
def test_forbidden_messages(wanted: Attributes, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        Access.authorize(User("u", (), (Rule(verbs=["get"], resources=["pods"]),), "t"), wanted)
    assert caught.value.message.removesuffix(" at the cluster scope") == message


@pytest.mark.parametrize(
    "users",
    [
        [{"name": "a"}, {"name": "a"}],
        [{"name": "a", "token": "t"}, {"name": "b", "token": "t"}],
        [{"name": "kubernetes-admin"}],
        [{"name": "system:node:x"}],
        [{"name": ""}],
        [{"name": "a", "rules": [{"verbs": ["get"]}]}],
        [{"name": "a", "rules": [{"verbs": ["get"], "resources": ["pods"], "nonResourceURLs": ["/metrics"]}]}],
        [{"name": "a", "rules": [{"verbs": ["get"], "resources": ["pods"], "apigroups": []}]}],
    ],
)
def test_bad_users(users: list[dict[str, Any]]) -> None:
    with pytest.raises(SpecError):
        LabSpec.from_json(json.dumps({"nodes": [{"name": "n"}], "users": users}).encode())


@pytest.mark.lab
def test_a_user_of_a_running_lab(make_lab: Any, tmp_path: Path) -> None:
    client = make_lab("--speed", "10", users=[USER])
    (facts,) = client.facts["users"]
    kubectl = Kubectl(facts["kubeconfig"], tmp_path)
    assert "tester" in kubectl("auth", "whoami")
    assert kubectl("get", "nodes", "-o", "name").split() == ["node/cp", "node/w1", "node/w2"]
    assert kubectl("cordon", "w1") == "node/w1 cordoned\n"
    ran = kubectl.run("cordon", "w2")
    assert 'nodes "w2" is forbidden: User "tester" cannot patch resource "nodes" in API group ""' in ran.stderr
    for arguments, allowed in (
        (("list", "pods"), True),
        (("delete", "pods"), False),
        (("create", "pods", "--subresource=eviction"), False),  # of all namespaces
        (("create", "pods", "--subresource=eviction", "-n", "default"), True),
        (("patch", "node/w1"), True),
        (("patch", "node/w2"), False),
        (("update", "deployments.apps", "--subresource=scale"), True),
        (("get", "/version"), True),
        (("get", "/metrics"), False),
    ):
        everywhere = () if "-n" in arguments or arguments[1].startswith("/") else ("-A",)
        ran = kubectl.run("auth", "can-i", *arguments, *everywhere)
        assert (ran.stdout.strip(), ran.returncode) == (("yes", 0) if allowed else ("no", 1)), (arguments, ran)
    assert "pods/eviction" in kubectl("auth", "can-i", "--list")


@pytest.mark.lab
def test_the_port_of_a_kubelet(make_lab: Any) -> None:
    metrics = {"verbs": ["get"], "resources": ["nodes/metrics"]}
    client = make_lab(users=[{"name": "scraper", "rules": [metrics]}, {"name": "guest"}])
    port = client.api("GET", "/api/v1/nodes/w1")[1]["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    scraper, guest = (user["token"] for user in client.facts["users"])
    for token, path, code in (
        (scraper, "/metrics", 200),
        (scraper, "/pods", 403),
        (guest, "/metrics", 403),
        (client.facts["token"], "/pods", 200),
        ("wrong", "/metrics", 401),
    ):
        headers = {"Authorization": f"Bearer {token}"}
        assert client.http.request("GET", f"https://127.0.0.1:{port}{path}", headers=headers).status == code


@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "/metricsx"])
@pytest.mark.parametrize("verb", ["get", "post"])
def test_non_resource_paths(path: str, verb: str) -> None:
    spec = LabSpec.from_json(
        json.dumps({"nodes": [{"name": "n"}], "users": [{"name": "u", "rules": [METRICS, VIEW]}]}).encode()
    )
    user = Access(spec.users).users[1]
    assert user.is_allowed(Attributes(verb, path=path)) is ((verb, path) == ("get", "/metrics"))
    assert user.is_allowed(Attributes("get", "", "pods"))


@pytest.mark.lab
def test_the_port_of_the_controller_manager(make_lab: Any) -> None:
    client = make_lab(users=[{"name": "scraper", "rules": [METRICS]}, {"name": "guest"}])
    url, (scraper, guest) = client.facts["controllerManager"], (user["token"] for user in client.facts["users"])
    for token, path, code in (
        (scraper, "/metrics", 200),
        (scraper, "/configz", 403),
        (guest, "/metrics", 403),
        (guest, "/healthz", 200),
        ("", "/metrics", 403),
        ("", "/healthz", 200),
        (client.facts["token"], "/metrics", 200),
        (client.facts["token"], "/debug", 404),
        ("wrong", "/metrics", 401),
    ):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = client.http.request("GET", url + path, headers=headers)
        assert answer.status == code, (token, path, answer.data)
        has_counter = b"\ntaint_eviction_controller_pod_deletions_total 0\n" in answer.data
        assert has_counter == ((path, code) == ("/metrics", 200))
    review = {"kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}
    headers = {"Authorization": f"Bearer {scraper}", "Content-Type": "application/json"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    answer = client.http.request("POST", client.facts["apiServer"] + path, body=json.dumps(review), headers=headers)
    assert answer.json()["status"]["nonResourceRules"] == [METRICS]
    assert answer.json()["status"]["resourceRules"] == []
