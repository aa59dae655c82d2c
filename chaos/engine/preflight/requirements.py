"""Needs of an experiment, derived from its steps, assertions and bounds."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.action import Scope
from chaos.core.assertion import HostFactAssertion
from chaos.core.duration import satisfies
from chaos.core.experiment import Experiment
from chaos.core.registry import PluginRegistry
from chaos.engine.preflight.observations import Need

_GRACE = "shutdownGracePeriod"


def experiment_needs(experiment: Experiment, registry: PluginRegistry) -> frozenset[Need]:
    """Needs of all steps and assertions together."""
    return frozenset(_needs(experiment, registry))


def _needs(experiment: Experiment, registry: PluginRegistry) -> Iterator[Need]:
    spec = experiment.spec
    steps = [(registry.actions[step.action], step.with_) for step in spec.method]
    steps_with_params = [(action, action.params.model_validate(with_)) for action, with_ in steps]
    assertions = [e.assert_ for e in (*spec.steady_state, *spec.hypothesis, *spec.abort) if e.assert_]
    on_host = any(action.on_host and action.scope is Scope.NODE for action, _ in steps_with_params)
    of_host = [a for a in (registry.assertions[name] for name in assertions) if isinstance(a, HostFactAssertion)]
    if on_host or of_host:
        yield Need.HOST
    if any("containers" in assertion.host_facts for assertion in of_host):
        yield Need.CONTAINERS
    if on_host:
        yield Need.ROOT
    if any(action.takes_down for action, _ in steps_with_params):
        yield Need.DOWN
    if any(action.terminates_pods(params) for action, params in steps_with_params):
        yield Need.ENDS_PODS
    kubelet = spec.requires.get("kubelet", {})
    if any(action.uses_logind(params) for action, params in steps_with_params):
        yield Need.LOGIND
        if any(name.startswith(_GRACE) and not satisfies(0.0, text) for name, text in kubelet.items()):
            yield Need.GRACEFUL
    if kubelet or "kubelet." in experiment.model_dump_json(include={"spec": {"hypothesis", "abort"}}):
        yield Need.KUBELET_CONFIG
