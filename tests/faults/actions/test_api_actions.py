"""Actions through the API: commands, refusals, undo."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from tests.kit.actionkit import ACTIONS, ActionDescription, describe, prepare

NODE_PATH, PODS = "/api/v1/nodes/n1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"
WEB, DB = "/apis/apps/v1/namespaces/demo/deployments/web", "/apis/apps/v1/namespaces/demo/daemonsets/db"
BUDGET = "/apis/policy/v1/namespaces/demo/poddisruptionbudgets/web"
IS_BACK = "the machine is on and the node is Ready"
OUT = "node.kubernetes.io/out-of-service"


def target(spec: dict[str, Any] | None = None, **objects: Any) -> Target:
    node = {
        "metadata": {"labels": {"zone": "a"}},
        "spec": spec or {},
        "status": {"allocatable": {"cpu": "2"}},
    }
    found = {NODE_PATH: node, PODS: {"items": objects.pop("pods", [])}, **objects}
    facts = {"kubelet-unit": "kubelet.service"}
    return Target("n1", power="redfish", facts=facts, objects=found, tag="run-do", namespace="nodefall-run")


def pod(cpu: str, priority: int = 0, phase: str = "Running", owner: str = "ReplicaSet") -> dict[str, Any]:
    owners = [{"kind": owner, "name": "o", "apiVersion": "apps/v1", "controller": True}] if owner else []
    return {
        "metadata": {"name": f"p{cpu}", "namespace": "demo", "ownerReferences": owners},
        "spec": {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": phase},
    }


FREE = target()
CORDONED = target({"unschedulable": True})
TAINTED = target({"taints": [{"key": "k", "value": "old", "effect": "NoExecute"}]})
UNSCHEDULABLE = f"object{NODE_PATH}#/spec/unschedulable"
ON, OFF = (f'PATCH {NODE_PATH} {{"spec": {{"unschedulable": {value}}}}}' for value in ("true", "null"))
UNDO_TO_FREE = ([f"{OFF} unless cordoned-by-nodefall is False"], ["cordoned-by-nodefall is False"])
UNDO_TO_CORDONED = ([f"{ON} unless {UNSCHEDULABLE} is True"], [f"{UNSCHEDULABLE} is True"])
NETWORK = "condition/NetworkUnavailable"
CONDITIONS = f'PATCH {NODE_PATH}/status {{"status": {{"conditions": [{{"type": "NetworkUnavailable", '
UNAVAILABLE = CONDITIONS + '"status": "True", "reason": "Nodefall", "message": "set by an experiment"}]}}'
REMOVE_CONDITION = CONDITIONS + '"$patch": "delete"}]}}'
PATCH_AVAILABLE = CONDITIONS + '"status": "False", "reason": "RouteCreated", "message": ""}]}}'
RUNS = {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}
AVAILABLE = Target("n1", objects={NODE_PATH: {"spec": {}, "status": {"conditions": [RUNS]}}})
POD = {"namespace": "demo", "selector": "app=web"}
SCALE = {"kind": "deployment", "namespace": "demo", "name": "web", "replicas": 2}
REPLICAS = f"object{WEB}#/spec/replicas"
THREE = target(**{WEB: {"spec": {"replicas": 3}}})
ANNOTATION = f"object{DB}#/spec/template/metadata/annotations/nodefall.dev~1restarted"
RESTART = f'PATCH {DB} {{"spec": {{"template": {{"metadata": {{"annotations": {{"nodefall.dev/restarted": '
TWO = target(**{BUDGET: {"spec": {"minAvailable": 2}}})
LOW, HIGH = f"object{BUDGET}#/spec/minAvailable", f"object{BUDGET}#/spec/maxUnavailable"
UNPATCH = f'PATCH {BUDGET} {{"spec": {{"minAvailable": 2, "maxUnavailable": null}}}}'


def plain(
    inject: list[str], undo: tuple[list[str], list[str]] = ([], []), preconditions: list[str] | None = None
) -> ActionDescription:
    return ActionDescription(inject, preconditions or [], "", undo[0], undo[1], "")


TABLE: list[tuple[str, dict[str, Any], Target, ActionDescription]] = [
    ("cordon", {}, FREE, plain([ON], UNDO_TO_FREE)),
    ("cordon", {}, CORDONED, plain([ON], UNDO_TO_CORDONED)),
    (
        "network-unavailable",
        {},
        FREE,
        plain([UNAVAILABLE], ([f"{REMOVE_CONDITION} unless {NETWORK} is None"], [f"{NETWORK} is None"])),
    ),
    (
        "network-unavailable",
        {},
        AVAILABLE,
        plain([UNAVAILABLE], ([f"{PATCH_AVAILABLE} unless {NETWORK} is False"], [f"{NETWORK} is False"])),
    ),
    ("uncordon", {}, CORDONED, plain([OFF], UNDO_TO_CORDONED)),
    ("uncordon", {}, FREE, plain([OFF], UNDO_TO_FREE)),
    ("drain", {}, FREE, plain([ON, "evict pods on n1, for up to 300s"], UNDO_TO_FREE)),
    (
        "drain",
        {"disable-eviction": True, "selector": "app=web", "grace": 5, "timeout": "90s"},
        CORDONED,
        plain([ON, "delete pods on n1 (labels app=web), grace 5s, for up to 90s"], UNDO_TO_CORDONED),
    ),
    ("evict-pod", POD, FREE, plain(["evict pods on n1 (namespace demo, labels app=web)"])),
    (
        "delete-pod",
        {"namespace": "workload", "name": "web-0", "grace": 3},
        FREE,
        plain(["delete pods on n1 (namespace nodefall-run, name web-0), grace 3s"]),
    ),
    ("force-delete-pod", POD, FREE, plain(["delete pods on n1 (namespace demo, labels app=web), grace 0s"])),
    ("mark-disruption", POD, FREE, plain(["mark-disruption pods on n1 (namespace demo, labels app=web)"])),
    ("remove-finalizers", POD, FREE, plain(["remove-finalizers pods on n1 (namespace demo, labels app=web)"])),
    (
        "taint",
        {"key": "k", "value": "v", "effect": "NoExecute"},
        FREE,
        plain(
            ["taints of n1: +k=v:NoExecute"],
            (["taints of n1: -k:NoExecute unless taint/k:NoExecute is None"], ["taint/k:NoExecute is None"]),
        ),
    ),
    (
        "taint",
        {"key": "k", "effect": "NoExecute"},
        TAINTED,
        plain(
            ["taints of n1: +k=:NoExecute"],
            (["taints of n1: +k=old:NoExecute unless taint/k:NoExecute is old"], ["taint/k:NoExecute is old"]),
        ),
    ),
    (
        "untaint",
        {"key": "k"},
        TAINTED,
        plain(
            ["taints of n1: -k"],
            (["taints of n1: +k=old:NoExecute unless taint/k:NoExecute is old"], ["taint/k:NoExecute is old"]),
        ),
    ),
    ("untaint", {"key": "k", "effect": "NoSchedule"}, TAINTED, plain(["taints of n1: -k:NoSchedule"])),
    (
        "out-of-service",
        {"effect": "NoSchedule"},
        FREE,
        plain(
            [f"taints of n1: +{OUT}=nodeshutdown:NoSchedule"],
            (
                [
                    f"taints of n1: -{OUT}:NoSchedule unless taint/{OUT}:NoSchedule is None when {IS_BACK}",
                ],
                [f"taint/{OUT}:NoSchedule is None"],
            ),
            preconditions=["the machine is off", "node-ready is False"],
        ),
    ),
    (
        "scale",
        SCALE,
        THREE,
        plain(
            [f'PATCH {WEB}/scale {{"spec": {{"replicas": 2}}}}'],
            ([f'PATCH {WEB} {{"spec": {{"replicas": 3}}}} unless {REPLICAS} is 3'], [f"{REPLICAS} is 3"]),
        ),
    ),
    (
        "scale",
        SCALE | {"namespace": "workload"},
        FREE,
        plain([f'PATCH {WEB.replace("demo", "nodefall-run")}/scale {{"spec": {{"replicas": 2}}}}']),
    ),
    (
        "rollout-restart",
        {"kind": "daemonset", "namespace": "demo", "name": "db"},
        target(**{DB: {"spec": {"template": {"metadata": {"labels": {}}}}}}),
        plain(
            [f'{RESTART}"run-do"}}}}}}}}}}'],
            ([f"{RESTART}null}}}}}}}}}} unless {ANNOTATION} is None"], [f"{ANNOTATION} is None"]),
        ),
    ),
    (
        "delete-workload",
        {"kind": "deployment", "namespace": "workload", "name": "web"},
        FREE,
        plain([f"DELETE {WEB.replace('demo', 'nodefall-run')}"]),
    ),
    (
        "patch-budget",
        {"namespace": "demo", "name": "web", "max-unavailable": "50%"},
        TWO,
        plain(
            [f'PATCH {BUDGET} {{"spec": {{"minAvailable": null, "maxUnavailable": "50%"}}}}'],
            ([f"{UNPATCH} unless {LOW} is 2", f"{UNPATCH} unless {HIGH} is None"], [f"{LOW} is 2", f"{HIGH} is None"]),
        ),
    ),
]


@pytest.mark.parametrize(("name", "given", "on", "expected"), TABLE)
def test_inject_and_undo(name: str, given: dict[str, Any], on: Target, expected: ActionDescription) -> None:
    assert describe(name, given, on) == expected


def test_undo_of_delete_node_registers_the_node_and_restores_its_metadata() -> None:
    mine = {"key": "k", "value": "v", "effect": "NoSchedule"}
    others = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    found = describe("delete-node", {}, target({"unschedulable": True, "taints": [mine, others]}))
    labels = "labels/zone is {'zone': 'a'}"
    assert found == ActionDescription(
        inject=[f"DELETE {NODE_PATH}"],
        preconditions=[],
        failsafe="nodefall-run-do after 900s: systemctl restart kubelet.service",
        undo=[
            "systemctl restart kubelet.service unless the node is Ready",
            f'PATCH {NODE_PATH} {{"metadata": {{"labels": {{"zone": "a"}}}}}} unless {labels}',
            "taints of n1: +k=v:NoSchedule unless taint/k:NoSchedule is v",
            f"{ON} unless {UNSCHEDULABLE} is True",
        ],
        proof=["the node is Ready", labels, "taint/k:NoSchedule is v", f"{UNSCHEDULABLE} is True"],
        disarm="nodefall-run-do",
    )


@pytest.mark.parametrize(
    ("given", "pods", "cpu"),
    [
        ({}, [pod("500m"), pod("1", priority=2_000_000_000)], "501m"),
        ({}, [pod("0.25"), pod("1", phase="Succeeded")], "1751m"),
        ({"cpu": "1.5"}, [], "1500m"),
    ],
)
def test_preempt_requests_a_little_more_than_is_free(given: dict[str, Any], pods: list[Any], cpu: str) -> None:
    on = target(pods=pods)
    assert prepare("preempt", given, on).cpu == cpu
    classes, mine = "/apis/scheduling.k8s.io/v1/priorityclasses", "/api/v1/namespaces/default/pods"
    gone = [f"object{path}/nodefall-run-do#/metadata/name is None" for path in (mine, classes)]
    assert describe("preempt", given, on) == plain(
        [f"POST {classes}", f"POST {mine}"],
        ([f"DELETE {path}/nodefall-run-do unless {gone[i]}" for i, path in enumerate((mine, classes))], gone),
    )


def test_undo_of_create_node_deletes_only_a_node_that_the_step_created() -> None:
    nodes = "/api/v1/nodes"
    mark = f"object{nodes}/nowhere#/metadata/annotations/nodefall.dev~1made-by"
    assert describe("create-node", {"node": "nowhere"}, Target("", tag="nodefall-run-do")) == plain(
        [f"POST {nodes}"],
        ([f"DELETE {nodes}/nowhere unless {mark} is None when {mark} is nodefall-run-do"], [f"{mark} is None"]),
    )


def test_preempt_by_the_kubelet_binds_a_critical_pod() -> None:
    on = target(pods=[pod("500m"), pod("1", priority=2_000_000_000)])
    given = {"by": "kubelet"}
    assert prepare("preempt", given, on).cpu == "501m"
    mine = "/api/v1/namespaces/default/pods"
    gone = f"object{mine}/nodefall-run-do#/metadata/name is None"
    assert describe("preempt", given, on) == plain(
        [f"POST {mine}"], ([f"DELETE {mine}/nodefall-run-do unless {gone}"], [gone])
    )


REFUSED = [
    ("drain", {}, target(pods=[pod("1", owner="")]), "demo/p1: they declare no controller"),
    ("drain", {}, target(pods=[pod("1", owner="DaemonSet")]), "managed by a DaemonSet"),
    ("cordon", {}, Target("n1"), "could not be read"),
    ("evict-pod", {"namespace": "workload", "name": "x"}, Target("n1"), "has no workload"),
    ("scale", SCALE, FREE, "there is no /apis/apps/v1/namespaces/demo/deployments/web"),
    ("scale", SCALE | {"namespace": "workload"}, Target(""), "has no workload"),
    ("delete-workload", {"kind": "daemonset", "namespace": "workload", "name": "x"}, Target(""), "has no workload"),
    ("out-of-service", {}, Target("n1"), "no power control"),
    ("out-of-service", {}, target({"taints": [{"key": OUT, "effect": "NoExecute"}]}), "already"),
    ("delete-node", {}, Target("n1", objects={NODE_PATH: {}}), "fact kubelet-unit is not known"),
    ("preempt", {}, target(pods=[pod("1", priority=5000)]), "no pod with a priority below 1000"),
    ("create-node", {"node": "n1"}, FREE, "there is a node n1"),
    ("preempt", {"cpu": "3"}, FREE, "has 2000m of CPU for all pods"),
]


@pytest.mark.parametrize(("name", "given", "on", "why"), REFUSED)
def test_refusals(name: str, given: dict[str, Any], on: Target, why: str) -> None:
    with pytest.raises(Unsupported) as refused:
        prepare(name, given, on)
    assert why in refused.value.message


def test_pods_outside_the_selector_do_not_prevent_a_drain() -> None:
    """The API server evaluates the selector when the command is sent."""
    assert prepare("drain", {"selector": "app=web"}, target(pods=[pod("1", owner="")]))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("evict-pod", {"namespace": "demo"}),
        ("delete-pod", {"selector": "app=web"}),
        ("drain", {"timeout": "soon"}),
        ("taint", {"key": "k"}),
        ("taint", {"key": "k", "effect": "Never"}),
        ("patch-budget", {"namespace": "demo", "name": "web"}),
        ("patch-budget", {"namespace": "demo", "name": "web", "min-available": 1, "max-unavailable": 1}),
        ("patch-budget", {"namespace": "demo", "name": "web", "min-available": "half"}),
        ("scale", SCALE | {"replicas": -1}),
        ("scale", SCALE | {"kind": "daemonset"}),
        ("delete-workload", {"kind": "pod", "namespace": "demo", "name": "web"}),
        ("preempt", {"cpu": "lots"}),
        ("create-node", {"node": "No Where"}),
        ("preempt", {"by": "hand"}),
    ],
)
def test_invalid_parameters(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ACTIONS[name].params.model_validate(given)
