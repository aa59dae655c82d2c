"""Needs of an experiment, derived from its steps, assertions and bounds."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.action import Scope
from chaos.core.assertion import HostFactAssertion
from chaos.core.duration import satisfies
from chaos.core.experiment import Experiment
from chaos.engine.observations import Need

_GRACE = "shutdownGracePeriod"


def experiment_needs(experiment: Experiment) -> frozenset[Need]:
    """Needs of all steps and assertions together."""
    return frozenset(_needs(experiment))


def _needs(experiment: Experiment) -> Iterator[Need]:
    spec = experiment.spec
    steps = [step.bound for step in spec.method]
    on_host = any(step.action.on_host and step.action.scope is Scope.NODE for step in steps)
    assertions = [each.bound.assertion for each in spec.expectations if each.bound]
    of_host = [assertion for assertion in assertions if isinstance(assertion, HostFactAssertion)]
    if on_host or of_host:
        yield Need.HOST
    if any("containers" in assertion.host_facts for assertion in of_host):
        yield Need.CONTAINERS
    if on_host:
        yield Need.ROOT
    if any(step.action.takes_down for step in steps):
        yield Need.DOWN
    if any(step.terminates_pods for step in steps):
        yield Need.ENDS_PODS
    kubelet = spec.requires.get("kubelet", {})
    if any(step.needs_on("linux").logind for step in steps):
        yield Need.LOGIND
        if any(name.startswith(_GRACE) and not satisfies(0.0, text) for name, text in kubelet.items()):
            yield Need.GRACEFUL
    if kubelet or "kubelet." in experiment.model_dump_json(include={"spec": {"hypothesis", "abort"}}):
        yield Need.KUBELET_CONFIG
