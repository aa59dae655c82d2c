"""What an experiment needs of a cluster and its hosts, as its steps, questions and bounds say."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.signs import Need
from chaos.model.action import Action, Scope
from chaos.model.assertion import AsksHosts
from chaos.model.catalogue import Catalogue
from chaos.model.experiment import Experiment, Step
from chaos.model.requirement import satisfies

_GRACE = "shutdownGracePeriod"


def needs(experiment: Experiment, catalogue: Catalogue) -> frozenset[Need]:
    """Of all its steps and questions together."""
    return frozenset(_needs(experiment, catalogue))


def _needs(experiment: Experiment, catalogue: Catalogue) -> Iterator[Need]:
    spec = experiment.spec
    actions = [catalogue.actions[step.action] for step in spec.method]
    asked = [e.assert_ for e in (*spec.steady_state, *spec.hypothesis, *spec.abort) if e.assert_]
    on_host = any(action.on_host and action.scope is Scope.NODE for action in actions)
    if on_host or any(isinstance(catalogue.assertions[name], AsksHosts) for name in asked):
        yield Need.HOST
    if on_host:
        yield Need.ROOT
    if any(action.takes_down for action in actions):
        yield Need.DOWN
    if any(_ends_pods(catalogue.actions[step.action], step) for step in spec.method):
        yield Need.ENDS_PODS
    kubelet = spec.requires.get("kubelet", {})
    if any(action.asks_logind for action in actions):
        yield Need.LOGIND
        if any(name.startswith(_GRACE) and not satisfies(0.0, text) for name, text in kubelet.items()):
            yield Need.GRACEFUL
    if kubelet or "kubelet." in experiment.model_dump_json(include={"spec": {"hypothesis", "abort"}}):
        yield Need.KUBELET_CONFIG


def _ends_pods(action: Action, step: Step) -> bool:
    return action.ends_pods(action.params.model_validate(step.with_))
