"""How long an experiment takes, by its own bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chaos.core.duration import parse_duration
from chaos.core.experiment import Expectation, Experiment, bound, parse_moment

# Defaults of Kubernetes v1.36, and 30 s for the kubelet's grace periods, which are off by default.
ASSUMED: Mapping[str, float] = {
    "kubelet.shutdownGracePeriod": 30.0,
    "kubelet.shutdownGracePeriodCriticalPods": 10.0,
    "kubelet.nodeLeaseDurationSeconds": 40.0,
    "kubelet.nodeStatusUpdateFrequency": 10.0,
    "kubelet.nodeStatusReportFrequency": 300.0,
    "controller.nodeMonitorPeriod": 5.0,
    "controller.nodeMonitorGracePeriod": 50.0,
    "apiServer.defaultNotReadyTolerationSeconds": 300.0,
    "apiServer.defaultUnreachableTolerationSeconds": 300.0,
    "pod.terminationGracePeriodSeconds": 30.0,
    "toleration(not-ready)": 300.0,
    "toleration(unreachable)": 300.0,
}


@dataclass(frozen=True, slots=True)
class ExperimentDuration:
    """Seconds from the first step on. ``expected``: to the last deadline; ``at_most``: to the end of the recovery.

    ``assumed``: the facts of a cluster that the expected duration assumes; it is never longer than ``at_most``.
    """

    expected: float
    at_most: float
    assumed: Mapping[str, float]


def experiment_duration(experiment: Experiment, facts: Mapping[str, float] = ASSUMED) -> ExperimentDuration:
    """The duration of one run; ``facts`` has every fact that bounds refer to. Steps count as immediate."""
    spec = experiment.spec
    begins = _step_begins(experiment)
    ends = [_end(expectation, begins, facts) for expectation in spec.hypothesis]
    recovery = parse_duration(spec.recovery.within) if spec.recovery else 0.0
    max_duration = parse_duration(spec.max_duration)
    names = {name for expectation in spec.hypothesis for name in _facts(expectation)}
    expected = max([*begins.values(), *ends])
    return ExperimentDuration(
        min(expected, max_duration), max_duration + recovery, {name: facts[name] for name in sorted(names)}
    )


def _step_begins(experiment: Experiment) -> dict[str, float]:
    begins: dict[str, float] = {}
    previous = 0.0
    for step in experiment.spec.method:
        previous = begins[step.name] = _moment(step.after, begins, previous)
    return begins


def _moment(after: str | None, begins: Mapping[str, float], default: float) -> float:
    if after is None:
        return default
    moment = parse_moment(after)
    return begins.get(moment.step, default) + moment.offset


def _end(expectation: Expectation, begins: Mapping[str, float], facts: Mapping[str, float]) -> float:
    """When the expectation is decided at the latest."""
    anchor = _moment(expectation.after, begins, 0.0)
    if expectation.within is not None:
        hold = _seconds(expectation.for_, facts) if expectation.for_ else 0.0
        return anchor + _seconds(expectation.within, facts) + hold
    until = expectation.never or (expectation.always if not isinstance(expectation.always, bool) else None)
    if until is None:
        return anchor
    return anchor + _seconds(until.for_, facts) if until.for_ else _moment(until.until, begins, anchor)


def _seconds(text: str, facts: Mapping[str, float]) -> float:
    return bound(text).seconds(facts.get) or 0.0


def _facts(expectation: Expectation) -> set[str]:
    until = expectation.never or (expectation.always if not isinstance(expectation.always, bool) else None)
    texts = [expectation.within, expectation.for_, until.for_ if until else None]
    return {name for text in texts if text for name in bound(text).names}
