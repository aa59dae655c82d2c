"""The effect of foreign faults on verdicts: inconclusive since the first fault that may affect the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from chaos.core.assertion import NodeAssertion, Undecidable, WatchingAssertion
from chaos.core.experiment import Expectation
from chaos.core.result import ForeignFault
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.context import JudgeContext, Scope, bind
from chaos.verdicts.judge.foreign_case import ForeignKind
from chaos.verdicts.judge.headline import Invalidation
from chaos.verdicts.judge.sentences import shorten, with_remedy

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
        """As for hypotheses; a recovery is final at its deadline only, as the steady state must last."""
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
