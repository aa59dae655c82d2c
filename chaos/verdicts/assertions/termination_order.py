"""Assertion ``termination-order``: a graceful shutdown ends pods in the order of their priority."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from pydantic import Field

from chaos.core.assertion import Claim, Names, Noun, Undecidable, View
from chaos.core.field_types import Model
from chaos.core.kube import full_name
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.verdicts.judge.facts import configz_at, group_of, groups_of
from chaos.verdicts.judge.pods import Interval, disruption, earliest_of, end_of, finished_version, pod_at, stop_times
from chaos.verdicts.judge.selection import PodSetParams, Selection
from chaos.verdicts.judge.signals import mask

_MIN_GRACE = 2.0  # seconds: a container is never stopped with less (facts 1.3)
_SLACK = 2.0  # seconds until a kill takes effect, besides the resolution of Events and end times


class Params(Model):
    """Nodes."""

    node: str = Field(description="A target, or all.")


@dataclass(frozen=True, slots=True)
class _Pod:
    """Stop and end of one pod."""

    name: str
    stop: Interval | None  # when the kubelet began to stop it
    end: Interval | None
    is_by_kubelet: bool

    @property
    def latest_stop(self) -> Interval | None:
        """Latest moment at which the kubelet began to stop the pod."""
        return self.stop or (self.end if self.is_by_kubelet else None)


@dataclass(frozen=True, slots=True)
class _Group:
    """Pods that are stopped together. ``earliest_start``: their turn did not begin before."""

    priority: int
    seconds: float
    pods: tuple[_Pod, ...]
    earliest_start: float

    @property
    def start(self) -> Interval | None:
        """Begin of the turn of the group."""
        known = [pod.stop for pod in self.pods if pod.stop]
        return earliest_of(known) if known else None

    def __str__(self) -> str:
        return f"the group of priority {self.priority}"


def _violations(groups: list[_Group]) -> Iterator[Sample]:
    """Samples of certain violations, each from its observation on."""
    for group in groups:
        start = group.start
        for pod in group.pods:
            allowed = max(group.seconds, _MIN_GRACE) + _SLACK
            if pod.end and start and pod.end.lo > start.hi + allowed:
                text = f"{pod.name} ended {pod.end.lo - start.hi:.0f} s after the start of {group}"
                yield Sample(pod.end.t, False, pod.end.seq, f"{text}, which has {group.seconds:g} s")
    for earlier, later in combinations(groups, 2):
        over = (earlier.start.lo if earlier.start else earlier.earliest_start) + earlier.seconds
        for pod in earlier.pods:
            for other in later.pods:
                stopped = other.latest_stop
                if pod.end and stopped and stopped.hi <= pod.end.lo and stopped.hi < over:
                    text = f"{other.name} was stopped before the end of {pod.name} of {earlier}"
                    yield Sample(max(stopped.t, pod.end.t), False, stopped.seq, text)
    for earlier, later in pairwise(groups):
        if earlier.start and later.start and later.start.lo > earlier.start.hi + earlier.seconds + _SLACK:
            delay = later.start.lo - earlier.start.hi
            text = f"{later} began {delay:.0f} s after {earlier}, which has {earlier.seconds:g} s"
            yield Sample(later.start.t, False, later.start.seq, text)


def _unknown_reasons(groups: list[_Group]) -> Iterator[str]:
    """Reasons for which the order is unknown, or not known yet."""
    if len(groups) < 2:
        yield "its pods are in fewer than two priority groups"
    for pod in (pod for group in groups for pod in group.pods):
        if pod.end is None:
            yield f"the end of {pod.name} was not observed"
        if pod.stop is None:
            yield f"not observed when the kubelet began to stop {pod.name}"
    for earlier, later in pairwise(groups):
        one, two = earlier.start, later.start
        ends = [pod.end.hi for pod in earlier.pods if pod.end]
        if one and two and ends and earlier.seconds and two.lo < max(ends) and two.lo < one.hi:
            yield f"{earlier} and {later} began in the same second"


def _signal(groups: list[_Group]) -> Signal:
    violation = min(_violations(groups), key=lambda s: s.t, default=None)
    unknown_reason = next(_unknown_reasons(groups), None)
    moments = [m for group in groups for pod in group.pods for m in (pod.stop, pod.end) if m]
    before = Sample(float("-inf"), None, None, unknown_reason or "its pods had not ended yet")
    if violation:  # then the pods were not in order before, either
        return Signal((Sample(float("-inf"), False, None, "its pods had not ended yet"), violation))
    if unknown_reason:
        return Signal((before,))
    last = max(moments, key=lambda m: m.t)
    order = ", ".join(f"{len(group.pods)} of priority {group.priority}" for group in groups)
    return Signal((before, Sample(last.t, True, last.seq, f"its pods ended group by group: {order}")))


class TerminationOrder:
    """The kubelet stops pods by priority: a group begins once the previous group has ended or has used up its time.

    The groups come from the kubelet's configuration when judging starts: shutdownGracePeriodByPodPriority, or else
    normal and critical pods (facts 1.2). A group without pods takes no time. Static pods, and pods that were already
    terminating, are ignored. The Killing Event or the kubelet's journal shows when the stop of a pod began, and its
    container statuses show when it ended. Both are in whole seconds of the node's clock, so the order within one
    second is unknown. The assertion is true once all pods have ended.
    """

    name = "termination-order"
    summary = "a graceful shutdown ends pods group by group in the order of priority, each group in its seconds"
    example = (
        "{assert: termination-order, with: {node: victim}, after: power-off, within: kubelet.shutdownGracePeriod + 10s}"
    )
    needs = (
        "the configuration of the kubelet, its Killing Events or its journal, and the end of each container, in at "
        "least two priority groups that do not end at once"
    )
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ()
    masks_itself = True
    sources = ("pods", "events")

    def claim(self, params: Params, names: Names) -> Claim:
        pods = Noun(f"pods on {names.nodes(params.node)}", is_plural=True)
        return pods.claim("ended in order of priority", "did not end in order of priority")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        subjects = tuple(
            Subject(node, mask(_signal(_groups(node, view)), view.timeline, "pods")) for node in view.nodes(params.node)
        )
        return SubjectSet(
            "pods end group by group, in the order of priority", subjects, empty_reason="no node was observed"
        )


def _groups(node: str, view: View) -> list[_Group]:
    """Groups that have pods, lowest priority first. Raises Undecidable."""
    config = configz_at(view.timeline, node, view.anchor)
    seconds = None if config is None else groups_of(config)
    if seconds is None:
        raise Undecidable(f"the kubelet configuration of {node} was not read")
    if not seconds:
        raise Undecidable(f"graceful shutdown is not configured on {node}", "a node with graceful shutdown")
    stopped = stop_times(view.timeline, node, view.anchor)
    pods: dict[int, list[_Pod]] = {priority: [] for priority in seconds}
    params = PodSetParams.model_validate({"node": node, "except": ["finished", "static", "terminating"]})
    for history, is_certain in Selection(params, view).freeze().items():
        if not is_certain:
            raise Undecidable(f"it is not known whether {full_name(history.last.object.metadata)} was on {node} then")
        pod = pod_at(history, view.anchor) or history.last.object
        end = finished_version(history)
        by_kubelet = end is not None and disruption(end.object) == "TerminationByKubelet"
        item = _Pod(full_name(pod.metadata), stopped.get(pod.metadata.uid), end_of(end) if end else None, by_kubelet)
        pods[group_of(pod, seconds)].append(item)
    return [_Group(p, seconds[p], tuple(found), view.anchor - 1.0) for p, found in pods.items() if found]


ASSERTION = TerminationOrder()
