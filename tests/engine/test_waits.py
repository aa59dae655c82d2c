"""A step that waits: power-on of a machine that is still going down."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import chaos.faults.readings
from chaos.core.action import Target
from chaos.core.command import PowerCapability, PowerCommand, PowerVerb
from chaos.core.errors import Aborted, NodefallError
from chaos.core.fact import HostFact
from chaos.core.plan import PlannedStep
from chaos.core.ports import Response
from chaos.core.recording import RecordingEntry
from chaos.core.registry import discover
from chaos.engine.inject import inject
from chaos.engine.waits import AWAIT_SECONDS, TAINT_SECONDS, await_taints, lifecycle_taints, read_taints
from chaos.machines.pool import Hosts
from tests.engine.test_inject import context_of
from tests.kit.actionkit import ACTIONS, prepare
from tests.kit.fakes import FakeClock, FakeKube, FakePower, FakeProgress, FakeSession, answered
from tests.kit.sessions import FakeRecorder

WITHOUT_STATE = Target("n1", power="wake-on-lan", power_capabilities=frozenset({PowerCapability.ON}))
FACT = discover(chaos.faults.readings, HostFact)["preparing-for-shutdown"]
LOGIND = str(FACT.command_for({}))


class CountingPower(FakePower):
    """A machine that reports on until it is off at last, and ignores ``on`` before."""

    def __init__(self) -> None:
        super().__init__("on")
        self.commands: list[float] = []
        self.clock = FakeClock()

    def on(self) -> None:
        self.commands.append(self.clock.now())
        super().on()


def power_on(
    tmp_path: Path, power: CountingPower, answer: str, target: Target
) -> tuple[list[RecordingEntry], list[str]]:
    """Recorded entries and progress of the step, at 1000; ``answer`` is what logind's property reads."""
    action, state = ACTIONS["power-on"], prepare("power-on", {}, target)
    program = action.program(state)
    step = PlannedStep("do", "power-on", "n1", {}, {}, program.commands, program.undo, (), awaits=program.awaits)
    session = FakeSession({LOGIND: answered(answer)} if answer else {})
    kube, progress, lines = FakeKube({}), FakeProgress(), list[RecordingEntry]()
    context = context_of(tmp_path, step, power.clock, session, kube)
    hosts = Hosts(lambda _: session, lambda _: power, kube, discover(chaos.faults.readings, HostFact), power.clock)
    context.hosts, context.recorder, context.progress = hosts, FakeRecorder(lines.append), progress
    inject(context)
    return lines, progress.reports


TARGET = Target("n1", power="docker")


@pytest.mark.parametrize("answer", ["b true\n", ""], ids=["shutting down", "no answer"])
def test_a_machine_that_still_goes_down_is_awaited(tmp_path: Path, answer: str) -> None:
    """Seen on a real cluster: containers held up the end of the machine for 36 s after power-on was due."""
    power = CountingPower()
    power.clock.agenda.append((1036.0, lambda: setattr(power, "value", "off")))
    lines, reports = power_on(tmp_path, power, answer, TARGET)
    assert power.commands == [1036.0]
    assert power.value == "on"
    assert [(line.kind, line.type, line.t) for line in lines] == [
        ("host", "machine", 1036.0), ("action", "power-on", 1036.0), ("action", "power-on", 1036.0)
    ]  # fmt: skip
    assert msgspec.json.decode(lines[0].object) == "off"
    assert sum("waits" in report for report in reports) == 1
    assert any("the machine is on" in report for report in reports)


def test_a_machine_that_is_up_is_not_awaited(tmp_path: Path) -> None:
    """It has booted by itself: the command is harmless, and the proof decides."""
    power = CountingPower()
    lines, _ = power_on(tmp_path, power, "b false\n", TARGET)
    assert power.commands == [1000.0]
    assert (lines[0].type, msgspec.json.decode(lines[0].object)) == ("preparing-for-shutdown", "b false")


def test_a_machine_that_never_goes_off_is_not_powered_on(tmp_path: Path) -> None:
    power = CountingPower()
    with pytest.raises(Aborted, match=r"waited 240 s until the machine is off or .* but the machine is on; "):
        power_on(tmp_path, power, "b true\n", TARGET)
    assert power.commands == []
    assert power.clock.now() == pytest.approx(1000 + AWAIT_SECONDS, abs=2)


def test_a_power_control_without_state_cannot_be_awaited(tmp_path: Path) -> None:
    power = CountingPower()
    lines, _ = power_on(tmp_path, power, "", WITHOUT_STATE)
    assert power.commands == [1000.0]
    assert [line.kind for line in lines] == ["action", "action"]
    assert ACTIONS["power-on"].program(prepare("power-on", {}, WITHOUT_STATE)).commands == (PowerCommand(PowerVerb.ON),)


PRESSURE = "node.kubernetes.io/disk-pressure:NoSchedule"
OWN = ("node.kubernetes.io/out-of-service:NoExecute", "example.com/team:NoSchedule")
PATH = "/api/v1/nodes/n1"


def node(*taints: str) -> Response:
    listed = [dict(zip(("key", "effect"), taint.split(":"), strict=True)) for taint in taints]
    return Response(200, json.dumps({"metadata": {"name": "n1"}, "spec": {"taints": listed}}).encode(), {})


def test_only_taints_of_controllers_count() -> None:
    assert lifecycle_taints(FakeKube({PATH: node(PRESSURE, *OWN)}), "n1") == {PRESSURE}
    assert lifecycle_taints(FakeKube({}), "n1") == frozenset(), "there is no such node"
    with pytest.raises(NodefallError):
        lifecycle_taints(FakeKube({PATH: Response(500, b"", {})}), "n1")
    assert read_taints(FakeKube({PATH: Response(500, b"", {})}), ["n1"]) == {}


@pytest.mark.parametrize(
    ("after", "seconds", "expected"),
    [
        (100, TAINT_SECONDS, []),
        (10_000, TAINT_SECONDS, [f"taint {PRESSURE} of n1: Kubernetes has not removed it yet"]),
        (100, 0, [f"taint {PRESSURE} of n1: Kubernetes has not removed it yet"]),
    ],
)
def test_they_are_waited_for(after: float, seconds: float, expected: list[str]) -> None:
    kube, clock = FakeKube({PATH: node(PRESSURE)}), FakeClock()
    clock.agenda.append((clock.now() + after, lambda: kube.answers.update({PATH: node()})))
    waits: list[Sequence[str]] = []
    assert await_taints(kube, clock, {"n1": frozenset()}, ["n1"], seconds, waits.append) == expected
    assert bool(waits) is bool(seconds), "each pause is reported"
    assert clock.slept <= seconds + 2


def test_taints_from_before_the_fault_are_none_of_it() -> None:
    kube, clock = FakeKube({PATH: node(PRESSURE)}), FakeClock()
    assert await_taints(kube, clock, {"n1": frozenset({PRESSURE})}, ["n1"], TAINT_SECONDS) == []
    assert await_taints(kube, clock, {}, ["n1"], TAINT_SECONDS) == [], "what was before is unknown"
    assert clock.slept == 0
