"""Did a graceful shutdown end the pods in the order of their priority?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from pydantic import Field

from chaos.judge.container_termination import Interval, earliest_of, end_of, finished_version, stop_times
from chaos.judge.facts import configz_at
from chaos.judge.pods import disruption, pod_at
from chaos.judge.selection import PodSetParams, Selection
from chaos.judge.shutdown import group_of, groups_of
from chaos.judge.signals import mask
from chaos.model.assertion import Undecidable, View
from chaos.model.experiment import Model
from chaos.model.kube import full_name
from chaos.model.signal import Sample, Signal, Subject, SubjectSet

_MIN_GRACE = 2.0  # seconds: a container is never stopped with less (facts 1.3)
_SLACK = 2.0  # seconds: for a kill that takes its time; Events and ends are whole seconds besides


class Params(Model):
    node: str = Field(description="a target, a node's name, or all")


@dataclass(frozen=True, slots=True)
class _Pod:
    name: str
    stop: Interval | None  # when the kubelet began to stop it
    end: Interval | None
    is_by_kubelet: bool

    @property
    def latest_stop(self) -> Interval | None:
        """A moment at which it was being stopped at the latest."""
        return self.stop or (self.end if self.is_by_kubelet else None)


@dataclass(frozen=True, slots=True)
class _Group:
    """Pods that are ended together. ``soonest``: their turn did not begin before this."""

    priority: int
    seconds: float
    pods: tuple[_Pod, ...]
    earliest_start: float

    @property
    def start(self) -> Interval | None:
        """When its turn began."""
        known = [pod.stop for pod in self.pods if pod.stop]
        return earliest_of(known) if known else None

    def __str__(self) -> str:
        return f"the group of priority {self.priority}"


def _violations(groups: list[_Group]) -> Iterator[Sample]:
    """What certainly was not as it should be, each from when it was seen."""
    for group in groups:
        begun = group.start
        for pod in group.pods:
            allowed = max(group.seconds, _MIN_GRACE) + _SLACK
            if pod.end and begun and pod.end.lo > begun.hi + allowed:
                late = f"{pod.name} ended {pod.end.lo - begun.hi:.0f}s after the turn of {group} began"
                yield Sample(pod.end.t, False, pod.end.seq, f"{late}, which has {group.seconds:g}s")
    for earlier, later in combinations(groups, 2):
        over = (earlier.start.lo if earlier.start else earlier.earliest_start) + earlier.seconds
        for pod in earlier.pods:
            for other in later.pods:
                stopped = other.latest_stop
                if pod.end and stopped and stopped.hi <= pod.end.lo and stopped.hi < over:
                    seen = f"{other.name} was stopped before {pod.name} of {earlier} had ended"
                    yield Sample(max(stopped.t, pod.end.t), False, stopped.seq, seen)
    for earlier, later in pairwise(groups):
        if earlier.start and later.start and later.start.lo > earlier.start.hi + earlier.seconds + _SLACK:
            waited = later.start.lo - earlier.start.hi
            seen = f"the turn of {later} began {waited:.0f}s after that of {earlier}, which has {earlier.seconds:g}s"
            yield Sample(later.start.t, False, later.start.seq, seen)


def _unknown_reasons(groups: list[_Group]) -> Iterator[str]:
    """Why the order is not known, or not known yet."""
    if len(groups) < 2:
        yield "its pods are not in several groups of priority"
    for pod in (pod for group in groups for pod in group.pods):
        if pod.end is None:
            yield f"it was not seen when {pod.name} ended"
        if pod.stop is None:
            yield f"it was not seen when the kubelet began to stop {pod.name}"
    for earlier, later in pairwise(groups):
        one, two = earlier.start, later.start
        ends = [pod.end.hi for pod in earlier.pods if pod.end]
        if one and two and ends and earlier.seconds and two.lo < max(ends) and two.lo < one.hi:
            yield f"the turns of {earlier} and {later} began in the same second"


def _signal(groups: list[_Group]) -> Signal:
    broken = min(_violations(groups), key=lambda s: s.t, default=None)
    doubt = next(_unknown_reasons(groups), None)
    moments = [m for group in groups for pod in group.pods for m in (pod.stop, pod.end) if m]
    waiting = Sample(float("-inf"), None, None, doubt or "its pods had not ended yet")
    if broken:  # so it never was in order before either
        return Signal((Sample(float("-inf"), False, None, "its pods had not ended yet"), broken))
    if doubt:
        return Signal((waiting,))
    last = max(moments, key=lambda m: m.t)
    order = ", ".join(f"{len(group.pods)} of priority {group.priority}" for group in groups)
    return Signal((waiting, Sample(last.t, True, last.seq, f"its pods ended group by group: {order}")))


class TerminationOrder:
    """The kubelet ends its pods by priority: a group's turn begins when the one before has ended or its time is over.

    The groups are those of the kubelet's configuration when judging starts: shutdownGracePeriodByPodPriority, else
    normal pods and critical ones (facts 1.2); a group without pods takes no time. Static pods and pods that were
    ending already are left out. When the kubelet began to stop a pod is told by its Killing Event or its journal, when
    it ended by its containers' state: both by the node's clock in whole seconds, so what happens within a second is
    not known to be in order. True once all have ended.
    """

    name = "termination-order"
    summary = "a graceful shutdown ends pods group by group in the order of priority, each in its seconds"
    example = (
        "{assert: termination-order, with: {node: victim}, after: power-off, within: kubelet.shutdownGracePeriod + 10s}"
    )
    needs = (
        "the kubelet's configuration, its Killing Events or its journal, and the end of each pod's containers, in at "
        "least two groups of priority that do not end at once"
    )
    params = Params
    node_fields = ("node",)
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        subjects = tuple(
            Subject(node, mask(_signal(_groups(node, view)), view.timeline, "pods")) for node in view.nodes(params.node)
        )
        return SubjectSet(
            "pods end group by group, in the order of priority", subjects, empty_reason="no node was seen"
        )


def _groups(node: str, view: View) -> list[_Group]:
    """The groups that have pods, lowest priority first. Raises Undecidable."""
    config = configz_at(view.timeline, node, view.anchor)
    seconds = None if config is None else groups_of(config)
    if seconds is None:
        raise Undecidable(f"the kubelet configuration of {node} was not read")
    if not seconds:
        raise Undecidable(f"the kubelet of {node} has no graceful shutdown", "a node where it is configured")
    stopped = stop_times(view.timeline, node, view.anchor)
    pods: dict[int, list[_Pod]] = {priority: [] for priority in seconds}
    chosen = PodSetParams.model_validate({"node": node, "except": ["finished", "static", "terminating"]})
    for history in Selection(chosen, view).freeze():
        pod = pod_at(history, view.anchor) or history.last.object
        end = finished_version(history)
        by_kubelet = end is not None and disruption(end.object) == "TerminationByKubelet"
        told = _Pod(full_name(pod.metadata), stopped.get(pod.metadata.uid), end_of(end) if end else None, by_kubelet)
        pods[group_of(pod, seconds)].append(told)
    return [_Group(p, seconds[p], tuple(found), view.anchor - 1.0) for p, found in pods.items() if found]


ASSERTION = TerminationOrder()
