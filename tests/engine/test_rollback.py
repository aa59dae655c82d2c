"""Undo: conditional steps, proof before an entry is marked undone, on after a failure, harmless twice."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chaos.faults.actions
import chaos.faults.readings
from chaos.core.action import Action, FactCheck, Target, Undo, UndoStep
from chaos.core.command import Delivery, HostCommand, Outcome, PowerCommand, PowerState, PowerVerb
from chaos.core.errors import Refused
from chaos.core.fact import HostFact
from chaos.core.ports import Response
from chaos.core.registry import discover
from chaos.core.store.journal import Journal, read_pending
from chaos.engine.rollback import PROOF_SECONDS, UndoRules, roll_back
from chaos.faults.readings.logind import POWERS_OFF
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube, FakePower, FakeProgress, FakeSession, answered

ACTIONS = discover(chaos.faults.actions, Action)
FACTS = discover(chaos.faults.readings, HostFact)
LOCKS = str(FACTS["inhibitor-locks"].command)
LOCKED = answered(
    '{"type":"a(ssssuu)","data":[[["shutdown","kubelet","Kubelet needs time to handle node shutdown","delay",0,8]]]}'
)
UNLOCKED = answered('{"type":"a(ssssuu)","data":[[]]}')
READY = Response(200, b'{"status":{"conditions":[{"type":"Ready","status":"True"}]}}', {})
NOT_READY = Response(200, b'{"status":{"conditions":[{"type":"Ready","status":"False"}]}}', {})
PREPARING = str(FACTS["preparing-for-shutdown"].command)
UP: dict[str, Outcome | Callable[[], Outcome]] = {PREPARING: answered("b false\n")}
EMIT = "busctl emit /org/freedesktop/login1 org.freedesktop.login1.Manager PrepareForShutdown b false"


class World:
    """One node, its power control, its API server."""

    def __init__(self, directory: Path, session: FakeSession, power: FakePower | None, node: Response = READY) -> None:
        self.clock, self.progress = FakeClock(), FakeProgress()
        self.session, self.power = session, power
        self.kube = FakeKube({"/api/v1/nodes/n1": node})
        self.hosts = Hosts(lambda _: session, lambda _: power, self.kube, FACTS, self.clock)
        self.journal = Journal(directory)

    def intend(self, action: str, undo: Undo, node: str = "n1") -> None:
        self.journal.record_intent("step", action, node, undo, self.clock.now())

    def roll_back(self) -> list[bool]:
        return [r.proven for r in roll_back(self.journal, self.hosts, self.clock, self.progress)]


def undo_of(name: str, facts: dict[str, object] | None = None, **given: object) -> Undo:
    action = ACTIONS[name]
    target = Target("n1", power="redfish", facts=facts or {})
    undo: Undo = action.program(action.prepare(target, action.params.model_validate(given))).undo
    return undo


def test_a_machine_that_is_off_is_powered_on_once(tmp_path: Path) -> None:
    power = FakePower("off")
    world = World(tmp_path, FakeSession(dict(UP)), power)
    world.intend("poweroff", undo_of("poweroff"))
    assert world.roll_back() == [True]
    assert power.value == "on"
    assert world.roll_back() == []
    assert read_pending(tmp_path) == []


def test_a_machine_that_is_on_is_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path, FakeSession(dict(UP)), FakePower("on"))
    world.intend("poweroff", undo_of("poweroff"))
    assert world.roll_back() == [True]
    assert not [line for line in world.progress.reports if "undo: power on" in line]


class SlowStop(FakePower):
    """Accepts a soft off; the guest begins, and is off, ``seconds`` later. ``shows``: whether its status shows that."""

    def __init__(self, clock: FakeClock, seconds: float, shows: bool) -> None:
        super().__init__("on")
        self._begin, self._seconds, self._shows, self._clock = clock.now(), seconds, shows, clock
        clock.agenda.append((clock.now() + seconds, lambda: setattr(self, "value", "off")))

    def is_stopping(self) -> bool:
        return self._shows and self._clock.now() < self._begin + self._seconds


@pytest.mark.parametrize(("seconds", "shows"), [(20.0, False), (20.0, True), (200.0, True)])
def test_a_press_that_takes_effect_late_is_not_undone_before(tmp_path: Path, seconds: float, shows: bool) -> None:
    """A cloud that has accepted a stop: until the guest begins, its machine is on, and its logind reports nothing."""
    world = World(tmp_path, FakeSession(dict(UP)), None)
    power = world.power = SlowStop(world.clock, seconds, shows)
    world.hosts = Hosts(lambda _: world.session, lambda _: power, world.kube, FACTS, world.clock)
    world.intend("power-button", undo_of("power-button", {"power-key": POWERS_OFF}))
    assert world.roll_back() == [True]
    assert power.value == "on"
    assert not world.clock.agenda, "the undo was proven before the machine went off"


@pytest.mark.parametrize(
    ("power", "node", "why"),
    [
        (FakePower("off", broken=True), READY, "the BMC does not answer"),
        (FakePower("on"), NOT_READY, "node-ready is false"),
        (None, READY, "it has no power control"),
    ],
)
def test_an_undo_without_proof_stays_pending(tmp_path: Path, power: FakePower | None, node: Response, why: str) -> None:
    world = World(tmp_path, FakeSession(dict(UP)), power, node)
    world.intend("poweroff", undo_of("poweroff"))
    (result,) = roll_back(world.journal, world.hosts, world.clock, world.progress)
    assert not result.proven
    assert why in result.because
    assert world.clock.slept >= PROOF_SECONDS
    assert [o.action for o in read_pending(tmp_path)] == ["poweroff"]


def test_an_abandoned_operation_may_take_effect_as_late_as_now(tmp_path: Path) -> None:
    power = FakePower("on")
    world = World(tmp_path, FakeSession(dict(UP)), power)
    world.intend("poweroff", undo_of("poweroff"))
    world.clock.sleep(60)
    world.clock.agenda.append((world.clock.now() + 3, lambda: setattr(power, "value", "off")))
    (result,) = roll_back(
        world.journal, world.hosts, world.clock, world.progress, UndoRules(is_uncertain=lambda _: True)
    )
    assert (result.proven, power.value) == (True, "on")
    assert any("undo: power on" in line for line in world.progress.reports)


def test_a_machine_that_is_still_on_but_going_down_is_powered_on_later(tmp_path: Path) -> None:
    """Right after ``systemctl poweroff`` it is on, and its node is Ready: nothing has been undone yet."""
    power = FakePower("on")
    session = FakeSession({PREPARING: answered("b true\n")})
    world = World(tmp_path, session, power)

    def off() -> None:
        power.value = "off"
        session.answers[PREPARING] = Outcome(Delivery.NOT_SENT, error="connection refused")

    world.clock.agenda += [(1010.0, off), (1030.0, lambda: session.answers.update(UP))]
    world.intend("poweroff", undo_of("poweroff"))
    assert world.roll_back() == [True]
    assert power.value == "on"
    assert world.clock.now() >= 1030


def test_a_lost_lock_comes_back_with_a_kubelet_restart(tmp_path: Path) -> None:
    locked = False

    def restart() -> Outcome:
        nonlocal locked
        locked = True
        return answered()

    answers: dict[str, Outcome | Callable[[], Outcome]] = {
        "systemctl restart k3s.service": restart,
        LOCKS: lambda: LOCKED if locked else UNLOCKED,
    }
    world = World(tmp_path, FakeSession(answers), None)
    facts = {"inhibitor-kubelet": True, "kubelet-unit": "k3s.service", "configz": {"shutdownGracePeriod": "30s"}}
    world.intend("prepare-for-shutdown", undo_of("prepare-for-shutdown", facts, active=True))
    assert world.roll_back() == [True]
    assert "systemctl restart k3s.service" in world.session.sent
    assert EMIT not in world.session.sent  # the node was Ready: it needs no cancellation
    assert world.clock.slept >= 45  # the kubelet was given time to take its lock by itself


def test_a_kubelet_that_is_neither_ready_nor_locks_is_restarted_once(tmp_path: Path) -> None:
    """Two steps of this undo need the same command."""
    answers: dict[str, Outcome | Callable[[], Outcome]] = {LOCKS: UNLOCKED}
    world = World(tmp_path, FakeSession(answers), None, NOT_READY)

    def back() -> None:
        world.kube.answers["/api/v1/nodes/n1"] = READY
        answers[LOCKS] = LOCKED

    def restart() -> Outcome:
        world.clock.agenda.append((world.clock.now() + 10, back))
        return answered()

    answers["systemctl restart k3s.service"] = restart
    facts: dict[str, object] = {"inhibitor-kubelet": True, "kubelet-unit": "k3s.service"}
    facts["configz"] = {"shutdownGracePeriod": "30s"}
    world.intend("cancel-shutdown", undo_of("cancel-shutdown", facts))
    assert world.roll_back() == [True]
    assert world.session.sent.count("systemctl restart k3s.service") == 1


def test_the_shutdown_of_a_node_that_still_shuts_down_is_cancelled(tmp_path: Path) -> None:
    answers: dict[str, Outcome | Callable[[], Outcome]] = {LOCKS: LOCKED}
    world = World(tmp_path, FakeSession(answers), None, NOT_READY)

    def cancel() -> Outcome:
        world.kube.answers["/api/v1/nodes/n1"] = READY
        return answered()

    answers[EMIT] = cancel
    facts = {"inhibitor-kubelet": True, "kubelet-unit": "kubelet.service"}
    world.intend("prepare-for-shutdown", undo_of("prepare-for-shutdown", facts, active=True))
    assert world.roll_back() == [True]
    assert world.session.sent.count(EMIT) == 1


def test_last_in_first_out_and_on_after_a_failure(tmp_path: Path) -> None:
    world = World(tmp_path, FakeSession(dict(UP)), FakePower("off"))
    world.intend("poweroff", undo_of("poweroff"))
    world.intend("poweroff", undo_of("poweroff"), node="n2")  # the API server does not know n2
    results = roll_back(world.journal, world.hosts, world.clock, world.progress)
    assert [(r.node, r.proven) for r in results] == [("n2", False), ("n1", True)]
    assert [o.node for o in world.journal.pending()] == ["n2"]


def test_no_proof_counts_right_after_the_operation(tmp_path: Path) -> None:
    """A kubelet that has just learned of a shutdown is Ready for a moment more."""
    session = FakeSession({LOCKS: LOCKED, EMIT: answered()})
    world = World(tmp_path, session, None, READY)

    def announced() -> None:
        world.kube.answers["/api/v1/nodes/n1"] = NOT_READY
        session.answers[EMIT] = cancelled

    def cancelled() -> Outcome:
        world.kube.answers["/api/v1/nodes/n1"] = READY
        return answered()

    world.clock.agenda.append((1001.0, announced))
    facts: dict[str, object] = {"inhibitor-kubelet": True, "configz": {"shutdownGracePeriod": "30s"}}
    world.intend("prepare-for-shutdown", undo_of("prepare-for-shutdown", facts, active=True))
    assert world.roll_back() == [True]
    assert EMIT in session.sent


def test_an_operation_of_the_future_does_not_delay_its_undo(tmp_path: Path) -> None:
    """The clock of the machine was set back since, or somebody else wrote the entry."""
    world = World(tmp_path, FakeSession(dict(UP)), FakePower("on"))
    world.journal.record_intent("step", "poweroff", "n1", undo_of("poweroff"), world.clock.now() + 1e9)
    assert world.roll_back() == [True]
    assert world.clock.slept < PROOF_SECONDS


def test_a_late_signal_does_not_stop_the_undo(tmp_path: Path) -> None:
    """A clock that was woken does not sleep until it is resumed, so time would stand still."""

    class Woken(FakeClock):
        woken = True

        def sleep(self, seconds: float) -> bool:
            return False if self.woken else super().sleep(seconds)

        def resume(self) -> None:
            self.woken = False

    world = World(tmp_path, FakeSession(dict(UP)), FakePower("on"))
    world.clock = Woken()
    world.intend("poweroff", undo_of("poweroff"))
    assert world.roll_back() == [True]


def test_undo_continues_after_any_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(FakePower):
        def state(self) -> PowerState:
            raise ZeroDivisionError("planted")

    world = World(tmp_path, FakeSession(dict(UP)), Broken())
    world.intend("cancel-shutdown", Undo())
    world.intend("poweroff", undo_of("poweroff"))
    assert world.roll_back() == [False, True]
    assert any("internal error: ZeroDivisionError: planted" in line for line in world.progress.reports)
    assert "Traceback" in caplog.text
    assert [entry.action for entry in read_pending(tmp_path)] == ["poweroff"]


def test_every_host_command_is_logged_with_its_outcome(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "chaos.machines")
    world = World(tmp_path, FakeSession({"true": answered(exit_code=3)}), None)
    world.hosts.send("n1", HostCommand(("true",)))
    with pytest.raises(Refused):
        world.hosts.send("n1", PowerCommand(PowerVerb.ON))
    sent, refused = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r"n1: true: answered, exit 3 in \d\.\d+ s ", sent)
    assert refused == "n1: power on: not sent: n1 has no power control"


def state(value: str) -> Outcome:
    return answered(f"ActiveState={value}\n")


SHOW_KUBELET = "systemctl show --property=ActiveState kubelet.service"
UNITS = str(FACTS["kubelet-unit"].command)
UNIT = answered("Id=kubelet.service\nLoadState=loaded\nActiveState=inactive\n")


class Stopped(World):
    """A node whose kubelet was stopped, among other things done to it."""

    def __init__(self, directory: Path, power: FakePower | None = None) -> None:
        self.active = False
        answers: dict[str, Outcome | Callable[[], Outcome]] = {
            UNITS: UNIT,
            SHOW_KUBELET: lambda: state("active" if self.active else "inactive"),
            "systemctl start kubelet.service": self.start,
            "systemctl stop nodefall-.timer": answered(exit_code=5),
            "systemctl show --property=NextElapseUSecMonotonic nodefall-.timer": answered("NextElapseUSecMonotonic=\n"),
        }
        super().__init__(directory, FakeSession(answers), power, NOT_READY)

    def start(self) -> Outcome:
        self.active = True
        self.changed()
        return answered()

    def changed(self) -> None:
        """Other conditions of the node's Ready."""


def test_an_earlier_operation_that_keeps_the_node_not_ready_is_undone_with_the_later_one(tmp_path: Path) -> None:
    """Neither the runtime nor the kubelet alone makes the node Ready again."""
    world = Stopped(tmp_path)
    runtime = False

    def start_runtime() -> Outcome:
        nonlocal runtime
        runtime = True
        ready()
        return answered()

    def ready() -> None:
        if runtime and world.active:
            world.kube.answers["/api/v1/nodes/n1"] = READY

    world.changed = ready  # type: ignore[method-assign]
    world.session.answers |= {
        str(FACTS["runtime-unit"].command): answered("Id=containerd.service\nLoadState=loaded\nActiveState=inactive\n"),
        "systemctl show --property=ActiveState containerd.service": lambda: state("active" if runtime else "inactive"),
        "systemctl start containerd.service": start_runtime,
    }
    world.intend("kubelet-stop", undo_of("kubelet-stop", {"kubelet-unit": "kubelet.service"}))
    world.intend("runtime-stop", undo_of("runtime-stop", {"runtime-unit": "containerd.service"}))
    assert world.roll_back() == [True, True]
    assert world.clock.slept < 60


def test_an_operation_on_a_machine_that_another_one_powered_off_is_undone_once_it_is_on(tmp_path: Path) -> None:
    """A boot takes longer than three sends: what was never sent may always be sent again."""
    power = FakePower("off")
    world = Stopped(tmp_path, power)
    world.changed = lambda: world.kube.answers.update({"/api/v1/nodes/n1": READY})  # type: ignore[method-assign]
    answers, dead = dict(world.session.answers), Outcome(Delivery.NOT_SENT, error="no route to host")
    world.session.answers = dict.fromkeys(answers, dead)
    world.clock.agenda.append((1150.0, lambda: world.session.answers.update(answers | UP)))
    world.intend("poweroff", undo_of("poweroff"))
    world.intend("kubelet-restart", undo_of("kubelet-restart", {"kubelet-unit": "kubelet.service"}))
    assert world.roll_back() == [True, True]
    assert power.value == "on"
    assert world.clock.slept < PROOF_SECONDS


def test_ready_from_before_a_reboot_proves_nothing(tmp_path: Path) -> None:
    """The API says Ready until the kubelet has been missed for long; a new boot is posted by a new kubelet only."""

    def node(boot: str) -> Response:
        ready = '"conditions":[{"type":"Ready","status":"True"}]'
        return Response(200, f'{{"status":{{"nodeInfo":{{"bootID":"{boot}"}},{ready}}}}}'.encode(), {})

    old, new = "0" * 8 + "-0000-0000-0000-" + "0" * 12, "1" * 8 + "-0000-0000-0000-" + "0" * 12
    kubelet_state = "systemctl show --property=ActiveState kubelet.service"
    answers = UP | {
        str(FACTS["boot-id"].command): answered(f"{new}\n"),
        str(FACTS["kubelet-unit"].command): answered("Id=kubelet.service\nLoadState=loaded\nActiveState=active\n"),
        kubelet_state: state("inactive"),
    }
    world = World(tmp_path, FakeSession(answers), FakePower(), node(old))
    world.clock.agenda += [
        (1020.0, lambda: world.session.answers.update({kubelet_state: state("active")})),
        (1040.0, lambda: world.kube.answers.update({"/api/v1/nodes/n1": node(new)})),
    ]
    world.intend("reboot", undo_of("reboot", {"shared-kernel": False, "kubelet-state": "active", "boot-posted": True}))
    assert world.roll_back() == [True]
    assert 1040 <= world.clock.t < 1045


def test_a_node_is_out_of_service_until_it_is_back(tmp_path: Path) -> None:
    key = "node.kubernetes.io/out-of-service"
    path = "/api/v1/nodes/n1"

    def node(ready: str) -> Response:
        taint = f'{{"key":"{key}","value":"nodeshutdown","effect":"NoExecute"}}'
        spec = f'"metadata":{{"name":"n1","resourceVersion":"1"}},"spec":{{"taints":[{taint}]}}'
        status = f'"status":{{"conditions":[{{"type":"Ready","status":"{ready}"}}]}}'
        return Response(200, f"{{{spec},{status}}}".encode(), {})

    power = FakePower("off")
    world = World(tmp_path, FakeSession(UP), power, node("False"))
    patched: list[float] = []
    answer = world.kube.request

    def request(method: str, path: str, *rest: Any, **more: Any) -> Response:
        if method == "PATCH":
            patched.append(world.clock.t)
            world.kube.answers[path] = READY
        return answer(method, path, *rest, **more)

    world.kube.request = request  # type: ignore[method-assign]
    world.clock.agenda += [(1030.0, power.on), (1060.0, lambda: world.kube.answers.update({path: node("True")}))]
    action = ACTIONS["out-of-service"]
    target = Target("n1", power="redfish", objects={path: {"metadata": {"name": "n1"}, "spec": {}}})
    world.intend("out-of-service", action.program(action.prepare(target, action.params.model_validate({}))).undo)
    assert world.roll_back() == [True]
    assert len(patched) == 1
    assert 1060 <= patched[0] < 1065


def test_what_another_process_may_have_undone_is_only_checked(tmp_path: Path) -> None:
    """A step without a condition is sent otherwise."""
    undo = Undo((UndoStep(HostCommand(("restore", "it"))),), proof=(FactCheck("node-ready", True),))
    world = World(tmp_path, FakeSession({"restore it": answered()}), None)
    world.intend("kubelet-stop", undo)
    rules = UndoRules(may_be_undone=lambda _: True)
    (result,) = roll_back(world.journal, world.hosts, world.clock, world.progress, rules)
    assert result.proven
    assert "restore it" not in world.session.sent
    world.intend("kubelet-stop", undo)
    assert world.roll_back() == [True]
    assert "restore it" in world.session.sent


def test_what_no_process_has_undone_is_undone(tmp_path: Path) -> None:
    power = FakePower("off")
    world = World(tmp_path, FakeSession(dict(UP)), power)
    world.intend("poweroff", undo_of("poweroff"))
    rules = UndoRules(may_be_undone=lambda _: True)
    (result,) = roll_back(world.journal, world.hosts, world.clock, world.progress, rules)
    assert (result.proven, power.value) == (True, "on")


def test_nothing_is_sent_once_the_lock_is_lost(tmp_path: Path) -> None:
    power = FakePower("off")
    world = World(tmp_path, FakeSession(dict(UP)), power)
    world.intend("poweroff", undo_of("poweroff"))
    rules = UndoRules(blocked=lambda: "the cluster's lock was taken by eve")
    (result,) = roll_back(world.journal, world.hosts, world.clock, world.progress, rules)
    assert (result.proven, result.because, power.value) == (False, "the cluster's lock was taken by eve", "off")
    assert [entry.step for entry in read_pending(tmp_path)] == ["step"]
