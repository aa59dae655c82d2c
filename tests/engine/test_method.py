"""Firing a step: what stops the run while it is being prepared."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import FakeClock, FakeKube, FakeProgress, FakeSession, answered

import chaos.facts
from chaos.engine.context import Context, Interrupted
from chaos.engine.hosts import Hosts
from chaos.engine.method import inject
from chaos.engine.selfheal import plant_command
from chaos.model.action import SelfHeal, Undo
from chaos.model.catalogue import discover
from chaos.model.command import HostCommand, Outcome
from chaos.model.experiment import Experiment
from chaos.model.plan import Plan, PlannedStep
from chaos.model.result import RunResult
from chaos.model.verdict import Status
from chaos.store.journal import Journal, read_owed

HEAL = SelfHeal("nodefall-x", 60.0, ("true",))
FAULT = HostCommand(("false",))
SHOW = "systemctl show --property=NextElapseUSecMonotonic nodefall-x.timer"


class Armable(FakeSession):
    """Waits for one write, which must not come."""

    def arm(self, command: HostCommand) -> Armable:
        self.sent.append(f"arm {command}")
        return self

    def fire(self) -> Outcome:
        raise AssertionError("fired")

    def cancel(self) -> None:
        self.sent.append("cancel")


def document() -> Experiment:
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec = {"title": "t", "steadyState": [ready], "hypothesis": [ready]}
    method = {"method": [{"name": "do", "action": "kubelet-stop", "target": "victim"}]}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
    return Experiment.model_validate(head | {"spec": spec | method})


def test_a_stop_that_comes_while_the_timer_is_planted_prevents_the_fault(tmp_path: Path) -> None:
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (FAULT,), Undo(disarm=HEAL.unit), (), (), HEAL)
    empty = RunResult(1, "r", "x", "t", Status.PENDING, 2, "", False, "", "", 0.0, 0.0, {}, (), (), ())
    session = Armable({SHOW: answered("NextElapseUSecMonotonic=1min 40s\n"), "cat /proc/uptime": answered("40.0 1\n")})
    clock = FakeClock()
    context = Context(
        experiment=document(),
        plan=Plan("r", "x", "", "", 0.0, 0, (), (step,)),
        clock=clock,
        kube=FakeKube({}),
        hosts=Hosts(lambda _: session, lambda _: None, FakeKube({}), discover(chaos.facts, "FACT"), clock),
        journal=Journal(tmp_path),
        progress=FakeProgress(),
        emit=lambda line: None,
        judge=lambda live: empty,
        steady=tuple,
        deadline=clock.now() + 600,
    )

    def planted() -> Outcome:
        context.stop.signum = 2
        return answered()

    session.answers[str(plant_command(HEAL, 60.0))] = planted
    with pytest.raises(Interrupted):
        inject(context)
    assert session.sent[-2:] == ["arm false", "cancel"]
    assert [owed.step for owed in read_owed(tmp_path)] == ["do"]
