"""Permissions of an experiment cover each of its requests, and none is listed twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chaos.cluster.workload import create_commands, removal, workload_state
from chaos.core.action import FactCheck, Target
from chaos.core.command import Command, KubeCommand, PodsCommand, TaintsCommand
from chaos.core.experiment import Experiment
from chaos.core.permission import Permission, permission_for_request, policy_rules, role_manifests
from chaos.core.probes import Probe, ServiceReference
from chaos.engine.planning.permissions import PermissionInputs, compute_permissions, describe_risk, permissions_to_list
from tests.kit.actionkit import ACTIONS
from tests.kit.api_actions import DEMO, OBJECTS, REGISTRY, THROUGH_THE_API, experiment


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/nodes", "list nodes"),
        ("GET", "/api/v1/nodes/n1", "get nodes n1"),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "list pods"),
        ("POST", "/api/v1/namespaces", "create namespaces"),
        ("DELETE", "/api/v1/namespaces/x", "delete namespaces x"),
        ("POST", "/api/v1/namespaces/x/pods", "create pods in namespace x"),
        ("POST", "/api/v1/namespaces/x/pods/p/eviction", "create pods/eviction p in namespace x"),
        ("PATCH", f"{DEMO}/deployments/web/scale", "patch deployments/scale.apps web in namespace demo"),
        (
            "DELETE",
            "/apis/scheduling.k8s.io/v1/priorityclasses?labelSelector=x%3Dy",
            "deletecollection priorityclasses.scheduling.k8s.io",
        ),
        ("PUT", "/api/v1/namespaces/x/configmaps/c", "update configmaps c in namespace x"),
    ],
)
def test_permission_for_a_request(method: str, path: str, expected: str) -> None:
    assert str(permission_for_request(method, path)) == expected


@pytest.mark.parametrize("path", ["/version", "/api/v1", "", "/apis/apps"])
def test_a_path_without_a_resource(path: str) -> None:
    with pytest.raises(ValueError, match="not the path of an API resource"):
        permission_for_request("GET", path)


def test_a_wider_permission_covers_a_narrower_one() -> None:
    everywhere, here = Permission("", "pods", "get"), Permission("", "pods", "get", "demo", "p")
    assert everywhere.covers(here)
    assert not here.covers(everywhere)
    assert not everywhere.covers(Permission("", "pods", "list"))
    assert not everywhere.covers(Permission("", "pods/log", "get"))


_POD = "/api/v1/namespaces/demo/pods/p"


def requests(command: Command) -> Iterator[tuple[str, str]]:
    """Requests of a command, as kube/commands.py and kube/pod_commands.py send them."""
    if isinstance(command, KubeCommand):
        yield command.method, command.path
    elif isinstance(command, TaintsCommand):
        yield from (("GET", f"/api/v1/nodes/{command.node}"), ("PATCH", f"/api/v1/nodes/{command.node}"))
    elif isinstance(command, PodsCommand):
        yield "GET", "/api/v1/pods"
        sent = {"evict": ("POST", f"{_POD}/eviction"), "delete": ("DELETE", _POD), "remove-finalizers": ("PATCH", _POD)}
        sent["mark-disruption"] = ("PATCH", f"{_POD}/status")
        yield sent[command.verb]
        if command.wait:
            yield "GET", _POD
        if command.rules:
            yield "GET", f"{DEMO}/daemonsets/agent"


def reads(check: FactCheck | None) -> Iterator[tuple[str, str]]:
    if check and check.fact.startswith("object/"):
        yield "GET", check.fact.removeprefix("object").partition("#")[0]


@pytest.mark.parametrize(("name", "given"), THROUGH_THE_API, ids=str)
def test_every_request_of_an_action_is_covered(name: str, given: dict[str, Any]) -> None:
    action = ACTIONS[name]
    params = action.params.model_validate(given)
    there = Target("n1", power="redfish", tag="run-do", namespace="demo")
    target = replace(there, facts={"kubelet-unit": "kubelet.service"}, objects=OBJECTS)
    memory = action.prepare(target, params)
    undo = action.program(memory).undo
    sent = [request for command in action.program(memory).commands for request in requests(command)]
    sent += [request for step in undo.steps for request in (*requests(step.command), *reads(step.unless))]
    sent += [request for check in undo.proof for request in reads(check)]
    sent += [("GET", path) for path in action.needs_with(params).paths("n1", "demo")]
    permissions = compute_permissions(experiment(name, given), PermissionInputs("kube-system"))
    for method, path in sent:
        required = permission_for_request(method, path)
        assert any(permission.covers(required) for permission in permissions), f"{required} is missing"


def test_the_table_has_every_action_through_the_api() -> None:
    assert {name for name, _ in THROUGH_THE_API} >= {name for name, action in ACTIONS.items() if not action.on_host}


def test_permissions_to_create_and_remove_a_workload() -> None:
    manifests: list[dict[str, Any]] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1},
    ]
    workload = create_commands(manifests, "ns", "run")
    inputs = PermissionInputs("kube-system", workload, removal(workload_state(workload), "ns", "run"))
    permissions = {str(permission) for permission in compute_permissions(experiment("cordon", {}), inputs)}
    assert {"create namespaces", "get namespaces", "delete namespaces", "create deployments.apps"} <= permissions
    classes = "priorityclasses.scheduling.k8s.io"
    assert {f"{verb} {classes}" for verb in ("create", "list", "deletecollection")} <= permissions
    assert "get namespaces kube-system" not in permissions


def test_the_permission_of_a_probe_names_its_service() -> None:
    made = experiment("cordon", {})
    probes = [
        Probe(name="a", service=ServiceReference(name="web")),
        Probe(name="b", service=ServiceReference(name="shop", namespace="demo", port="web", scheme="https")),
        Probe(name="c", tcp="x:1"),
    ]
    made = made.model_copy(update={"spec": made.spec.model_copy(update={"probes": probes})})
    permissions = {
        str(permission)
        for permission in compute_permissions(made, PermissionInputs("kube-system"))
        if "proxy" in permission.resource
    }
    assert permissions == {"get services/proxy web:80", "get services/proxy https:shop:web in namespace demo"}


def test_the_node_proxy_is_requested_only_if_allowed_and_is_a_risk() -> None:
    without = compute_permissions(experiment("cordon", {}), PermissionInputs("kube-system"))
    allowed = compute_permissions(experiment("cordon", {}), PermissionInputs("kube-system", allow_node_proxy=True))
    (proxy,) = set(allowed) - set(without)
    assert str(proxy) == "get nodes/proxy"
    assert "every pod" in describe_risk(proxy)
    assert not any(describe_risk(permission) for permission in without)


def test_helper_pods_need_rights_that_are_root() -> None:
    """In their namespace, and no other."""
    without = set(compute_permissions(experiment("cordon", {}), PermissionInputs("kube-system")))
    inputs = PermissionInputs("kube-system", helper_namespaces=["chaos"])
    added = set(compute_permissions(experiment("cordon", {}), inputs)) - without
    assert {str(permission) for permission in added} == {
        *(f"{verb} pods in namespace chaos" for verb in ("get", "create", "delete", "deletecollection")),
        *(f"{verb} pods/exec in namespace chaos" for verb in ("get", "create")),
        "get namespaces chaos",
    }
    risks = {describe_risk(permission) for permission in added}
    assert risks == {"", "pods and pods/exec in chaos, for transport pod, amount to root on every node"}


@pytest.mark.parametrize("part", ["steadyState", "hypothesis", "abort"])
def test_metrics_of_the_controller_manager_need_a_permission(part: str) -> None:
    name = "taint_eviction_controller_pod_deletions_total"
    question = {"assert": "metric", "with": {"controller-manager": True, "name": name, "at-most": 9}, "always": True}
    of_kubelet = {"assert": "metric", "with": {"node": "n1", "name": name, "at-most": 9}, "always": True}
    plain = experiment("cordon", {})
    permissions = {}
    for each in (question, of_kubelet):
        document = plain.model_dump(by_alias=True, exclude_unset=True)
        document["spec"][part] = [*document["spec"].get(part, []), each]
        permissions[each is question] = compute_permissions(
            REGISTRY.bind(Experiment.model_validate(document)), PermissionInputs("kube-system")
        )
    (permission,) = set(permissions[True]) - set(permissions[False])
    assert (str(permission), permission.is_non_resource) == ("get /metrics", True)
    assert permissions[False] == compute_permissions(plain, PermissionInputs("kube-system"))
    documents = role_manifests(permissions[True], "nodefall", {"kind": "User", "name": "u"})
    assert documents[0]["kind"] == "ClusterRole"
    assert documents[0]["rules"][-1] == {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    assert not any("nonResourceURLs" in rule for other in documents[1:] for rule in other.get("rules", []))


def test_roles_as_kubectl_applies_them() -> None:
    permissions = [
        Permission("", "nodes", "get"),
        Permission("", "pods", "get"),
        Permission("", "nodes/metrics", "list"),
        Permission("coordination.k8s.io", "leases", "get", "kube-system", "nodefall"),
    ]
    assert policy_rules(permissions[:3]) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["list"]},
    ]
    documents = role_manifests(
        permissions, "nodefall", {"kind": "ServiceAccount", "namespace": "chaos", "name": "nodefall"}
    )
    assert [d["kind"] for d in documents] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert documents[2]["metadata"] == {"name": "nodefall", "namespace": "kube-system"}
    assert documents[2]["rules"][0]["resourceNames"] == ["nodefall"]
    assert documents[3]["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "nodefall"}


def test_permissions_to_list_leave_out_granted_ones() -> None:
    granted = [
        Permission("", "pods", "list"),
        Permission("apps", "deployments", "list", "shop"),
        Permission("", "nodes", "get"),
    ]
    lists = [
        "/apis/apps/v1/deployments",
        "/api/v1/pods",
        "/api/v1/nodes",
        "/apis/x.io/v2/things",
        "/apis/x.io/v1/things",
    ]
    assert [str(permission) for permission in permissions_to_list(granted, lists)] == [
        "list nodes",
        "list deployments.apps",
        "list things.x.io",
    ]
    assert permissions_to_list([], []) == []
