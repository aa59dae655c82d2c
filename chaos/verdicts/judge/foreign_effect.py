"""The effect of foreign faults on verdicts: inconclusive since the first fault that may affect the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from chaos.core.assertion import NodeAssertion, Undecidable, WatchingAssertion
from chaos.core.experiment import Expectation
from chaos.core.kube import Event, Node, last_manager
from chaos.core.result import ForeignFault
from chaos.core.timeline import Timeline, Version
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext, Scope, bind
from chaos.verdicts.judge.headline import Invalidation
from chaos.verdicts.judge.own_changes import OwnChanges
from chaos.verdicts.judge.sentences import shorten, with_remedy

_DELIVERY_SECONDS = 1.0  # after the end of a blind window, in which a list shows what changed in it
_EVENT_SECONDS = 60.0  # before a change, in which the Event of its author may have been written
_EVENT_LATE = 5.0  # seconds after it
# Components that report or repair what others have caused; what ends with "-monitor" is node-problem-detector.
_REPORTERS = frozenset(
    {
        "",
        "nodefall",
        *("kubelet", "kube-proxy", "default-scheduler", "controllermanager"),
        *(f"{name}-controller" for name in ("node", "taint-eviction", "attachdetach", "persistentvolume", "job")),
        *(f"{name}-controller" for name in ("deployment", "replicaset", "statefulset", "daemonset")),
    }
)
# Parts of Kubernetes: what they write by themselves is no fault.
_KUBERNETES = ("kubelet", "kube-controller-manager", "cloud-controller-manager", "kube-apiserver", "kube-scheduler")


class ForeignKind(StrEnum):
    """Kinds of foreign faults."""

    CORDON = "cordon"
    UNCORDON = "uncordon"
    TAINT = "taint"
    UNTAINT = "untaint"
    DELETION = "deletion"
    REBOOT = "reboot"
    POWER_OFF = "power-off"
    SHUTDOWN = "shutdown"
    SILENCE = "silence"
    UPGRADE = "upgrade"
    EVICTION = "eviction"
    CONTROLLER_RESTART = "controller-restart"


@dataclass(frozen=True, slots=True)
class Case:
    """A timeline, and the run's own changes."""

    timeline: Timeline
    own: OwnChanges

    def earliest(self, source: str, before: Version[Any], after: Version[Any]) -> float:
        """From when a change that ``after`` shows, and ``before`` does not, may have had effect."""
        blind = self.timeline.blind_windows_in([source], before.t, after.t)
        hiding = [window for window in blind if window.end is None or window.end >= after.t - _DELIVERY_SECONDS]
        return min([after.t, after.earliest, *(max(window.start, before.t) for window in hiding)])


def fault(node: str, kind: ForeignKind, what: str, by: str, at: float, since: float, *evidence: int) -> ForeignFault:
    """A foreign fault. ``what``: ``was cordoned``; ``by``: as in :mod:`chaos.verdicts.judge.foreign_effect`, or ""."""
    text = f"{node} {what} by {by}" if by else f"{node} {what} (who did it is unknown)"
    return ForeignFault(node, kind, text, by or "unknown", at, since, evidence)


def field_owner(node: Node, field: str) -> str:
    """Manager that last set ``unschedulable`` or ``taints``; "" if unknown, as of a removed field, or Kubernetes."""
    manager = last_manager(node, field)
    return "" if manager.endswith(_KUBERNETES) else manager


def describe_manager(manager: str) -> str:
    """``kubectl (field manager)``, or ""."""
    return f"{manager} (field manager)" if manager else ""


def event_author(timeline: Timeline, kind: str, name: str, t: float, namespace: str = "") -> str:
    """``karpenter (Event DisruptionTerminating)``: the last author of an Event about the object near ``t``, or ""."""
    for entry, event in reversed(timeline.events.about(name)):
        about = event.involved_object
        if entry.t < t - _EVENT_SECONDS or about is None:
            continue
        same = (about.kind, about.name) == (kind, name) and about.namespace in ("", namespace)
        author = component(event)
        if same and entry.t <= t + _EVENT_LATE and author not in _REPORTERS and not author.endswith("-monitor"):
            return f"{author} (Event {event.reason})"
    return ""


def component(event: Event) -> str:
    """Component that wrote an Event, "" if unknown."""
    return (event.source.component if event.source else None) or event.reporting_component or ""


_REMEDY = "a run during which no one else changes the nodes"
_RESTART_REMEDY = "a run during which kube-controller-manager does not restart"
_DECIDED = (Status.HELD, Status.VIOLATED)
Evaluate = Callable[[Expectation, JudgeContext, float], Verdict]


@dataclass(frozen=True, slots=True)
class ForeignEffect:
    """``faults`` of a timeline. A decision that was final before the first fault that touches it stands."""

    context: JudgeContext
    faults: tuple[ForeignFault, ...]
    evaluate: Evaluate
    _before: dict[float, JudgeContext] = field(default_factory=dict)  # by the time at which a timeline was cut

    def on_hypotheses(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """The verdicts, inconclusive where they were not decided before."""
        return tuple(map(self._on_hypothesis, self.context.experiment.spec.hypothesis, verdicts))

    def on_recovery(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """Like hypotheses, but a recovery is final only at its deadline, because the steady state must last."""
        return tuple(map(self._on_recovery, self.context.experiment.spec.steady_state, verdicts))

    def invalidation(self, verdicts: Sequence[Verdict]) -> Invalidation | None:
        """The first foreign fault that made one of the verdicts inconclusive, or None."""
        reasons = {verdict.because for verdict in verdicts}
        fault = next((f for f in self.faults if self._because(f) in reasons), None)
        if fault is None:
            return None
        return Invalidation(self.describe(fault), shorten(f"During the run, {fault.text}"))

    def describe(self, fault: ForeignFault) -> str:
        """``foreign fault: worker-2 was cordoned by kubectl (field manager) at +12.0 s``, after the first step."""
        return f"foreign fault: {fault.text}{self._offset(fault.at)}"

    def _on_hypothesis(self, expectation: Expectation, verdict: Verdict) -> Verdict:
        fault = self._first(expectation)
        if fault is None or self._was_decided(expectation, verdict, fault):
            return verdict
        return self._inconclusive(verdict, fault)

    def _on_recovery(self, expectation: Expectation, verdict: Verdict) -> Verdict:
        fault = self._first(expectation)
        if fault is None or (verdict.deadline is not None and fault.since >= verdict.deadline):
            return verdict
        return self._inconclusive(verdict, fault)

    def _offset(self, t: float) -> str:
        begin = self.context.match_result.steps[0].begin
        return "" if begin is None else f" at {t - begin:+.1f} s"

    def _first(self, expectation: Expectation) -> ForeignFault | None:
        touching = [fault for fault in self.faults if self._touches(fault, expectation)]
        return min(touching, key=lambda fault: fault.since, default=None)

    def _touches(self, fault: ForeignFault, expectation: Expectation) -> bool:
        """Whether the fault may change the answer: unless it asks only about certain other nodes.

        A restart of the controllers affects Node objects, but nothing that a kubelet does by itself.
        """
        context = self.context
        bound = expectation.bound
        assertion = bound and bound.assertion
        if bound is None or not isinstance(assertion, NodeAssertion):
            return True
        if fault.kind == ForeignKind.CONTROLLER_RESTART:
            return isinstance(assertion, WatchingAssertion) and tuple(assertion.sources) == ("nodes",)
        references = [getattr(bound.params, field) for field in assertion.node_fields]
        try:
            scope = Scope(context, context.moment(expectation.after) if expectation.after else context.start)
            nodes = [scope.nodes(reference) for reference in references if reference]
        except Undecidable:
            return True
        return not nodes or any(fault.node in names for names in nodes)

    def _was_decided(self, expectation: Expectation, verdict: Verdict, fault: ForeignFault) -> bool:
        if verdict.status is Status.INCONCLUSIVE:
            return verdict.deadline is not None and fault.since >= verdict.deadline
        if verdict.status not in _DECIDED:
            return False
        return self.evaluate(expectation, self._context_before(fault.at), fault.since).status is verdict.status

    def _context_before(self, t: float) -> JudgeContext:
        """The entries that were received before ``t``. They are cut once for all expectations, because a timeline is
        long.
        """
        if t not in self._before:
            context, timeline = self.context, _up_to(self.context.timeline, t)
            self._before[t] = bind(context.experiment, timeline, context.registry, context.options, live=True)
        return self._before[t]

    def _inconclusive(self, verdict: Verdict, fault: ForeignFault) -> Verdict:
        evidence = (*fault.evidence, *verdict.evidence)
        return replace(
            verdict, status=Status.INCONCLUSIVE, because=self._because(fault), at=fault.at, evidence=evidence
        )

    def _because(self, fault: ForeignFault) -> str:
        is_restart = fault.kind == ForeignKind.CONTROLLER_RESTART
        return with_remedy(self.describe(fault), _RESTART_REMEDY if is_restart else _REMEDY)


def _up_to(timeline: Timeline, t: float) -> Timeline:
    """The timeline as known just before ``t``."""
    known = Timeline()
    for entry in timeline.entries:
        if entry.t >= t:
            break
        known.add(entry)
    known.end = t
    return known
