"""Undo of a step without a check: its command must succeed once, and is not sent again."""

from __future__ import annotations

from pathlib import Path

import chaos.faults.readings
from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.fact import HostFact
from chaos.core.ports import Response
from chaos.core.registry import discover
from chaos.core.result import UndoResult
from chaos.core.store.journal import Journal, read_pending
from chaos.engine.rollback import roll_back
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube, FakeProgress, FakeSession, answered

READY = Response(200, b'{"status":{"conditions":[{"type":"Ready","status":"True"}]}}', {})
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
