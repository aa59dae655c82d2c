"""Undo of several entries and of steps without a check: in which order, and what counts as done."""

from __future__ import annotations

from pathlib import Path

import chaos.faults.readings
from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.fact import HostFact
from chaos.core.registry import discover
from chaos.core.result import UndoResult
from chaos.core.store.journal import Journal, read_pending
from chaos.engine.rollback import roll_back
from chaos.machines.pool import Hosts
from tests.engine.test_rollback import LOCKED, LOCKS, NOT_READY, READY, UNLOCKED, UP, Stopped, World, undo_of
from tests.kit.fakes import FakeClock, FakeKube, FakePower, FakeProgress, FakeSession, answered

KUBELET: dict[str, object] = {"kubelet-unit": "kubelet.service"}
RESTART = "systemctl restart kubelet.service"


def test_nothing_is_sent_to_a_machine_that_is_off(tmp_path: Path) -> None:
    """Each try would wait for a time-out while the machine could boot already."""
    power = FakePower("off")
    world = Stopped(tmp_path, power)
    world.changed = lambda: world.kube.answers.update({"/api/v1/nodes/n1": READY})  # type: ignore[method-assign]
    answers = world.session.answers | UP
    tries: list[str] = []

    def answer(command: str) -> Outcome:
        if power.value == "off":
            tries.append(command)
            return Outcome(Delivery.NOT_SENT, error="no route to host")
        found = answers[command]
        return found() if callable(found) else found

    world.session.answers = {command: (lambda command=command: answer(command)) for command in answers}  # type: ignore[misc]
    world.intend("poweroff", undo_of("poweroff"))
    world.intend("kubelet-stop", undo_of("kubelet-stop", KUBELET))
    assert world.roll_back() == [True, True]
    assert "systemctl start kubelet.service" not in tries
    steps = [report for report in world.progress.reports if "undo: " in report]
    assert "undo: power on" in steps[0]


def test_an_undo_on_a_machine_that_stays_off_is_pending(tmp_path: Path) -> None:
    world = Stopped(tmp_path, FakePower("off", broken=True))
    world.intend("poweroff", undo_of("poweroff"))
    world.intend("kubelet-stop", undo_of("kubelet-stop", KUBELET))
    assert world.roll_back() == [False, False]
    waits = [report for report in world.progress.reports if " waits: " in report]
    assert len(waits) == 2, "the reason is said once for each entry"
    assert "waits: the BMC does not answer" in waits[0]
    assert waits[1].endswith("waits: node-ready is false")


def test_two_cancelled_shutdowns_restart_the_kubelet_once(tmp_path: Path) -> None:
    """A second restart would end the kubelet that is about to start."""
    world = World(tmp_path, FakeSession({LOCKS: UNLOCKED}), None, NOT_READY)

    def back() -> None:
        world.kube.answers["/api/v1/nodes/n1"] = READY
        world.session.answers[LOCKS] = LOCKED

    def restart() -> Outcome:
        world.clock.agenda.append((world.clock.now() + 10, back))
        return answered()

    world.session.answers[RESTART] = restart
    facts = KUBELET | {"inhibitor-kubelet": True, "configz": {"shutdownGracePeriod": "0s"}}
    world.intend("cancel-shutdown", undo_of("cancel-shutdown", facts))
    world.intend("cancel-shutdown", undo_of("cancel-shutdown", facts))
    world.intend("prepare-for-shutdown", undo_of("prepare-for-shutdown", facts, active=False))
    assert world.roll_back() == [True, True, True]
    assert world.session.sent.count(RESTART) == 1


def test_equal_steps_of_two_nodes_are_both_sent(tmp_path: Path) -> None:
    world = World(tmp_path, FakeSession({RESTART: answered()}), None, NOT_READY)
    world.kube.answers["/api/v1/nodes/n2"] = NOT_READY
    for node in ("n1", "n2"):
        world.intend("cancel-shutdown", undo_of("cancel-shutdown", KUBELET), node)
    assert world.roll_back() == [False, False]
    assert world.session.sent.count(RESTART) == 6, "three tries on each"


START = HostCommand(("systemctl", "start", "cron.service"))


def undo(directory: Path, session: FakeSession, proof: tuple[FactCheck, ...]) -> UndoResult:
    clock = FakeClock()
    kube = FakeKube({"/api/v1/nodes/n1": READY})
    hosts = Hosts(lambda _: session, lambda _: None, kube, discover(chaos.faults.readings, HostFact), clock)
    journal = Journal(directory)
    journal.record_intent("step", "command", "n1", Undo((UndoStep(START),), proof), clock.now())
    (result,) = roll_back(journal, hosts, clock, FakeProgress())
    return result


def test_it_is_sent_once(tmp_path: Path) -> None:
    session = FakeSession({str(START): answered("")})
    assert undo(tmp_path, session, (FactCheck(PseudoFact.NODE_READY, True),)).proven
    assert [str(command) for command in session.sent] == [str(START)]
    assert read_pending(tmp_path) == []


def test_a_failure_stays_pending(tmp_path: Path) -> None:
    session = FakeSession({str(START): Outcome(Delivery.ANSWERED, 1, stderr="Unit cron.service not found.")})
    result = undo(tmp_path, session, ())
    assert not result.proven
    assert "`systemctl start cron.service` has not succeeded" in result.because
    assert "Unit cron.service not found." in result.because
    assert len(session.sent) == 3
    assert [entry.action for entry in read_pending(tmp_path)] == ["command"]


def test_a_temporary_failure_is_retried(tmp_path: Path) -> None:
    outcomes = [answered(""), Outcome(Delivery.ANSWERED, 1)]
    session = FakeSession({str(START): outcomes.pop})
    assert undo(tmp_path, session, ()).proven
    assert len(session.sent) == 2
