"""Assertion ``grace-respected``: each pod got its grace period, and no more."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.core.assertion import Claim, Names, View
from chaos.core.kube import Metadata, Pod, full_name, is_ready, pod_condition
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.time_bounds import source_time
from chaos.core.timeline import History, Version
from chaos.verdicts.assertions._pod_claim import PodSubject
from chaos.verdicts.judge.facts import configz_at, group_of, groups_of
from chaos.verdicts.judge.pods import (
    Interval,
    disruption,
    end_of,
    finished_version,
    node_of,
    pod_at,
    pod_facts,
    stop_times,
    terminated_states,
)
from chaos.verdicts.judge.selection import PodSetParams, Selection
from chaos.verdicts.judge.signals import mask_pods

_SIGKILL_EXIT_CODE = 137  # exit code after SIGKILL
_MIN_GRACE = 2.0  # seconds: a container is never stopped with less (facts 1.3)
_SLACK = 2.0  # seconds until a kill takes effect
_IMMINENT = "imminent node shutdown"  # in the message of DisruptionTarget (facts 9)


class Params(PodSetParams):
    """Selection of pods; each of them must get its grace period."""


@dataclass(frozen=True, slots=True)
class _GracePeriod:
    """Grace period of a pod; ``start`` if known from the deletion alone."""

    seconds: float
    reason: str
    start: Interval | None = None


def _grace_period(history: History[Pod], end: Version[Pod], view: View) -> _GracePeriod | str:
    """Grace period of a pod by the cause of its end; a reason if unknown."""
    deletion = next((v for v in history if v.object.metadata.deletion_timestamp and v.t <= end.t), None)
    if deletion and deletion.t < end.t and deletion.object.metadata.deletion_grace_period_seconds is not None:
        grace = float(deletion.object.metadata.deletion_grace_period_seconds)
        due = source_time(deletion.object.metadata.deletion_timestamp)
        # The deletion was written no later than it was observed, and the kubelet did not begin before.
        start = None if due is None else Interval(due - grace, deletion.t + _SLACK, deletion.t, deletion.seq)
        return _GracePeriod(grace, f"the grace period of its deletion is {grace:g} s", start)
    own = pod_facts(end.object)["pod.terminationGracePeriodSeconds"]
    if own is None:
        return "its terminationGracePeriodSeconds was not observed"
    target = pod_condition(end.object, "DisruptionTarget")
    if disruption(end.object) != "TerminationByKubelet" or _IMMINENT not in ((target and target.message) or ""):
        return _GracePeriod(own, f"its grace period is {own:g} s")
    node = node_of(end.object)
    config = configz_at(view.timeline, node, view.anchor)
    groups = None if config is None else groups_of(config)
    if not groups:
        return f"the kubelet configuration of {node} was not read"
    group_seconds = groups[group_of(end.object, groups)]
    reason = f"its grace period is {own:g} s, and the shutdown gives its group {group_seconds:g} s"
    return _GracePeriod(min(own, group_seconds), reason)


def _end_sample(history: History[Pod], view: View, stopped: Interval | None) -> Sample | None:
    """Sample of the end of a pod; None before its end."""
    end = finished_version(history)
    if end is None or end.t <= view.anchor:
        return _removal_sample(history, view)
    ended = end_of(end)
    grace = _grace_period(history, end, view)
    if isinstance(grace, str):
        return Sample(end.t, None, end.seq, grace)
    # A kubelet without a connection may have received the deletion late.
    start = stopped or (grace.start if _was_ready(node_of(end.object), end.t, view) else None)
    if start is None:
        return Sample(end.t, None, end.seq, "not observed when the kubelet began to stop it")
    least, most = max(ended.lo - start.hi, 0.0), ended.hi - start.lo
    killed = any(c.exit_code == _SIGKILL_EXIT_CODE and c.reason != "OOMKilled" for c in terminated_states(end.object))
    verb = "killed" if killed else "ended"
    text = f"{verb} {least:.0f} to {most:.0f} s after the kubelet began to stop it; {grace.reason}"
    early = killed and most < grace.seconds
    late = least > max(grace.seconds, _MIN_GRACE) + _SLACK
    return Sample(end.t, not early and not late, end.seq, text)


def _removal_sample(history: History[Pod], view: View) -> Sample | None:
    """The sample for the removal of a pod whose containers were last reported running, or None."""
    last = history.last
    metadata: Metadata = last.object.metadata
    statuses = (last.object.status.container_statuses if last.object.status else None) or ()
    if not last.is_deleted or last.final_state_unknown or last.t <= view.anchor:
        return None
    if any(c.state and c.state.running for c in statuses) and _was_ready(node_of(last.object), last.t, view):
        grace = metadata.deletion_grace_period_seconds
        text = f"its object was removed with a grace period of {grace or 0} s, before the end of its containers"
        return Sample(last.t, False, last.seq, text)
    return Sample(last.t, None, last.seq, "the end of its containers was not observed")


def _was_ready(node: str, until: float, view: View) -> bool:
    """Whether the node was Ready all the time; otherwise containers may have ended without a report."""
    history = view.timeline.nodes.get(node)
    versions = [v for v in history or () if view.anchor < v.t <= until]
    at_first = history.at(view.anchor) if history else None
    return at_first is not None and all(is_ready(v.object) and not v.is_deleted for v in (at_first, *versions))


class GraceRespected:
    """Each stopped pod got its grace period: it was not killed (exit code 137) earlier, and it did not run longer.

    A deletion sets the grace period. In a graceful shutdown it is terminationGracePeriodSeconds or the time of the
    priority group, whichever is shorter (facts 1.3). Otherwise it is terminationGracePeriodSeconds. It starts with
    the kubelet's Killing Event, its journal entry or the deletion, in whole seconds of the node's clock, so the
    result is accurate to 2 s. A pod that was removed while it ran on a Ready node, for example by a force deletion,
    got no grace period. The result for a pod that was not stopped is unknown.
    """

    name = "grace-respected"
    summary = "each pod gets its grace period, or the part of it that a shutdown allows, and no more"
    example = (
        "{assert: grace-respected, with: {node: victim, except: [daemonset, finished, static]}, after: power-off, "
        "within: kubelet.shutdownGracePeriod + 10s}"
    )
    needs = (
        "the time at which the kubelet began to stop each pod (Killing Event, journal or deletion), the end and "
        "exit code of each container, and in a shutdown the configuration of the kubelet"
    )
    params = Params
    node_fields = ("node",)
    only_named_nodes = True
    moment_fields = ("at",)
    masks_itself = True
    sources = ("pods", "events", "nodes")

    def claim(self, params: Params, names: Names) -> Claim:
        pods = PodSubject(params, names)
        subject = f"a pod{pods.which}" if pods.is_one_affected else f"pods{pods.which}"
        return Claim(f"{subject} kept to the grace period", f"{subject} did not keep to the grace period")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        selection = Selection(params, view)
        stopped: dict[str, dict[str, Interval]] = {}
        subjects = []
        for history, is_certain in selection.freeze().items():
            pod = pod_at(history, selection.moment) or history.last.object
            node = node_of(pod)
            if node not in stopped:
                stopped[node] = stop_times(view.timeline, node, view.anchor)
            end = _end_sample(history, view, stopped[node].get(pod.metadata.uid))
            before = False if end and end.value is False else None  # a later violation was not held before
            running = Sample(float("-inf"), before, None, "its end was not observed")
            signal = Signal((running, end) if end else (running,))
            subjects.append(
                Subject(full_name(pod.metadata), mask_pods(signal, view.timeline), pod_facts(pod), is_certain)
            )
        expected = "each pod gets its grace period, or the part of it that a shutdown allows"
        return SubjectSet(expected, tuple(subjects), Quantifier.EACH, empty_reason=selection.empty_reason)


ASSERTION = GraceRespected()
