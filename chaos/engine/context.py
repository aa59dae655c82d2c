"""What the phases of a run share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chaos.core.action import ProofStatus
from chaos.core.errors import Aborted
from chaos.core.plan import PlannedStep
from chaos.core.recording import ActionPhase
from chaos.core.result import RunResult, StepResult, provisional
from chaos.core.verdict import Status, Verdict
from chaos.engine.inputs import RunInputs
from chaos.engine.planning.identity import identity_checks
from chaos.engine.recording_entries import action_entry
from chaos.engine.services import RunServices
from chaos.engine.state import RunState
from chaos.engine.stop import StopRequest

WEAK_PROOF_SECONDS = 5.0  # after a step's return, in which a stronger proof may replace a weak one
TICK = 1.0  # seconds of cluster time between two evaluations of the verdicts


@dataclass
class RunContext:
    """One run: its inputs, its services and its state."""

    inputs: RunInputs
    services: RunServices
    state: RunState = field(default_factory=RunState)

    @property
    def stop(self) -> StopRequest:
        return self.state.stop

    def record_intent(self, steps: Sequence[PlannedStep], t: float) -> None:
        """Journal operations before they begin, on disk and in the cluster. Raises NodefallError."""
        journal, facts = self.services.journal, self.inputs.plan.facts
        for planned in steps:
            identity = identity_checks(facts.get(planned.node, {}), planned.undo)
            state = planned.undo_state
            journal.record_intent(planned.step, planned.action, planned.node, planned.undo, t, identity, state)
        if any(planned.undo.proof for planned in steps):
            self.services.publish()

    def withdraw_intent(self, planned: PlannedStep, why: str) -> None:
        """Close the journal entry of a step that did nothing. Raises NodefallError."""
        journal = self.services.journal
        for pending in journal.pending():
            if (pending.step, pending.node) == (planned.step, planned.node):
                journal.mark_undone(pending, f"nothing to undo: {why}")
        self.services.progress.step(planned.step, planned.node, "nothing to undo: the command had no effect")

    def abandon(self, planned: PlannedStep) -> None:
        """Disconnect a host that has not responded: the command may still run, and is undone after that."""
        self.state.abandoned_steps.add((planned.step, planned.node))
        self.services.progress.step(planned.step, planned.node, "gave up waiting for its response")
        self.services.hosts.disconnect(planned.node)

    def emit_injected(self, steps: Sequence[PlannedStep]) -> None:
        """Write the node Events of an injection. After the fault, which must not wait for them."""
        events = self.services.events
        if events is None:
            return
        for planned in steps:
            self._note(events.emit_injected(planned, self.services.clock.now()))

    def emit_undone(self, planned: PlannedStep, because: str) -> None:
        """Write the node Event of a proven undo."""
        if self.services.events:
            self._note(self.services.events.emit_undone(planned, self.services.clock.now(), because))

    def wait_until(self, t: float) -> None:
        """Wait in ticks. Raises Interrupted or Aborted."""
        while (now := self.services.clock.now()) < t:
            self.tick()
            self.services.clock.sleep(min(TICK, t - now))
        self.stop.check()

    def tick(self) -> RunResult:
        """Evaluate the verdicts so far. Raises Interrupted, Aborted (abort condition, maxDuration)."""
        self.stop.check()
        now = self.services.clock.now()
        self.services.progress.tick(now)
        result = self.services.judge(True)
        self._record_proofs(result.steps)
        # Foreign faults come before the verdicts that they make inconclusive.
        self._note_once((*(f"foreign fault: {fault.text}" for fault in result.foreign_faults), *result.address_changes))
        self._report_verdicts(result)
        for verdict in result.abort:
            if verdict.status is Status.VIOLATED:
                raise Aborted(f"abort condition {verdict.name}: {verdict.sentence}")
        if now > self.inputs.deadline:
            raise Aborted(f"maxDuration of {self.inputs.experiment.spec.max_duration} is over")
        return result

    def _note(self, why: str) -> None:
        if why:
            self.services.progress.note(why)

    def _record_proofs(self, steps: Sequence[StepResult]) -> None:
        """Record each proof once: a weak one only if no stronger one follows within ``WEAK_PROOF_SECONDS``."""
        now = self.services.clock.now()
        proven = self.state.proven_steps
        for step in steps:
            key = (step.step, step.node)
            planned = next((p for p in self.inputs.plan.steps if (p.step, p.node) == key), None)
            early = step.weak and now - (step.returned or now) < WEAK_PROOF_SECONDS
            if planned and step.proof_status is ProofStatus.PROVEN and not early and key not in proven:
                proven.add(key)
                evidence = {"because": step.because, "weak": step.weak}
                self.services.emit(action_entry(now, planned, ActionPhase.PROVED, evidence=evidence))
                self.services.progress.step(step.step, step.node, f"proven: {step.because}")

    def _note_once(self, texts: Iterable[str]) -> None:
        """Note what no earlier tick has noted."""
        for text in texts:
            if text not in self.state.noted:
                self.state.noted.add(text)
                self.services.progress.note(text)

    def report_final(self, result: RunResult) -> None:
        """Report the verdicts of the final judgement that differ from what was reported."""
        self._report_changes((*result.hypothesis, *result.recovery))
        self.services.on_judged(result.hypothesis, result.recovery)

    def _report_verdicts(self, result: RunResult) -> None:
        """Report each verdict when it changes; what may be taken back is pending."""
        shown = provisional(result)
        self._report_changes((*shown.hypothesis, *shown.recovery))
        self.services.on_judged(shown.hypothesis, shown.recovery)

    def _report_changes(self, verdicts: Iterable[Verdict]) -> None:
        reported = self.state.reported_statuses
        for place, verdict in enumerate(verdicts):
            before = reported.get(place)
            if verdict.status is before or (verdict.status is Status.PENDING and before is not None):
                continue
            reported[place] = verdict.status
            self.services.progress.verdict(verdict)
