"""The limits of the inventory hold at the moment of each injection, not only when it was planned."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.core.action import Action, Undo
from chaos.core.errors import Aborted
from chaos.core.experiment import Experiment
from chaos.core.plan import Plan, PlannedStep
from chaos.core.ports import Response
from chaos.core.registry import PluginRegistry, discover
from chaos.engine.connection import ClusterConnection
from chaos.engine.guards import InjectionLimits
from chaos.engine.load import LoadedExperiment
from chaos.engine.observations import BUDGETS
from tests.kit.fakes import FakeKube
from tests.kit.preflightkit import inventory

REGISTRY = PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))
ROLE = "node-role.kubernetes.io"
PLANE, ETCD = {f"{ROLE}/control-plane": ""}, {f"{ROLE}/etcd": "true"}
OTHERS = {"c": PLANE, "w1": {}, "w2": {}}


def step(node: str, action: str = "kubelet-stop") -> PlannedStep:
    return PlannedStep("do" if action == "kubelet-stop" else action, action, node, {}, {}, (), Undo(), ())


def experiment(steps: tuple[PlannedStep, ...]) -> Experiment:
    ready = {"assert": "nodes-ready"}
    method = [{"name": name, "action": action} for name, action in dict.fromkeys((s.step, s.action) for s in steps)]
    spec = {"title": "t", "steadyState": [ready], "hypothesis": [ready], "method": method}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
    return REGISTRY.bind(Experiment.model_validate(head | {"spec": spec}))


def listed(*items: dict[str, Any]) -> Response:
    return Response(200, json.dumps({"items": items}).encode(), {})


def node(name: str, labels: dict[str, str], ready: bool) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"conditions": conditions}}


def pod(name: str, on: str) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": on},
        "status": status,
    }


def budget(allowed: int) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return {"metadata": {"name": "b", "namespace": "default"}, "spec": spec, "status": {"disruptionsAllowed": allowed}}


def limits_of(
    nodes: dict[str, dict[str, str]],
    ill: str = "",
    steps: tuple[PlannedStep, ...] = (step("w1"),),
    allowed: int = 1,
    overridden: tuple[str, ...] = (),
    namespace: str = "",
    **limits: Any,
) -> InjectionLimits:
    kube = FakeKube(
        {
            "/api/v1/nodes": listed(*(node(name, labels, name not in ill.split()) for name, labels in nodes.items())),
            "/api/v1/pods": listed(pod("web-1", "w1")),
            BUDGETS: listed(budget(allowed)),
        }
    )
    connection = cast("ClusterConnection", SimpleNamespace(kube=kube, inventory=inventory(limits=limits)))
    plan = Plan("r", "x", "", "uid", 0.0, 0, (), steps, namespace, overridden=overridden)
    loaded = cast("LoadedExperiment", SimpleNamespace(experiment=experiment(steps)))
    return InjectionLimits(loaded, plan, connection)


REFUSED = [
    (limits_of(OTHERS, ill="w2"), "too few Ready workers: 0 would stay Ready"),
    (limits_of(OTHERS, minReadyNodes=2), "limits.minReadyNodes is 2"),
    (limits_of(OTHERS, ill="c w2", minReadyNodes=0), "none would stay Ready"),
    (limits_of(OTHERS, steps=(step("w1"), step("w2"))), "0 would stay Ready"),  # of all steps together
    (limits_of(OTHERS, allowed=0), "budgets: w1: budget default/b allows 0"),
    (limits_of({"w1": ETCD, "e2": ETCD, "e3": ETCD, "w2": {}}, ill="e2"), "quorum: without w1 only 1 of 3"),
]


@pytest.mark.parametrize(("limits", "why"), REFUSED)
def test_a_step_that_would_exceed_a_limit_is_not_done(limits: InjectionLimits, why: str) -> None:
    with pytest.raises(Aborted, match=why) as caught:
        limits.check([step("w1")])
    assert caught.value.message.startswith("step do was not done: ")


@pytest.mark.parametrize(
    "limits",
    [
        limits_of(OTHERS),
        limits_of(OTHERS, allowed=0, budgets="ignore"),
        limits_of(OTHERS, allowed=0, overridden=("budgets: w1: budget default/b allows 0",)),
        limits_of(OTHERS, allowed=0, namespace="default"),  # of the run's own workload
        limits_of({"w2": {}}, steps=(step("w1"),)),  # a step has deleted the Node
    ],
)
def test_a_step_within_the_limits_is_done(limits: InjectionLimits) -> None:
    limits.check([step("w1")])


@pytest.mark.parametrize("action", ["power-on", "kubelet-start", "uncordon"])
def test_a_repair_is_done_in_any_state(action: str) -> None:
    limits = limits_of(OTHERS, ill="w1 w2", steps=(step("w1", action), step("w1")))
    limits.check([step("w1", action)])


def test_without_an_answer_nothing_is_done() -> None:
    limits = limits_of(OTHERS)
    cast("FakeKube", limits.connection.kube).answers["/api/v1/nodes"] = Response(503, b"", {})
    with pytest.raises(Aborted, match="step do was not done: GET /api/v1/nodes"):
        limits.check([step("w1")])
