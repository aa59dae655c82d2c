"""What an experiment may bring down, and how long it takes by its own bounds: as far as known without a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from chaos.core.action import AnyAction, UndoKind
from chaos.core.duration import parse_duration
from chaos.core.experiment import Expectation, Experiment, bound, parse_moment
from chaos.core.target_spec import TargetSpec, describe_labels
from chaos.core.text import count_of

# Defaults of Kubernetes v1.36, and 30 s for the kubelet's grace periods, which are off by default.
ASSUMED: Mapping[str, float] = {
    "kubelet.featureGates.GracefulNodeShutdown": 1.0,
    "kubelet.featureGates.WindowsGracefulNodeShutdown": 1.0,
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


class BlastRadius(Struct, frozen=True):
    """``nodes``: how many at once, at most; ``shares``: percentages of nodes, which are counted on the cluster.

    ``targets``: each in words; ``takes_down``: machines stop; ``on_hosts``: operations on machines, besides the
    API; ``irreversible``: steps that cannot be undone.
    """

    nodes: int
    shares: tuple[str, ...]
    targets: tuple[str, ...]
    actions: tuple[str, ...]
    takes_down: bool
    on_hosts: bool
    irreversible: tuple[str, ...]

    @property
    def rank(self) -> tuple[bool, int, int, bool]:
        """Greater for a worse one: machines that go down, then the largest share, then the number of nodes."""
        return self.takes_down, max(map(_percent, self.shares), default=0), self.nodes, self.on_hosts

    def __str__(self) -> str:
        count = [count_of(self.nodes, "node")] if self.nodes or not self.shares else []
        effect = "machines go down" if self.takes_down else "machines stay up" if self.on_hosts else "API objects only"
        undo = f", {', '.join(self.irreversible)} cannot be undone" if self.irreversible else ""
        return f"{' and '.join([*count, *self.shares])}, {effect}{undo}"


def blast_radius(experiment: Experiment) -> BlastRadius:
    """The blast radius of one run: all nodes of the targets that its steps act on."""
    spec = experiment.spec
    used = {step.target for step in spec.method if step.target}
    targets = {name: target for name, target in spec.targets.items() if name in used}
    counts = [str(target.count) for target in targets.values()]
    actions = [step.bound.action for step in spec.method]
    return BlastRadius(
        nodes=sum(int(count) for count in counts if not count.endswith("%")),
        shares=tuple(
            f"{target.count} of {_selected(target)}" for target in targets.values() if str(target.count).endswith("%")
        ),
        targets=tuple(f"{name}: {target.count} of {_selected(target)}" for name, target in targets.items()),
        actions=tuple(dict.fromkeys(action.name for action in actions)),
        takes_down=any(action.takes_down or action.may_crash for action in actions),
        on_hosts=any(action.on_host for action in actions),
        irreversible=tuple(step.name for step in spec.method if _is_irreversible(step.bound.action, step.with_)),
    )


def worst(radii: list[BlastRadius]) -> BlastRadius:
    """The worst of them; there is at least one."""
    return max(radii, key=lambda radius: radius.rank)


def _selected(target: TargetSpec) -> str:
    """``workers of zone a that run the workload``."""
    system = {"linux": "Linux ", "windows": "Windows "}.get(target.os or "", "")
    what = f"{system}{target.role or 'node'}s" if not target.nodes else ", ".join(target.nodes)
    labels = describe_labels(target.match_labels, target.match_expressions)
    return (
        what
        + (f" of zone {target.zone}" if target.zone else "")
        + (f" with {labels}" if labels else "")
        + (f" but {', '.join(target.except_)}" if target.except_ else "")
        + (f" that run {target.runs}" if target.runs else "")
        + (" in different zones" if target.spread else "")
    )


def _is_irreversible(action: AnyAction, given: dict[str, Any]) -> bool:
    return (
        action.undo_kind is UndoKind.IRREVERSIBLE
        or any(given.get(parameter) is True for parameter in action.irreversible_params)
        or bool(action.undo_param and given.get(action.undo_param) is None)
    )


def _percent(share: str) -> int:
    return int(share.partition("%")[0])


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
