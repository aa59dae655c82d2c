"""Durations that a reader asks for first, measured from the first step, each with the bound that an expectation set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from chaos.core.kube import Node, Pod, Workload, controller_of, is_finished, is_ready, pod_condition
from chaos.core.result import RunResult
from chaos.core.timeline import History, Timeline, Version
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.outline import operator_of, origin, ready_names, verdicts


@dataclass(frozen=True, slots=True)
class Measure:
    """``seconds``: None if the moment did not come while the run observed. ``bound``: in seconds, None without one.

    ``about`` names what was slowest, or what is missing. ``seq``: the entry that ended the duration, None without one.
    """

    name: str
    seconds: float | None
    about: str
    bound: float | None = None
    seq: int | None = None

    @property
    def is_late(self) -> bool:
        """Whether the bound was missed."""
        return self.bound is not None and (self.seconds is None or self.seconds > self.bound)


_NOT_READY = "NotReady after"
_SAME_MOMENT = 0.1  # seconds
_T = TypeVar("_T", Node, Pod, Workload)
_Moment = tuple[float, int, str]  # epoch seconds, entry, name of the object


def measures(result: RunResult, timeline: Timeline) -> list[Measure]:
    """The durations that apply to this run: one that began is listed even if its end was never observed."""
    if not any(step.begin is not None for step in result.steps) or not timeline.entries:
        return []
    fault, targets = origin(result), {node for nodes in result.targets.values() for node in nodes}
    nodes = {name: timeline.nodes[name] for name in sorted(targets) if name in timeline.nodes}
    found = [
        _not_ready(nodes, fault),
        _pods_ended(timeline, targets, fault),
        _replaced(timeline, targets, fault),
        _unnoticed(result),
        _not_available(timeline, fault),
        _recovered(nodes, fault),
    ]
    return [_with_bound(measure, result, fault) for measure in found if measure]


def _not_ready(nodes: dict[str, History[Node]], fault: float) -> Measure | None:
    firsts = [(v.t, v.seq, name) for name, h in nodes.items() if (v := _first(h, fault, lambda n: not is_ready(n)))]
    return _slowest(_NOT_READY, firsts, fault) if firsts else None


def _recovered(nodes: dict[str, History[Node]], fault: float) -> Measure | None:
    lost = {name: v.t for name, h in nodes.items() if (v := _first(h, fault, lambda n: not is_ready(n)))}
    if not lost:
        return None
    missing = sorted(name for name in lost if not _is_up(nodes[name]))
    if missing:
        return Measure("Recovered after", None, f"{some(missing)} not Ready at the end")
    ready = [(v.t, v.seq, name) for name in lost if (v := _ready_for_good(nodes[name]))]
    return _slowest("Recovered after", ready, fault)


def _is_up(history: History[Node]) -> bool:
    return not history.last.is_deleted and is_ready(history.last.object)


def _ready_for_good(history: History[Node]) -> Version[Node] | None:
    """The version since which the node is Ready until the end."""
    since = None
    for version in reversed(history.versions):
        if version.is_deleted or not is_ready(version.object):
            break
        since = version
    return since


def _pods_ended(timeline: Timeline, targets: set[str], fault: float) -> Measure | None:
    """The last end of a pod that ran on a target at the first step, of those that ended at all."""
    pods = [history for history in timeline.pods.values() if _runs_on(history, targets, fault)]
    ends = [(v.t, v.seq, h.last.object.metadata.name) for h in pods if (v := _end(h, fault))]
    if not ends:
        return None
    slowest = _slowest("Last pod ended after", ends, fault)
    return Measure(slowest.name, slowest.seconds, f"{len(ends)} of {len(pods)} pods ended", seq=slowest.seq)


def _runs_on(history: History[Pod], nodes: set[str], t: float) -> bool:
    version = history.at(t)
    if version is None or version.is_deleted or is_finished(version.object):
        return False
    spec = version.object.spec
    return bool(spec and spec.node_name in nodes)


def _end(history: History[Pod], after: float) -> Version[Pod] | None:
    return next((v for v in history if v.t >= after and (v.is_deleted or is_finished(v.object))), None)


def _replaced(timeline: Timeline, targets: set[str], fault: float) -> Measure | None:
    """The last replacement, on another node, of the pods that ran on a target."""
    owners = {
        owner.uid
        for history in timeline.pods.values()
        if _runs_on(history, targets, fault) and (owner := controller_of(history.last.object)) and _moves(owner.kind)
    }
    new = [history for history in timeline.pods.values() if _is_replacement(history, owners, targets, fault)]
    ready = [(v.t, v.seq, h.last.object.metadata.name) for h in new if (v := _first(h, fault, _pod_is_ready))]
    if not new:
        return None
    if not ready:
        return Measure("Replacements Ready after", None, f"0 of {len(new)} replacements were Ready")
    slowest = _slowest("Replacements Ready after", ready, fault)
    return Measure(slowest.name, slowest.seconds, f"{len(ready)} of {len(new)} replacements", seq=slowest.seq)


def _moves(kind: str) -> bool:
    return kind not in ("DaemonSet", "Node")


def _is_replacement(history: History[Pod], owners: set[str], targets: set[str], fault: float) -> bool:
    last = history.last.object
    owner = controller_of(last)
    is_new = history.first_time > fault and owner is not None and owner.uid in owners
    return is_new and (last.spec is None or last.spec.node_name not in targets)


def _pod_is_ready(pod: Pod) -> bool:
    ready = pod_condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def _unnoticed(result: RunResult) -> Measure | None:
    """The longest time for which the API reported something Ready on a machine that was off."""
    longest = max(result.unnoticed, key=lambda each: each.seconds, default=None)
    if longest is None:
        return None
    end = "" if longest.is_over else ", until the end"
    return Measure("Unnoticed for", longest.seconds, f"{ready_names(longest)}{end}", seq=longest.evidence[-1])


def _not_available(timeline: Timeline, fault: float) -> Measure | None:
    """The longest time that a Deployment or StatefulSet had fewer available replicas than desired."""
    longest: tuple[float, str, int | None] | None = None
    for (plural, _, name), history in sorted(timeline.workloads.items()):
        if plural not in ("deployments", "statefulsets"):
            continue
        for begin, end, seq in _short_times(history, timeline.end):
            if end > fault and (longest is None or end - max(begin, fault) > longest[0]):
                longest = (end - max(begin, fault), name, seq)
    if longest is None:
        return None
    seconds, name, seq = longest
    return Measure("Not available for", seconds, name if seq is not None else f"{name}, until the end", seq=seq)


def _short_times(history: History[Workload], until: float) -> Iterator[tuple[float, float, int | None]]:
    """Begin, end and last entry of each time with too few replicas; without an entry if it lasts until the end."""
    begin: float | None = None
    for version in history:
        is_short = not version.is_deleted and _is_short(version.object)
        if is_short and begin is None:
            begin = version.t
        elif not is_short and begin is not None:
            yield begin, version.t, version.seq
            begin = None
    if begin is not None:
        yield begin, until, None


def _is_short(workload: Workload) -> bool:
    desired = workload.spec.replicas if workload.spec else None
    available = (workload.status.available_replicas if workload.status else None) or 0
    return desired is not None and available < desired


def _first(history: History[_T], after: float, holds: Callable[[_T], bool]) -> Version[_T] | None:
    return next((v for v in history if v.t >= after and not v.is_deleted and holds(v.object)), None)


def _slowest(name: str, moments: Iterable[_Moment], fault: float) -> Measure:
    t, seq, about = max(moments)
    return Measure(name, t - fault, about, seq=seq)


def some(names: list[str]) -> str:
    """One name, or one and how many more."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _with_bound(measure: Measure, result: RunResult, fault: float) -> Measure:
    """Add the earliest deadline of the expectations that wanted this moment."""
    if measure.seconds is None:
        return measure
    deadlines = [v.deadline for v in verdicts(result) if _is_about(v, measure, fault)]
    bound = min((deadline - fault for deadline in deadlines if deadline is not None), default=None)
    return Measure(measure.name, measure.seconds, measure.about, bound, measure.seq)


def _is_about(verdict: Verdict, measure: Measure, fault: float) -> bool:
    """Whether the expectation wanted the moment by its deadline: it held then, or the moment came too late.

    Only what is to happen within a time does so: that something never happens, or always is so, bounds no moment.
    """
    if operator_of(verdict) != "within" or verdict.deadline is None or verdict.at is None or measure.seconds is None:
        return False
    if verdict.deadline <= fault:
        return False
    moment = fault + measure.seconds
    if verdict.status is Status.HELD:
        return measure.seq in verdict.evidence and abs(verdict.at - moment) < _SAME_MOMENT
    is_missed = verdict.status is Status.VIOLATED and verdict.at >= verdict.deadline and moment > verdict.deadline
    return is_missed and (measure.seq in verdict.evidence or _wanted_not_ready(verdict, measure))


def _wanted_not_ready(verdict: Verdict, measure: Measure) -> bool:
    """Whether a node should have lost its readiness: what comes after the deadline is no evidence any more."""
    is_condition = measure.name == _NOT_READY and verdict.assertion == "node-condition"
    return is_condition and verdict.expected.startswith(("Ready is False", "Ready is Unknown"))
