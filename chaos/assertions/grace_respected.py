"""Did each pod get the time to end that was promised to it?"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.judge.container_termination import Interval, end_of, finished_version, stop_times, terminated_states
from chaos.judge.facts import configz_at
from chaos.judge.pods import disruption, node_of, pod_at, pod_facts
from chaos.judge.selection import PodSetParams, Selection
from chaos.judge.shutdown import group_of, groups_of
from chaos.judge.signals import mask_pods, source_time
from chaos.model.assertion import View
from chaos.model.kube import Metadata, Pod, full_name, is_ready, pod_condition
from chaos.model.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.model.timeline import History, Version

_SIGKILL_EXIT_CODE = 137  # exit code after SIGKILL
_MIN_GRACE = 2.0  # seconds: a container is never stopped with less (facts 1.3)
_SLACK = 2.0  # seconds: until a kill has its effect
_IMMINENT = "imminent node shutdown"  # in the message of DisruptionTarget (facts 9)


class Params(PodSetParams):
    """Which pods; each of them."""


@dataclass(frozen=True, slots=True)
class _GracePeriod:
    """How long a pod may take; ``began`` if it is known without the kubelet's word."""

    seconds: float
    reason: str
    start: Interval | None = None


def _grace_period(history: History[Pod], end: Version[Pod], view: View) -> _GracePeriod | str:
    """What the pod was promised by whatever ended it; a text where that is not known."""
    asked = next((v for v in history if v.object.metadata.deletion_timestamp and v.t <= end.t), None)
    if asked and asked.t < end.t and asked.object.metadata.deletion_grace_period_seconds is not None:
        grace = float(asked.object.metadata.deletion_grace_period_seconds)
        due = source_time(asked.object.metadata.deletion_timestamp)
        # The deletion was written no later than it was seen, and the kubelet did not begin before.
        began = None if due is None else Interval(due - grace, asked.t + _SLACK, asked.t, asked.seq)
        return _GracePeriod(grace, f"its deletion gives it {grace:g}s", began)
    own = pod_facts(end.object)["pod.terminationGracePeriodSeconds"]
    if own is None:
        return "its terminationGracePeriodSeconds was not seen"
    target = pod_condition(end.object, "DisruptionTarget")
    if disruption(end.object) != "TerminationByKubelet" or _IMMINENT not in ((target and target.message) or ""):
        return _GracePeriod(own, f"its own grace period is {own:g}s")
    node = node_of(end.object)
    config = configz_at(view.timeline, node, view.anchor)
    groups = None if config is None else groups_of(config)
    if not groups:
        return f"the kubelet configuration of {node} was not read"
    left = groups[group_of(end.object, groups)]
    return _GracePeriod(min(own, left), f"its own grace period is {own:g}s, and the shutdown gives its group {left:g}s")


def _end_sample(history: History[Pod], view: View, stopped: Interval | None) -> Sample | None:
    """What its end tells; None as long as it has not ended."""
    end = finished_version(history)
    if end is None or end.t <= view.anchor:
        return _removal_sample(history, view)
    took = end_of(end)
    promise = _grace_period(history, end, view)
    if isinstance(promise, str):
        return Sample(end.t, None, end.seq, promise)
    # A kubelet that was silent may have heard of the deletion late.
    began = stopped or (promise.start if _was_ready(node_of(end.object), end.t, view) else None)
    if began is None:
        return Sample(end.t, None, end.seq, "it was not seen when the kubelet began to stop it")
    least, most = max(took.lo - began.hi, 0.0), took.hi - began.lo
    killed = any(c.exit_code == _SIGKILL_EXIT_CODE and c.reason != "OOMKilled" for c in terminated_states(end.object))
    how = f"it {'was killed' if killed else 'ended'} {least:.0f} to {most:.0f}s after the kubelet began to stop it"
    early = killed and most < promise.seconds
    late = least > max(promise.seconds, _MIN_GRACE) + _SLACK
    return Sample(end.t, not early and not late, end.seq, f"{how}; {promise.reason}")


def _removal_sample(history: History[Pod], view: View) -> Sample | None:
    """Its object was removed although a container ran, as far as anybody was told."""
    last = history.last
    metadata: Metadata = last.object.metadata
    statuses = (last.object.status.container_statuses if last.object.status else None) or ()
    if not last.is_deleted or last.final_state_unknown or last.t <= view.anchor:
        return None
    if any(c.state and c.state.running for c in statuses) and _was_ready(node_of(last.object), last.t, view):
        grace = metadata.deletion_grace_period_seconds
        seen = f"its object was removed with a grace of {grace or 0}s, before its containers were told to have ended"
        return Sample(last.t, False, last.seq, seen)
    return Sample(last.t, None, last.seq, "it was not seen how its containers ended")


def _was_ready(node: str, until: float, view: View) -> bool:
    """Whether the node was Ready all the time: else its containers may have ended without a word."""
    history = view.timeline.nodes.get(node)
    versions = [v for v in history or () if view.anchor < v.t <= until]
    at_first = history.at(view.anchor) if history else None
    return at_first is not None and all(is_ready(v.object) and not v.is_deleted for v in (at_first, *versions))


class GraceRespected:
    """Each pod that was stopped got its time: not killed (exit code 137) earlier, and not left to run longer.

    Its time is the grace of its deletion; in a graceful shutdown the lesser of its terminationGracePeriodSeconds and
    its group's seconds (facts 1.3); else its own. It counts from the kubelet's Killing Event or journal, for a deletion
    at least from that; all in whole seconds of the node, so that it is right to 2s. A pod whose object was removed
    while it ran on a Ready node, as by a force deletion, got no time. A pod that nobody stopped is unknown.
    """

    name = "grace-respected"
    summary = "each pod got its grace period, or what a shutdown left of it, and no more"
    example = (
        "{assert: grace-respected, with: {node: victim, except: [daemonset, finished, static]}, after: power-off, "
        "within: kubelet.shutdownGracePeriod + 10s}"
    )
    needs = (
        "when the kubelet began to stop each pod (its Killing Event or its journal, or a deletion), the end and exit "
        "code of each container, and in a shutdown the kubelet's configuration"
    )
    params = Params
    node_fields = ("node",)
    moment_fields = ("at",)

    def subjects(self, params: Params, view: View) -> SubjectSet:
        selection = Selection(params, view)
        stopped: dict[str, dict[str, Interval]] = {}
        subjects = []
        for history in selection.freeze():
            pod = pod_at(history, selection.moment) or history.last.object
            node = node_of(pod)
            if node not in stopped:
                stopped[node] = stop_times(view.timeline, node, view.anchor)
            ending = _end_sample(history, view, stopped[node].get(pod.metadata.uid))
            never = False if ending and ending.value is False else None  # what is broken later was not kept before
            running = Sample(float("-inf"), never, None, "it was not seen to end")
            signal = Signal((running, ending) if ending else (running,))
            subjects.append(Subject(full_name(pod.metadata), mask_pods(signal, view.timeline), pod_facts(pod)))
        expected = "each pod gets its grace period, or what a shutdown leaves of it"
        return SubjectSet(expected, tuple(subjects), Quantifier.EACH, empty_reason=selection.empty_reason)


ASSERTION = GraceRespected()
