"""What the phases of a run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from chaos.engine.recording_entries import action_entry
from chaos.hosts.pool import Hosts
from chaos.kube.node_events import NodeEvents
from chaos.model.action import ProofStatus
from chaos.model.errors import Aborted
from chaos.model.experiment import Experiment
from chaos.model.plan import Plan, PlannedStep
from chaos.model.ports import Clock, KubeApi, LockGuard, Progress, Sink
from chaos.model.result import RunResult, StepResult
from chaos.model.verdict import Status, Verdict
from chaos.store.journal import Journal

WEAK_PROOF_SECONDS = 5.0  # after a step's return, in which a proof better than a weak one may come
TICK = 1.0  # seconds of cluster time between two looks at the verdicts


class Interrupted(Exception):
    """A person or the system asked the run to stop; ``signum`` is the signal."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum


@dataclass
class StopRequest:
    """Why the run should end early. Written by signal handlers and observer threads, read by every tick."""

    signum: int | None = None
    crash: BaseException | None = None
    reason: str = ""  # why somebody else wants it to end

    def check(self) -> None:
        """Raises Interrupted, Aborted, or the crash of an observer."""
        if self.crash:
            raise self.crash
        if self.signum:
            raise Interrupted(self.signum)
        if self.reason:
            raise Aborted(f"asked to stop: {self.reason}")

    def request(self, why: str) -> None:
        self.reason = why


@dataclass
class RunContext:
    """One run. ``judge`` judges everything seen so far: live (pending where a deadline has not come) or for good;
    ``steady`` judges the steady state as of now; ``deadline`` is when maxDuration is over; ``publish`` tells the
    cluster what is owed, and raises Aborted where it cannot; ``settle`` does so after an undo, and returns why it
    could not.
    """

    experiment: Experiment
    plan: Plan
    clock: Clock
    kube: KubeApi
    hosts: Hosts
    journal: Journal
    progress: Progress
    emit: Sink
    judge: Callable[[bool], RunResult]
    judge_steady_state: Callable[[], Sequence[Verdict]]
    deadline: float
    guard: LockGuard
    publish: Callable[[], None]
    reconcile: Callable[[], str]
    events: NodeEvents | None = None  # None: nobody wants them
    stop: StopRequest = field(default_factory=StopRequest)
    proven_steps: set[tuple[str, str]] = field(default_factory=set)  # (step, node)
    abandoned_steps: set[tuple[str, str]] = field(
        default_factory=set
    )  # (step, node) whose answer nobody waits for any more
    reported_statuses: dict[str, Status] = field(default_factory=dict)

    def record_intent(self, steps: Sequence[PlannedStep], t: float) -> None:
        """Write down deeds before they are done, here and in the cluster. Raises NodefallError."""
        for planned in steps:
            self.journal.record_intent(planned.step, planned.action, planned.node, planned.undo, t)
        if any(planned.undo.proof for planned in steps):
            self.publish()

    def abandon(self, planned: PlannedStep) -> None:
        """Hang up on a host that has not answered yet: what was sent may still be done, and is undone after it."""
        self.abandoned_steps.add((planned.step, planned.node))
        self.progress.step(planned.step, planned.node, "its answer is waited for no more")
        self.hosts.disconnect(planned.node)

    def emit_injected(self, steps: Sequence[PlannedStep]) -> None:
        """After the deed, which must not wait for this."""
        told = [self.events.emit_injected(planned, self.clock.now()) for planned in steps] if self.events else []
        for why in filter(None, told):
            self.progress.note(why)

    def emit_undone(self, planned: PlannedStep, because: str) -> None:
        """After the proof of the undo."""
        if self.events and (why := self.events.emit_undone(planned, self.clock.now(), because)):
            self.progress.note(why)

    def wait_until(self, t: float) -> None:
        """Wait in ticks. Raises Interrupted or Aborted."""
        while (now := self.clock.now()) < t:
            self.tick()
            self.clock.sleep(min(TICK, t - now))
        self.stop.check()

    def tick(self) -> RunResult:
        """Look at the verdicts so far. Raises Interrupted, Aborted (abort condition, maxDuration)."""
        self.stop.check()
        now = self.clock.now()
        self.progress.tick(now)
        result = self.judge(True)
        self._record_proofs(result.steps)
        self._report_verdicts(result)
        for verdict in result.abort:
            if verdict.status is Status.VIOLATED:
                raise Aborted(f"abort condition {verdict.name}: {verdict.because}")
        if now > self.deadline:
            raise Aborted(f"maxDuration of {self.experiment.spec.max_duration} is over")
        return result

    def _record_proofs(self, steps: Sequence[StepResult]) -> None:
        """Write down each proof when it is first seen; a weak one only when no better has come for a while."""
        now = self.clock.now()
        for step in steps:
            planned = next((p for p in self.plan.steps if (p.step, p.node) == (step.step, step.node)), None)
            early = step.weak and now - (step.returned or now) < WEAK_PROOF_SECONDS
            if (
                planned
                and step.proof_status is ProofStatus.PROVEN
                and not early
                and (step.step, step.node) not in self.proven_steps
            ):
                self.proven_steps.add((step.step, step.node))
                evidence = {"because": step.because, "weak": step.weak}
                self.emit(action_entry(now, planned, "proved", evidence=evidence))
                self.progress.step(step.step, step.node, f"proven: {step.because}")

    def _report_verdicts(self, result: RunResult) -> None:
        """Tell each verdict when it changes; while a proof is still awaited nothing is inconclusive for good."""
        awaited = any(step.proof_status is ProofStatus.UNPROVEN and step.begin is not None for step in result.steps)
        for verdict in (*result.hypothesis, *result.recovery):
            if awaited and verdict.status is Status.INCONCLUSIVE:
                continue
            if self.reported_statuses.get(verdict.name) is not verdict.status:
                self.reported_statuses[verdict.name] = verdict.status
                self.progress.verdict(verdict)
