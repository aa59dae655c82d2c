"""Proofs of actions through the API: handmade timelines, and drains of a real cluster."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import ProofStatus
from chaos.core.result import StepResult
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.proof import prove
from chaos.verdicts.judge.step_matching import match_steps
from tests.kit.story import Story, experiment, plugin_registry, recording

PROVEN, UNPROVEN = ProofStatus.PROVEN, ProofStatus.UNPROVEN
REFUSAL = {"t": 10.1, "status": 429, "message": "Cannot evict pod"}
POD = {"namespace": "demo", "selector": "app=web"}
WEB = {"kind": "deployment", "namespace": "workload", "name": "web"}


def story(action: str, params: dict[str, Any], node: str = "n1", **evidence: Any) -> Story:
    """A step that begins at 10 and returns at 10.2."""
    step = Story(workload="demo").node(0, "n1", type_="LIST")
    step.act(10, action, "begin", node, params=params)
    more: dict[str, Any] = {"delivery": "answered", "exit": 0, "evidence": evidence}
    return step.act(10.2, action, "returned", node, params=params, **more)


def result(timeline: Timeline, action: str, node: str = "n1", step: str = "") -> StepResult:
    target = "target: victim, " if node else ""
    made = experiment(method=f"[{{name: {step or action}, {target}action: {action}}}]")
    matched = match_steps(made, timeline, {"victim": (node,)} if node else {}, {})
    (found,) = prove(matched.steps[0], timeline, plugin_registry())
    return found


def evictions(*uids: str, status: int = 201, refusals: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
    return [{"pod": uid, "uid": uid, "status": status, "attempts": 1, "refusals": list(refusals)} for uid in uids]


def spec(step: Story, t: float, name: str = "n1", type_: str = "MODIFIED", **fields: Any) -> Story:
    return step.add(t, "nodes", type_, {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": fields})


def unfit(step: Story, status: dict[str, Any]) -> Story:
    """The pod of the step, as it is seen after its creation."""
    made = {"metadata": {"name": "nodefall-x", "uid": "uid-x", "namespace": "default"}, "spec": {}}
    return step.add(10.3, "pods", "ADDED", made | {"status": status})


TAINT = {"key": "k", "effect": "NoSchedule"}
CASES: list[tuple[str, str, Story, ProofStatus, str]] = [
    ("cordoned", "cordon", spec(story("cordon", {}), 10.1, unschedulable=True), PROVEN, "n1 is cordoned"),
    ("not cordoned", "cordon", story("cordon", {}), UNPROVEN, "not seen"),
    ("another node", "cordon", spec(story("cordon", {}), 10.1, "n2", unschedulable=True), UNPROVEN, ""),
    ("uncordoned", "uncordon", spec(story("uncordon", {}), 10.1), PROVEN, "n1 is not cordoned"),
    ("tainted", "taint", story("taint", TAINT).node(10.1, "n1", taints=["k:NoSchedule"]), PROVEN, "k:NoSchedule"),
    ("other effect", "taint", story("taint", TAINT).node(10.1, "n1", taints=["k:NoExecute"]), UNPROVEN, ""),
    ("untainted", "untaint", story("untaint", {"key": "k"}).node(10.1, "n1"), PROVEN, "has no taint k"),
    ("node gone", "delete-node", spec(story("delete-node", {}), 10, type_="DELETED"), PROVEN, "is gone"),
    ("node stays", "delete-node", spec(story("delete-node", {}), 11), UNPROVEN, ""),
    (
        "evicted",
        "evict-pod",
        story("evict-pod", POD, pods=evictions("uid-a")).pod(10.1, "a", disruption="EvictionByEvictionAPI"),
        PROVEN,
        "1 of 1 pods have DisruptionTarget",
    ),
    (
        "another pod was evicted",
        "evict-pod",
        story("evict-pod", POD, pods=evictions("uid-a")).pod(10.1, "b", disruption="EvictionByEvictionAPI"),
        UNPROVEN,
        "",
    ),
    (
        "refused",
        "evict-pod",
        story("evict-pod", POD, pods=evictions("uid-a", status=429, refusals=(REFUSAL,))),
        PROVEN,
        "it was refused (429): Cannot evict pod",
    ),
    (
        "deleting",
        "delete-pod",
        story("delete-pod", POD, pods=evictions("uid-a")).pod(10.1, "a", deleting=True),
        PROVEN,
        "1 of 1 pods are being deleted",
    ),
    (
        "a refused deletion is a result",
        "delete-pod",
        story("delete-pod", POD, pods=evictions("uid-a", status=429, refusals=(REFUSAL,))),
        PROVEN,
        "it was refused (429): Cannot evict pod",
    ),
    (
        "accepted, and the pod remains: that is in question",
        "force-delete-pod",
        story("force-delete-pod", POD, pods=evictions("uid-a")).pod(10.1, "a", deleting=True),
        PROVEN,
        "the API server accepted 1 requests",
    ),
    (
        "not accepted",
        "force-delete-pod",
        story("force-delete-pod", POD, pods=evictions("uid-a", status=500)).pod(10.1, "a", deleting=True),
        UNPROVEN,
        "",
    ),
    (
        "gone",
        "force-delete-pod",
        story("force-delete-pod", POD, pods=evictions("uid-a")).pod(10.1, "a", type_="DELETED"),
        PROVEN,
        "gone from the API",
    ),
    (
        "preempted",
        "preempt",
        story("preempt", {}).pod(11, "a", disruption="PreemptionByScheduler"),
        PROVEN,
        "preempted a",
    ),
    (
        "nothing is preempted: that is in question",
        "preempt",
        unfit(story("preempt", {}), {"conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]}),
        PROVEN,
        "nodefall-x did not fit on n1 beside its pods",
    ),
    (
        "it fits beside the others",
        "preempt",
        unfit(story("preempt", {}), {"conditions": [{"type": "PodScheduled", "status": "True"}]}),
        UNPROVEN,
        "",
    ),
    (
        "the kubelet rejects it instead",
        "preempt",
        unfit(story("preempt", {"by": "kubelet"}), {"phase": "Failed", "reason": "OutOfcpu"}),
        PROVEN,
        "did not fit",
    ),
    (
        "by the scheduler instead",
        "preempt",
        story("preempt", {"by": "kubelet"}).pod(11, "a", disruption="PreemptionByScheduler"),
        UNPROVEN,
        "",
    ),
    (
        "by the kubelet",
        "preempt",
        story("preempt", {"by": "kubelet"}).pod(11, "a", reason="Preempting", disruption="TerminationByKubelet"),
        PROVEN,
        "the kubelet preempted a",
    ),
    (
        "by the Event of the kubelet, as its DisruptionTarget comes late",
        "preempt",
        story("preempt", {"by": "kubelet"}).event(11, "Preempting", "a", "Pod"),
        PROVEN,
        "the kubelet reported that it preempts a",
    ),
    (
        "an Event of another writer",
        "preempt",
        story("preempt", {"by": "kubelet"}).event(11, "Preempting", "a", "Pod", component="eve"),
        UNPROVEN,
        "",
    ),
    (
        "an Event before the step",
        "preempt",
        story("preempt", {"by": "kubelet"}).event(9, "Preempting", "a", "Pod"),
        UNPROVEN,
        "",
    ),
    (
        "an Event of the kubelet for the scheduler",
        "preempt",
        story("preempt", {}).event(11, "Preempting", "a", "Pod"),
        UNPROVEN,
        "",
    ),
    (
        "ended by a shutdown instead",
        "preempt",
        story("preempt", {"by": "kubelet"}).pod(11, "a", phase="Succeeded", disruption="TerminationByKubelet"),
        UNPROVEN,
        "",
    ),
    (
        "preempted elsewhere",
        "preempt",
        story("preempt", {}).pod(11, "a", node="n2", disruption="PreemptionByScheduler"),
        UNPROVEN,
        "",
    ),
    (
        "only cordoned",
        "drain",
        spec(story("drain", {}, pods=evictions("uid-a")), 10, unschedulable=True),
        UNPROVEN,
        "no pod",
    ),
    ("empty", "drain", spec(story("drain", {}, pods=[]), 10, unschedulable=True), PROVEN, "0 pods evicted"),
    (
        "drain refused",
        "drain",
        spec(story("drain", {}, pods=evictions("uid-a", refusals=(REFUSAL,))), 10, unschedulable=True),
        PROVEN,
        "1 refusals, the first: Cannot evict pod",
    ),
]


@pytest.mark.parametrize(("action", "step", "expected", "because"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_api_actions(action: str, step: Story, expected: ProofStatus, because: str) -> None:
    found = result(step.timeline(60), action)
    assert (found.proof_status, found.weak) == (expected, False), found.because
    assert because in found.because
    assert bool(found.evidence) == (expected is PROVEN)


def test_scale_is_proven_by_the_workload_or_the_response() -> None:
    step = story("scale", WEB | {"replicas": 2}, "").workload(0, "web", 3).workload(10.1, "web", 3, wanted=2)
    assert "wants 2 replicas" in result(step.timeline(60), "scale", "").because
    step = story("scale", WEB | {"replicas": 2}, "", **{"/spec/replicas": 2})
    assert result(step.timeline(60), "scale", "").proof_status is PROVEN
    other = story("scale", WEB | {"replicas": 2}, "", **{"/spec/replicas": 3})
    assert result(other.timeline(60), "scale", "").proof_status is UNPROVEN


def test_rollout_restart_is_proven_by_the_generation() -> None:
    step = story("rollout-restart", WEB, "").workload(0, "web", 3).workload(10, "web", 3, generation=2)
    assert "generation went from 1 to 2" in result(step.timeline(60), "rollout-restart", "").because
    same = story("rollout-restart", WEB, "").workload(0, "web", 3).workload(11, "web", 2)
    assert result(same.timeline(60), "rollout-restart", "").proof_status is UNPROVEN


def test_another_step_of_the_same_action_proves_nothing() -> None:
    step = story("evict-pod", POD, pods=evictions("uid-a", status=500))
    step.act(20, "evict-pod", "begin", step="again", params=POD)
    evidence = {"pods": evictions("uid-b", refusals=(REFUSAL,))}
    step.act(20.2, "evict-pod", "returned", step="again", params=POD, delivery="answered", exit=1, evidence=evidence)
    assert result(step.timeline(60), "evict-pod").proof_status is UNPROVEN


@pytest.mark.parametrize(("code", "expected"), [(200, PROVEN), (429, PROVEN), (500, UNPROVEN)])
def test_deletion_of_a_workload_is_proven_by_any_decision(code: int, expected: ProofStatus) -> None:
    step = Story(workload="demo").node(0, "n1", type_="LIST").act(10, "delete-workload", "begin", "", params=WEB)
    step.act(10.2, "delete-workload", "returned", "", params=WEB, delivery="answered", exit=code)
    assert result(step.timeline(60), "delete-workload", "").proof_status is expected


@pytest.mark.parametrize(("stored", "expected"), [(0, PROVEN), (1, UNPROVEN)])
def test_budget_patch_is_proven_by_the_response(stored: int, expected: ProofStatus) -> None:
    params = {"namespace": "demo", "name": "web", "max-unavailable": 0}
    step = story("patch-budget", params, "", **{"/spec/maxUnavailable": stored, "/spec/minAvailable": None})
    assert result(step.timeline(60), "patch-budget", "").proof_status is expected


@pytest.mark.parametrize("step", ["drain-blocked", "drain"])
def test_drains_by_kubectl_are_proven(step: str) -> None:
    found = result(recording("08-drain"), "drain", "rb-worker", step)
    assert found.proof_status is PROVEN
    assert "rb-worker is cordoned" in found.because
