"""Firing a step: what stops the run while it is being prepared."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event

import msgspec
import pytest
from msgspec import structs

import chaos.faults.readings
from chaos.core.action import FactCheck, FailsafeTimer, Undo, UndoStep
from chaos.core.clock import SystemClock
from chaos.core.command import Delivery, DrainRules, HostCommand, Outcome, PodsCommand, PodSelector, PodVerb
from chaos.core.errors import Aborted
from chaos.core.experiment import Experiment
from chaos.core.fact import HostFact
from chaos.core.plan import Plan, PlannedStep
from chaos.core.ports import Armed, Clock, Response
from chaos.core.recording import FAILSAFE, ActionPhase, ActionRecord, RecordingEntry
from chaos.core.registry import discover
from chaos.core.result import RunResult
from chaos.core.store.journal import read_pending
from chaos.core.verdict import Status, Verdict
from chaos.engine.failsafe import failsafe_command
from chaos.engine.inject import START_LEAD, inject
from chaos.engine.session import RunSession
from chaos.engine.stop import Interrupted
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeGuard, FakeKube, FakeProgress, FakeSession, answered
from tests.kit.sessions import FakeJudge, FakeRecorder, session_of

HEAL = FailsafeTimer("nodefall-x", 60.0, ("true",))
FAULT = HostCommand(("false",))
EMPTY = RunResult(1, "r", "x", "t", Status.PENDING, 2, "", False, "", "", 0.0, 0.0, {}, (), (), ())
SHOW = "systemctl show --property=NextElapseUSecMonotonic nodefall-x.timer"


class Armable(FakeSession):
    """A session whose armed command must not be released."""

    def arm(self, command: HostCommand) -> Armable:
        self.sent.append(f"arm {command}")
        return self

    def calibrate(self, now: Callable[[], float]) -> bool:
        raise AssertionError("alone")

    def release(self, at: float | None = None) -> None:
        raise AssertionError("fired")

    def wait(self) -> Outcome:
        raise AssertionError("fired")

    def cancel(self) -> None:
        self.sent.append("cancel")


class Still(FakeClock):
    """Time does not move."""

    def sleep(self, seconds: float) -> bool:
        return True


def document() -> Experiment:
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec = {"title": "t", "steadyState": [ready], "hypothesis": [ready]}
    method = {"method": [{"name": "do", "action": "kubelet-stop", "target": "victim"}]}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
    return Experiment.model_validate(head | {"spec": spec | method})


def context_of(folder: Path, step: PlannedStep, clock: Clock, session: FakeSession, kube: FakeKube) -> RunSession:
    hosts = Hosts(lambda _: session, lambda _: None, kube, discover(chaos.faults.readings, HostFact), clock)
    plan = Plan("r", "x", "", "", 0.0, 0, (), (step,))
    return session_of(folder, document(), plan, hosts, kube, clock, FakeProgress(), FakeJudge(lambda _: EMPTY))


def test_a_stop_while_the_timer_is_armed_prevents_the_fault(tmp_path: Path) -> None:
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (FAULT,), Undo(disarm=HEAL.unit), (), (), HEAL)
    session = Armable({SHOW: answered("NextElapseUSecMonotonic=1min 40s\n"), "cat /proc/uptime": answered("40.0 1\n")})
    context = context_of(tmp_path, step, FakeClock(), session, FakeKube({}))

    def planted() -> Outcome:
        context.stop.signum = 2
        return answered()

    session.answers[str(failsafe_command(HEAL, 60.0))] = planted
    with pytest.raises(Interrupted):
        inject(context)
    assert session.sent[-2:] == ["arm false", "cancel"]
    assert [entry.step for entry in read_pending(tmp_path)] == ["do"]


class LostGuard(FakeGuard):
    """A lock that another process takes while the journal is written."""

    def check(self) -> None:
        raise Aborted("the cluster's lock was taken")


def test_a_lock_that_is_lost_while_the_journal_is_written_prevents_the_timer_too(tmp_path: Path) -> None:
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (FAULT,), Undo(disarm=HEAL.unit), (), (), HEAL)
    session = Armable({})
    context = context_of(tmp_path, step, FakeClock(), session, FakeKube({}))
    context.lock = LostGuard()
    with pytest.raises(Aborted, match="the cluster's lock was taken"):
        inject(context)
    assert session.sent == []
    assert [entry.step for entry in read_pending(tmp_path)] == ["do"]


class Tuned(FakeSession):
    """``known``: whether the clock of each host in turn can be calibrated; ``fired``: the instants of release."""

    def __init__(self, known: list[bool]) -> None:
        super().__init__({})
        self.known, self.fired = list(known), list[float | None]()

    def arm(self, command: HostCommand) -> Armed:
        return self

    def calibrate(self, now: Callable[[], float]) -> bool:
        assert now() == 1000.0
        return self.known.pop()

    def release(self, at: float | None = None) -> None:
        self.fired.append(at)

    def wait(self) -> Outcome:
        return answered()

    def cancel(self) -> None: ...


@pytest.mark.parametrize(
    ("known", "fired"),
    [([True] * 3, [1000.0 + START_LEAD] * 3), ([True, False, True], [None] * 3), ([], [None])],
    ids=["all at one instant", "one is not known", "alone"],
)
def test_hosts_begin_at_one_instant_if_all_are_calibrated(
    tmp_path: Path, known: list[bool], fired: list[float | None]
) -> None:
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (FAULT,), Undo(), ())
    session = Tuned(known)
    context = context_of(tmp_path, step, Still(), session, FakeKube({}))
    steps = tuple(structs.replace(step, node=f"n{n}") for n in range(len(fired)))
    context.plan = structs.replace(context.plan, steps=steps)
    inject(context)
    assert session.fired == fired


class Slow(FakeSession):
    """The armed command, or the command ``slow``, ends when ``answer`` is set or the session is closed."""

    def __init__(self, slow: str = "") -> None:
        super().__init__({})
        self.slow, self.begun, self.answer, self.gone = slow, Event(), Event(), False

    def run(self, command: HostCommand) -> Outcome:
        return self._wait() if str(command) == self.slow else answered()

    def arm(self, command: HostCommand) -> Armed:
        return self

    def calibrate(self, now: Callable[[], float]) -> bool:
        return True

    def release(self, at: float | None = None) -> None: ...

    def wait(self) -> Outcome:
        return answered() if self.slow else self._wait()

    def cancel(self) -> None: ...

    def close(self) -> None:
        self.gone = True
        self.answer.set()

    def _wait(self) -> Outcome:
        self.begun.set()
        assert self.answer.wait(60)
        return Outcome(Delivery.LOST, error="connection lost") if self.gone else answered()


def aborting(session: Slow) -> RunResult:
    """A result whose abort condition is violated once the session is busy."""
    condition = Verdict("apart", "nodes-ready", Status.VIOLATED if session.begun.is_set() else Status.PENDING, "x")
    return structs.replace(EMPTY, abort=(condition,))


@pytest.mark.parametrize("slow", ["", "true"], ids=["the step itself", "what is sent before"])
def test_an_abort_does_not_wait_for_a_host_that_does_not_answer(tmp_path: Path, slow: str) -> None:
    session, clock = Slow(slow), SystemClock()
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (HostCommand(("true",)), FAULT), Undo(), ())
    context = context_of(tmp_path, step, clock, session, FakeKube({}))
    context.judge = FakeJudge(lambda _: aborting(session))
    with closing(clock), pytest.raises(Aborted, match="abort condition apart"):
        inject(context)
    assert session.gone
    assert context.abandoned_steps == {("do", "n1")}


def test_a_host_that_answers_soon_is_not_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, clock = Slow(), SystemClock()
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (FAULT,), Undo(), ())
    context = context_of(tmp_path, step, clock, session, FakeKube({}))
    lines: list[RecordingEntry] = []

    def judged(_live: bool) -> RunResult:
        if session.begun.is_set():
            monkeypatch.setattr("chaos.engine.inject._GRACE", 60.0)
            session.answer.set()
        return aborting(session)

    context.recorder, context.judge = FakeRecorder(lines.append), FakeJudge(judged)
    with closing(clock), pytest.raises(Aborted, match="abort condition apart"):
        inject(context)
    assert [msgspec.json.decode(line.object, type=ActionRecord).delivery for line in lines][-1] == Delivery.ANSWERED
    assert (session.gone, context.abandoned_steps) == (False, set())


class Refusing(FakeKube):
    """One pod, of which every eviction is refused."""

    def request(self, method: str, path: str, *_: object, **__: object) -> Response:
        self.sent.append((method, path))
        if method == "POST":
            return Response(429, b'{"message": "no"}', {})
        pod = {"metadata": {"name": "a", "namespace": "b", "uid": "c", "ownerReferences": [{"controller": True}]}}
        return Response(200, json.dumps({"items": [pod]}).encode(), {})


def test_a_refused_drain_does_not_delay_the_end_of_the_run(tmp_path: Path) -> None:
    """The drain waits in a thread for an hour; the end of the run ends the wait, and the refusals are recorded."""
    drain = PodsCommand(PodVerb.EVICT, PodSelector(node="n1"), wait=3600.0, rules=DrainRules())
    step = PlannedStep("do", "drain", "n1", {}, {}, (drain,), Undo(), ())
    clock, kube = SystemClock(), Refusing({})
    context = context_of(tmp_path, step, clock, FakeSession({}), kube)
    lines: list[RecordingEntry] = []

    def judged(_live: bool) -> RunResult:
        if ("POST", "/api/v1/namespaces/b/pods/a/eviction") in kube.sent:
            context.stop.signum = 2
        return EMPTY

    context.recorder, context.judge = FakeRecorder(lines.append), FakeJudge(judged)
    with closing(clock), pytest.raises(Interrupted):
        inject(context)
    begin, returned = (msgspec.json.decode(line.object, type=ActionRecord) for line in lines)
    assert (begin.phase, returned.phase, returned.exit) == ("begin", "returned", 1)
    (pod,) = returned.evidence["pods"]
    assert [(refusal["status"], refusal["message"]) for refusal in pod["refusals"]] == [(429, "no")]


NOT_LOADED = Outcome(Delivery.ANSWERED, 5, stderr="Unit x.service not loaded.")


@pytest.mark.parametrize(
    ("outcome", "pending"),
    [
        (NOT_LOADED, []),
        (Outcome(Delivery.NOT_SENT, error="connection refused"), []),
        (Outcome(Delivery.ANSWERED, 1, stderr="Job failed."), ["do"]),
        (Outcome(Delivery.LOST, error="connection lost"), ["do"]),
    ],
    ids=["unit not loaded", "not sent", "failed", "lost"],
)
def test_a_step_that_had_no_effect_leaves_no_pending_undo(tmp_path: Path, outcome: Outcome, pending: list[str]) -> None:
    stop = HostCommand(("systemctl", "stop", "x"))
    undo = Undo((UndoStep(HostCommand(("systemctl", "start", "x"))),), (FactCheck("boot-id", "active"),))
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (stop,), undo, ())
    context = context_of(tmp_path, step, Still(), OneOutcome(outcome), FakeKube({}))
    if outcome.delivery is Delivery.LOST:
        inject(context)
    else:
        with pytest.raises(Aborted, match=outcome.error or outcome.stderr):
            inject(context)
    assert [entry.step for entry in read_pending(tmp_path)] == pending


CANCELED = "Job for kubelet.service canceled."


@pytest.mark.parametrize(
    ("stderr", "aborts"),
    [(f"{CANCELED}\n", False), (f"Warning: changed on disk.\n{CANCELED}\n", False), ("Job failed.", True)],
)
def test_a_failure_that_leaves_the_effect_open_is_recorded_and_left_to_the_proof(
    tmp_path: Path, stderr: str, aborts: bool
) -> None:
    """What ``systemctl restart kubelet`` answers in the window of a shutdown: the kubelet is stopped nevertheless."""
    restart = HostCommand(("systemctl", "restart", "kubelet.service"), undecided=(CANCELED,))
    step = PlannedStep("do", "kubelet-restart", "n1", {}, {}, (restart,), Undo(proof=(FactCheck("a", 1),)), ())
    outcome = Outcome(Delivery.ANSWERED, 1, stderr=stderr)
    context = context_of(tmp_path, step, Still(), OneOutcome(outcome), FakeKube({}))
    lines: list[RecordingEntry] = []
    context.recorder = FakeRecorder(lines.append)
    if aborts:
        with pytest.raises(Aborted, match="Job failed"):
            inject(context)
    else:
        inject(context)
    _, returned = (msgspec.json.decode(line.object, type=ActionRecord) for line in lines)
    assert returned.exit == 1
    assert returned.evidence.get("stderr") == (None if aborts else CANCELED)
    assert [entry.step for entry in read_pending(tmp_path)] == ["do"]


@pytest.mark.parametrize(
    ("exit_code", "stderr"), [(1116, "Abbruch nicht m\u00f6glich.(1116)\n"), (1, "Abbruch nicht m\u00f6glich.(1116)\n")]
)
def test_a_refusal_is_explained_and_leaves_no_undo_pending(tmp_path: Path, exit_code: int, stderr: str) -> None:
    """The program has done nothing; what it prints is in the language of the host."""
    cancel = HostCommand(("shutdown.exe", "/a"), refusals=((1116, "its countdown is over"),))
    step = PlannedStep("do", "cancel-shutdown", "n1", {}, {}, (cancel,), Undo(proof=(FactCheck("a", 1),)), ())
    outcome = Outcome(Delivery.ANSWERED, exit_code, stderr=stderr)
    context = context_of(tmp_path, step, Still(), OneOutcome(outcome), FakeKube({}))
    with pytest.raises(Aborted, match=r"step do on n1: shutdown.exe /a: its countdown is over"):
        inject(context)
    assert read_pending(tmp_path) == []


def test_a_step_with_preliminaries_is_undone_whatever_its_last_command_did(tmp_path: Path) -> None:
    commands = (HostCommand(("true",)), HostCommand(("systemctl", "stop", "x")))
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, commands, Undo(), ())
    context = context_of(tmp_path, step, Still(), OneOutcome(NOT_LOADED), FakeKube({}))
    with pytest.raises(Aborted, match="not loaded"):
        inject(context)
    assert [entry.step for entry in read_pending(tmp_path)] == ["do"]


class OneOutcome(FakeSession):
    """Its armed command has the given outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__({"true": answered()})
        self.outcome = outcome

    def arm(self, command: HostCommand) -> Armed:
        return self

    def calibrate(self, now: Callable[[], float]) -> bool:
        return True

    def release(self, at: float | None = None) -> None: ...

    def wait(self) -> Outcome:
        return self.outcome

    def cancel(self) -> None: ...


def test_the_limits_are_checked_after_the_step_was_armed(tmp_path: Path) -> None:
    session = Armable({})
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (FAULT,), Undo(), ())
    context = context_of(tmp_path, step, FakeClock(), session, FakeKube({}))

    class Limits:
        def check(self, group: Sequence[PlannedStep]) -> None:
            assert (list(group), session.sent) == ([step], ["arm false"])
            raise Aborted("too few Ready workers")

    context.limits = Limits()
    with pytest.raises(Aborted, match="too few Ready workers"):
        inject(context)
    assert session.sent == ["arm false", "cancel"]
    assert read_pending(tmp_path) == []


@pytest.mark.parametrize(("left", "seconds"), [(600.0, 60.0), (20.0, 20.0)])
def test_the_recording_says_when_the_failsafe_timer_fires(tmp_path: Path, left: float, seconds: float) -> None:
    """At the earliest: counted from before it was armed, which took 3 s."""
    clock = FakeClock()
    shown = f"NextElapseUSecMonotonic={40 + seconds:.0f}s\n"
    session = OneOutcome(answered())
    session.answers |= {SHOW: answered(shown), "cat /proc/uptime": answered("40.0 1\n")}

    def planted() -> Outcome:
        clock.sleep(3.0)
        return answered()

    session.answers[str(failsafe_command(HEAL, seconds))] = planted
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (FAULT,), Undo(disarm=HEAL.unit), (), (), HEAL)
    context = context_of(tmp_path, step, clock, session, FakeKube({}))
    entries: list[RecordingEntry] = []
    context.recorder = FakeRecorder(entries.append)
    begin = clock.now()
    context.deadline = begin + left
    inject(context)
    records = [msgspec.json.decode(entry.object, type=ActionRecord) for entry in entries if entry.kind == "action"]
    (returned,) = [record for record in records if record.phase == ActionPhase.RETURNED]
    assert returned.evidence[FAILSAFE] == begin + seconds
