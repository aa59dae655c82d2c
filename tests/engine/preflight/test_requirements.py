"""Needs of experiments, derived from their steps, assertions and bounds."""

from __future__ import annotations

from typing import Any

import pytest

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.core.action import Action
from chaos.core.experiment import Experiment
from chaos.core.registry import PluginRegistry, discover
from chaos.engine.observations import Need
from chaos.engine.preflight.collect import experiment_needs

REGISTRY = PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))
READY = {"assert": "nodes-ready", "with": {"nodes": "all"}, "within": "5s"}
GRACE = {"requires": {"kubelet": {"shutdownGracePeriod": ">0"}}}
NO_GRACE = {"requires": {"kubelet": {"shutdownGracePeriod": "0"}}}
TAINT = {"key": "example.com/x"}
ON_HOST = {Need.HOST, Need.ROOT}
HELD = {"assert": "inhibitor-held", "with": {"node": "victim"}, "within": "5s"}
ONE = {"assert": "at-most-one", "with": {"namespace": "default"}, "always": {"for": "5s"}}
BOUND = READY | {"within": "kubelet.shutdownGracePeriod + 5s"}


def experiment(action: str, given: dict[str, Any], more: dict[str, Any]) -> Experiment:
    step = {"name": "s", "action": action, "target": "victim", "with": given}
    spec = {"title": "t", "targets": {"victim": {"role": "worker"}}, "steadyState": [READY], "hypothesis": [READY]}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
    return REGISTRY.bind(Experiment.model_validate(head | {"spec": spec | {"method": [step]} | more}))


@pytest.mark.parametrize(
    ("action", "given", "more", "expected"),
    [
        ("cordon", {}, {}, set()),
        ("taint", TAINT | {"effect": "NoSchedule"}, {}, set()),
        ("taint", TAINT | {"effect": "NoExecute"}, {}, {Need.ENDS_PODS}),
        ("drain", {}, {}, set()),  # evictions respect budgets
        ("cordon", {}, {"hypothesis": [HELD]}, {Need.HOST}),
        ("cordon", {}, {"hypothesis": [BOUND]}, {Need.KUBELET_CONFIG}),
        ("kubelet-stop", {}, {}, ON_HOST | {Need.ENDS_PODS}),
        ("kubelet-restart", {}, {}, ON_HOST),
        ("power-cut", {}, {}, ON_HOST | {Need.ENDS_PODS, Need.DOWN}),
        ("poweroff", {}, {}, ON_HOST | {Need.ENDS_PODS, Need.DOWN, Need.LOGIND}),
        ("poweroff", {"force": True}, {}, ON_HOST | {Need.ENDS_PODS, Need.DOWN}),
        ("cordon", {}, {"hypothesis": [ONE]}, {Need.HOST, Need.CONTAINERS}),
        ("poweroff", {}, GRACE, set(Need) - {Need.CONTAINERS}),
        ("poweroff", {}, GRACE | {"allow": ["ungraceful"]}, set(Need) - {Need.GRACEFUL, Need.CONTAINERS}),
        ("poweroff", {}, NO_GRACE, set(Need) - {Need.GRACEFUL, Need.CONTAINERS}),
        ("kubelet-stop", {}, GRACE, ON_HOST | {Need.ENDS_PODS, Need.KUBELET_CONFIG}),
    ],
)
def test_needs(action: str, given: dict[str, Any], more: dict[str, Any], expected: set[Need]) -> None:
    assert experiment_needs(experiment(action, given, more)) == expected
