"""A run: the ports through which it acts, and its state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from chaos.cluster.journal_mirror import JournalMirror
from chaos.cluster.lease_lock import Identity
from chaos.cluster.node_traces import NodeEvents, random_suffix
from chaos.cluster.replica import RunIdentity, Signer
from chaos.cluster.workload import create_commands
from chaos.core.action import ProofStatus
from chaos.core.command import KubeCommand
from chaos.core.duration import parse_duration
from chaos.core.errors import Aborted
from chaos.core.experiment import Experiment
from chaos.core.plan import Plan, PlannedStep
from chaos.core.ports import Clock, JudgementDisplay, KubeApi, LockGuard, Progress
from chaos.core.recording import ActionPhase, RecordingEntry
from chaos.core.result import Judgement, RunResult, StepResult, provisional
from chaos.core.store.journal import Journal
from chaos.core.store.journal_format import EntryKey
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.engine.connection import ClusterConnection
from chaos.engine.guards import InjectionLimits
from chaos.engine.load import LoadedExperiment
from chaos.engine.observers import RunObservers
from chaos.engine.planning.identity import identity_checks
from chaos.engine.recorder import action_entry
from chaos.engine.stop import StopRequest
from chaos.machines.pool import Hosts

WEAK_PROOF_SECONDS = 5.0  # after a step's return, in which a stronger proof may replace a weak one
TICK = 1.0  # seconds of cluster time between two evaluations of the verdicts
WORKLOAD = "workload"  # action name of the journal entry that removes the workload
StepKey = tuple[str, str]  # step, node


class HeldLock(LockGuard, Protocol):
    """The cluster's lock, held by ``identity``; ``namespace`` also has the journals."""

    identity: Identity
    namespace: str


class EntryRecorder(Protocol):
    """Records what the engine and the observers see; the timeline is what the judge reads."""

    def emit(self, entry: RecordingEntry) -> None: ...

    def timeline(self) -> Timeline: ...


class Judge(Protocol):
    """Judges the timeline so far."""

    def judge(self, live: bool) -> RunResult:
        """All verdicts; while the run is in progress some may be pending."""

    def steady_state(self) -> Sequence[Verdict]:
        """The verdicts of the steady state as of now."""

    def late_watches(self, since: float) -> Sequence[Verdict]:
        """The watches that are not proven to have received everything from before ``since``."""


class JournalCopy(Protocol):
    """The copy of the journal in the cluster, with which other machines can undo the run."""

    def publish(self) -> None:
        """Write the pending undo. Raises Aborted on failure."""

    def reconcile(self) -> str:
        """Write the entries that are still pending after an undo. Returns the reason of a failure, or ""."""

    def published(self) -> Collection[EntryKey]:
        """The entries in the copy, unless another process has replaced it. Raises NodefallError."""


class InventoryLimits(Protocol):
    """Checks the inventory's limits right before an injection."""

    def check(self, group: Sequence[PlannedStep]) -> None:
        """Raises Aborted if the steps on their nodes would exceed a limit now."""


class RunOwner(Protocol):
    """The owner of a run, for example a game day."""

    def begin(self, directory: Path, stop: StopRequest) -> None:
        """Called with the run's directory and its stop request, before the first side effect on the cluster."""

    def before_fault(self) -> None:
        """Called once, right before the method begins. Raises NodefallError if it must not."""


class NoOwner:
    """A run that stands alone."""

    def begin(self, directory: Path, stop: StopRequest) -> None:
        """No-op."""

    def before_fault(self) -> None:
        """No-op."""


@dataclass
class RunSession:
    """The state of one run. ``nodes``: the cluster's nodes; ``event_suffix`` returns the end of a new Event's name.

    ``deadline`` is when maxDuration ends. ``abandoned_steps`` are those whose response the run gave up waiting for:
    their effect may still come. ``taints_before`` are the taints that controllers had put on the targets before the
    first step. ``lock_given_up``: another process keeps the lock, and what is pending is left to it.
    """

    loaded: LoadedExperiment
    connection: ClusterConnection
    plan: Plan
    lock: HeldLock
    signer: Signer
    journal: Journal
    recorder: EntryRecorder
    progress: Progress
    observers: RunObservers
    judge: Judge
    nodes: int = 0
    owner: RunOwner = field(default_factory=NoOwner)
    event_suffix: Callable[[], str] = random_suffix

    clock: Clock = field(init=False)
    kube: KubeApi = field(init=False)
    hosts: Hosts = field(init=False)
    mirror: JournalCopy = field(init=False)
    limits: InventoryLimits = field(init=False)
    deadline: float = field(init=False)

    stop: StopRequest = field(default_factory=StopRequest)
    proven_steps: set[StepKey] = field(default_factory=set)
    abandoned_steps: set[StepKey] = field(default_factory=set)
    reported_statuses: dict[int, Status] = field(default_factory=dict)  # by place among hypothesis and recovery
    noted: set[str] = field(default_factory=set)  # foreign faults and changed addresses that were reported
    taints_before: dict[str, frozenset[str]] = field(default_factory=dict)
    lock_given_up: bool = False

    def __post_init__(self) -> None:
        connection, plan = self.connection, self.plan
        self.clock, self.kube, self.hosts = connection.clock, connection.kube, connection.hosts
        self.deadline = self.clock.now() + parse_duration(self.experiment.spec.max_duration)
        nodes = tuple(sorted({step.node for step in plan.steps if step.node}))
        identity = RunIdentity(plan.run, plan.experiment, plan.created, self.lock.identity.holder, nodes)
        self.mirror = JournalMirror(connection.kube, self.lock.namespace, identity, self.journal, self.signer)
        self.limits = InjectionLimits(self.loaded, plan, connection)

    @property
    def experiment(self) -> Experiment:
        return self.loaded.experiment

    @property
    def workload(self) -> Sequence[KubeCommand]:
        """The commands that apply the workload."""
        plan = self.plan
        if not plan.namespace:
            return ()
        return create_commands(self.loaded.manifests, plan.namespace, plan.run, plan.workload_nodes)

    @property
    def helper_namespaces(self) -> Sequence[str]:
        """The namespaces of the pods that transport pod has made for the run."""
        return self.connection.helpers.namespaces if self.connection.helpers else ()

    @cached_property
    def events(self) -> NodeEvents | None:
        """Writes Events; None if the inventory does not want them."""
        cluster = self.connection.inventory.cluster
        if cluster is None or not cluster.events:
            return None
        uids = {target.node: target.uid for target in self.plan.targets}
        return NodeEvents(self.kube, self.plan.run, self.lock.identity.holder, uids, self.event_suffix)

    def record_intent(self, steps: Sequence[PlannedStep], t: float) -> None:
        """Journal operations before they begin, on disk and in the cluster. Raises NodefallError."""
        facts = self.plan.facts
        for planned in steps:
            identity = identity_checks(facts.get(planned.node, {}), planned.undo)
            state = planned.undo_state
            self.journal.record_intent(planned.step, planned.action, planned.node, planned.undo, t, identity, state)
        if any(planned.undo.proof for planned in steps):
            self.mirror.publish()

    def withdraw_intent(self, planned: PlannedStep, why: str) -> None:
        """Close the journal entry of a step that did nothing. Raises NodefallError."""
        for pending in self.journal.pending():
            if (pending.step, pending.node) == (planned.step, planned.node):
                self.journal.mark_undone(pending, f"nothing to undo: {why}")
        self.progress.step(planned.step, planned.node, "nothing to undo: the command had no effect")

    def abandon(self, planned: PlannedStep) -> None:
        """Disconnect a host that has not responded: the command may still run, and is undone after that."""
        self.abandoned_steps.add((planned.step, planned.node))
        self.progress.step(planned.step, planned.node, "gave up waiting for its response")
        self.hosts.disconnect(planned.node)

    def emit_injected(self, steps: Sequence[PlannedStep]) -> None:
        """Write the node Events of an injection, after the fault, which must not wait for them."""
        if self.events:
            for planned in steps:
                self._note(self.events.emit_injected(planned, self.clock.now()))

    def emit_undone(self, planned: PlannedStep, because: str) -> None:
        """Write the node Event of a proven undo."""
        if self.events:
            self._note(self.events.emit_undone(planned, self.clock.now(), because))

    def wait_until(self, t: float) -> None:
        """Wait in ticks. Raises Interrupted or Aborted."""
        while (now := self.clock.now()) < t:
            self.tick()
            self.clock.sleep(min(TICK, t - now))
        self.stop.check()

    def tick(self) -> RunResult:
        """Evaluate the verdicts so far. Raises Interrupted, Aborted (abort condition, maxDuration)."""
        self.stop.check()
        now = self.clock.now()
        self.progress.tick(now)
        result = self.judge.judge(True)
        self._record_proofs(result.steps)
        # Foreign faults come before the verdicts that they make inconclusive.
        self._note_once((*(f"foreign fault: {fault.text}" for fault in result.foreign_faults), *result.address_changes))
        self._report(provisional(result))
        for verdict in result.abort:
            if verdict.status is Status.VIOLATED:
                raise Aborted(f"abort condition {verdict.name}: {verdict.sentence}")
        if now > self.deadline:
            raise Aborted(f"maxDuration of {self.experiment.spec.max_duration} is over")
        return result

    def report_final(self, result: RunResult) -> None:
        """Report the verdicts of the final judgement that differ from what was reported."""
        self._report(result)

    def show(self, expectations: Sequence[Verdict], recovery: Sequence[Verdict]) -> None:
        """Pass a judgement to the display, which receives all of them."""
        if isinstance(self.progress, JudgementDisplay):
            timeline = self.recorder.timeline()
            self.progress.judged(Judgement(tuple(expectations), tuple(recovery), timeline, self.deadline))

    def _note(self, why: str) -> None:
        if why:
            self.progress.note(why)

    def _record_proofs(self, steps: Sequence[StepResult]) -> None:
        """Record each proof once: a weak one only if no stronger one follows within ``WEAK_PROOF_SECONDS``."""
        now = self.clock.now()
        for step in steps:
            key = (step.step, step.node)
            planned = next((p for p in self.plan.steps if (p.step, p.node) == key), None)
            early = step.weak and now - (step.returned or now) < WEAK_PROOF_SECONDS
            if planned and step.proof_status is ProofStatus.PROVEN and not early and key not in self.proven_steps:
                self.proven_steps.add(key)
                evidence = {"because": step.because, "weak": step.weak}
                self.recorder.emit(action_entry(now, planned, ActionPhase.PROVED, evidence=evidence))
                self.progress.step(step.step, step.node, f"proven: {step.because}")

    def _note_once(self, texts: Iterable[str]) -> None:
        """Report a note, unless an earlier tick has reported it."""
        for text in texts:
            if text not in self.noted:
                self.noted.add(text)
                self.progress.note(text)

    def _report(self, result: RunResult) -> None:
        """Report each verdict when it changes, and show all of them; a verdict that may still change is pending."""
        for place, verdict in enumerate((*result.hypothesis, *result.recovery)):
            before = self.reported_statuses.get(place)
            if verdict.status is before or (verdict.status is Status.PENDING and before is not None):
                continue
            self.reported_statuses[place] = verdict.status
            self.progress.verdict(verdict)
        self.show(result.hypothesis, result.recovery)
