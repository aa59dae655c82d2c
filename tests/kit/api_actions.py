"""Actions through the API with parameters of a small cluster, and the plan of a step of each."""

from __future__ import annotations

from typing import Any

import chaos.verdicts.assertions
from chaos.core.action import Target
from chaos.core.cluster_view import ClusterView
from chaos.core.experiment import Experiment
from chaos.core.plan import PlannedStep
from chaos.core.registry import PluginRegistry, discover
from chaos.engine.planning.planner import PlanInputs, plan_step
from tests.kit.actionkit import ACTIONS

REGISTRY = PluginRegistry(ACTIONS, discover(chaos.verdicts.assertions, "ASSERTION"))
DEMO = "/apis/apps/v1/namespaces/demo"


def experiment(action: str, given: dict[str, Any]) -> Experiment:
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    step = {"name": "do", "action": action, "with": given}
    spec = {"title": "t", "steadyState": [ready], "hypothesis": [ready], "method": [step]}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
    return REGISTRY.bind(Experiment.model_validate(head | {"spec": spec}))


NODE = {"metadata": {"labels": {}}, "spec": {}, "status": {"allocatable": {"cpu": "2"}}}
POD = {
    "metadata": {"name": "p", "namespace": "demo", "ownerReferences": [{"kind": "ReplicaSet", "controller": True}]},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"phase": "Running"},
}
OBJECTS = {
    "/api/v1/nodes/n1": NODE,
    "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1": {"items": [POD]},
    f"{DEMO}/deployments/web": {"spec": {"replicas": 3}},
    f"{DEMO}/statefulsets/web": {"spec": {"replicas": 3}},
    f"{DEMO}/daemonsets/web": {"spec": {}},
    "/apis/policy/v1/namespaces/demo/poddisruptionbudgets/web": {"spec": {"minAvailable": 2}},
}
PODS = {"namespace": "demo", "selector": "app=web"}
WEB = {"namespace": "demo", "name": "web"}
THROUGH_THE_API: list[tuple[str, dict[str, Any]]] = [
    ("cordon", {}),
    ("uncordon", {}),
    ("network-unavailable", {}),
    ("taint", {"key": "k", "effect": "NoExecute"}),
    ("untaint", {"key": "k"}),
    ("out-of-service", {}),
    ("delete-node", {}),
    ("create-node", {}),
    ("drain", {}),
    ("drain", {"disable-eviction": True}),
    ("evict-pod", PODS),
    ("delete-pod", PODS),
    ("force-delete-pod", PODS),
    ("remove-finalizers", PODS),
    ("mark-disruption", PODS),
    ("preempt", {}),
    ("preempt", {"by": "kubelet"}),
    ("scale", WEB | {"kind": "deployment", "replicas": 1}),
    ("scale", WEB | {"kind": "statefulset", "replicas": 1}),
    ("rollout-restart", WEB | {"kind": "daemonset"}),
    ("delete-workload", WEB | {"kind": "statefulset"}),
    ("patch-budget", WEB | {"min-available": 1}),
]


def api_target() -> Target:
    """The node n1, which has what these actions need."""
    return Target("n1", power="redfish", facts={"kubelet-unit": "kubelet.service"})


def planned_step(name: str, given: dict[str, Any]) -> PlannedStep:
    """The plan of one step on n1 of a run whose workload is in the namespace demo. Raises Unsupported."""
    made = experiment(name, given)
    view = ClusterView("uid", {})
    inputs = PlanInputs("run", 0.0, 1, b"", view, {}, {"n1": api_target()}, "demo", OBJECTS)
    return plan_step(made, made.spec.method[0], "n1", inputs)
