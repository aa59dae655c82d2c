"""The failsafe timers: systemd-run on Linux, a scheduled task on Windows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from chaos.core.action import FailsafeTimer
from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.encoded_script import decode_script
from chaos.core.errors import Aborted
from chaos.core.windows import powershell, system_program
from chaos.engine.failsafe import arm, arm_task, disarm, disarm_task, failsafe_command, task_argv
from chaos.engine.registry import load_windows_facts
from chaos.machines.pool import Hosts
from chaos.machines.windows_command_line import quote_argument
from tests.kit.fakes import FakeClock, FakeKube, FakePower, FakeSession
from tests.kit.win_host import WindowsHost

HEAL = FailsafeTimer("nodefall-run-cut", 100.0, ("nft", "delete", "table", "inet", "nodefall"))
SHOW = "systemctl show --property=NextElapseUSecMonotonic nodefall-run-cut.timer"
STOP = "systemctl stop nodefall-run-cut.timer"
Answer = Outcome | Callable[[], Outcome]


def said(text: str = "", code: int = 0) -> Outcome:
    return Outcome(Delivery.ANSWERED, code, text)


def elapses(text: str) -> Outcome:
    return said(f"NextElapseUSecMonotonic={text}\n")


def hosts(answers: dict[str, Answer], seconds: float = 100.0) -> tuple[Hosts, FakeSession]:
    session = FakeSession(
        {"cat /proc/uptime": said("50.00 90.00\n"), str(failsafe_command(HEAL, seconds)): said(), **answers}
    )
    return Hosts(lambda _: session, lambda _: FakePower(), FakeKube({}), {}, FakeClock()), session


def test_it_is_armed_and_read_back() -> None:
    there, session = hosts({SHOW: elapses("2min 30.05s")})
    assert arm(there, "n1", HEAL, 800.0) == 100.0
    assert session.sent[1] == (
        "systemd-run --on-active=100.000s --timer-property=AccuracySec=100ms --collect --unit=nodefall-run-cut -- "
        "nft delete table inet nodefall"
    )


@pytest.mark.parametrize(("elapse", "fine"), [("2min 30.1s", True), ("2min 36.9s", True), ("2min 39s", False)])
def test_a_slow_host_is_no_late_timer(elapse: str, fine: bool) -> None:
    """Seven seconds pass on the host from the first command to the one after the timer's."""
    uptimes = iter(["50.00", "57.00"])
    there, _ = hosts({SHOW: elapses(elapse), "cat /proc/uptime": lambda: said(f"{next(uptimes)} 9.0\n")})
    if fine:
        assert arm(there, "n1", HEAL, 800.0) == 100.0
        return
    with pytest.raises(Aborted, match=r"elapses in 102\.0 s, not in 100\.0 s"):
        arm(there, "n1", HEAL, 800.0)


def test_it_never_outlives_max_duration() -> None:
    there, _ = hosts({SHOW: elapses("1min 10s")}, 20.0)
    assert arm(there, "n1", HEAL, 20.0) == 20.0
    with pytest.raises(Aborted, match="maxDuration leaves no time for it"):
        arm(there, "n1", HEAL, 0.0)


BAD: list[tuple[dict[str, Answer], str]] = [
    ({str(failsafe_command(HEAL, 100.0)): Outcome(Delivery.ANSWERED, 1, stderr="no such bus")}, "no such bus"),
    ({SHOW: elapses("3min 7.2s")}, r"elapses in 137.2 s, not in 100.0 s"),
    ({SHOW: elapses("infinity")}, "does not report when"),
    ({SHOW: said("", 1)}, "exit code 1"),
    ({}, "connection lost"),
    ({SHOW: elapses("2min 30s"), "cat /proc/uptime": said("?")}, "uptime cannot be read"),
]


@pytest.mark.parametrize(("answers", "why"), BAD)
def test_no_fault_without_a_verified_timer(answers: dict[str, Answer], why: str) -> None:
    with pytest.raises(Aborted, match=why):
        arm(hosts(answers)[0], "n1", HEAL, 800.0)


@pytest.mark.parametrize("stopped", [said(), said("", 5)])
def test_it_is_disarmed_when_it_is_gone(stopped: Outcome) -> None:
    assert disarm(hosts({STOP: stopped, SHOW: elapses("infinity")})[0], "n1", HEAL.unit) == ""
    assert disarm(hosts({STOP: stopped, SHOW: said()})[0], "n1", HEAL.unit) == ""


def test_a_timer_that_stays_is_an_error() -> None:
    assert "is still there" in disarm(hosts({STOP: said(), SHOW: elapses("2min")})[0], "n1", HEAL.unit)
    assert "was not stopped: exit code 1" in disarm(hosts({STOP: said("", 1)})[0], "n1", HEAL.unit)
    with pytest.raises(Aborted):
        disarm(hosts({STOP: said()})[0], "n1", HEAL.unit)


START = FailsafeTimer("nodefall-run-stop", 60.0, (system_program("sc"), "start", "w32time"))
FAILING = FailsafeTimer("nodefall-run-stop", 60.0, (system_program("sc"), "start", "no such service"))
RESTORE = FailsafeTimer("nodefall-run-skew", 60.0, powershell("start-service", service="w32time"), by_uptime=True)


class LabHosts:
    """Sends commands to a machine of the lab as the transports do. ``answers`` replace those of programs."""

    def __init__(self, host: WindowsHost, **answers: Outcome) -> None:
        self.host, self.answers = host, answers
        self.facts = load_windows_facts()

    def send(self, node: str, command: HostCommand) -> Outcome:
        for word, outcome in self.answers.items():
            if f"/{word}" in command.argv:
                return outcome
        line = " ".join(map(quote_argument, command.argv))
        code, stdout, stderr = self.host.run(line, command.stdin, cmd=False)
        return Outcome(Delivery.ANSWERED, code, stdout, stderr)

    def read(self, node: str, fact: str) -> Any:
        outcome = self.send(node, self.facts[fact].command)
        return self.facts[fact].parse(outcome.stdout, outcome.exit or 0)


def stopped(**answers: Outcome) -> tuple[WindowsHost, Hosts]:
    """A machine whose w32time is stopped, which is what the tasks here undo."""
    host = WindowsHost()
    host.run("sc.exe stop w32time")
    host.run("sc.exe stop vmictimesync")
    host.wait(5.0)
    return host, cast("Hosts", LabHosts(host, **answers))


def is_restored(host: WindowsHost) -> bool:
    return host.machine.services.get("w32time").is_running


@pytest.mark.parametrize("timer", [START, RESTORE], ids=["clock", "uptime"])
def test_a_task_acts_after_its_seconds(timer: FailsafeTimer) -> None:
    host, hosts = stopped()
    assert 60.0 <= arm_task(hosts, "win1", timer, 60.0) <= 62.0
    host.wait(50.0)
    assert not is_restored(host)
    host.wait(20.0)
    assert is_restored(host)


@pytest.mark.parametrize("timer", [START, RESTORE], ids=["clock", "uptime"])
def test_a_task_that_was_removed_never_acts(timer: FailsafeTimer) -> None:
    host, hosts = stopped()
    arm_task(hosts, "win1", timer, 60.0)
    host.wait(10.0)
    assert hosts.read("win1", "failsafe-timers") == [timer.unit]
    assert disarm_task(hosts, "win1", timer.unit) == ""
    assert hosts.read("win1", "failsafe-timers") == []
    host.wait(200.0)
    assert not is_restored(host)


@pytest.mark.parametrize("timer", [START, RESTORE], ids=["clock", "uptime"])
def test_a_task_that_has_acted_is_gone(timer: FailsafeTimer) -> None:
    host, hosts = stopped()
    arm_task(hosts, "win1", timer, 60.0)
    host.wait(70.0)
    assert is_restored(host)
    assert hosts.read("win1", "failsafe-timers") == []
    assert disarm_task(hosts, "win1", timer.unit) == ""


def test_a_task_that_failed_acts_again_at_the_next_boot() -> None:
    host, hosts = stopped()
    arm_task(hosts, "win1", FAILING, 60.0)
    host.wait(70.0)
    task = host.machine.tasks.get(FAILING.unit)
    assert task is not None
    assert task.last_result == 1060
    first = task.last_run
    host.machine.request_shutdown("reboot")
    host.wait(120.0)
    assert hosts.read("win1", "failsafe-timers") == [FAILING.unit]
    assert task.last_run != first


@pytest.mark.parametrize("words", [("a b",), ('"',), ("a 'b'", ""), ("C:\\a b\\",), ("$env:x;calc",)])
def test_a_program_of_a_task_gets_its_words_as_given(words: tuple[str, ...]) -> None:
    """Through Windows PowerShell 5.1, which quotes what has blanks and is not quoted."""
    timer = FailsafeTimer("nodefall-x", 5.0, (r"C:\a b\x.exe", *words))
    name, _, parameters = decode_script(task_argv(timer)).partition(" ")
    expected = {"program": r"C:\a b\x.exe", "arguments": [quote_argument(word) for word in words]}
    assert (name, json.loads(parameters)) == ("failsafe-run", {"wait": 0, "task": "nodefall-x", **expected})


def test_a_clock_that_is_set_moves_only_the_task_that_follows_it() -> None:
    """The reason for a task that waits by itself."""
    for timer, is_early in ((START, True), (RESTORE, False)):
        host, hosts = stopped()
        arm_task(hosts, "win1", timer, 60.0)
        host.script("set-clock", seconds=600)
        host.wait(5.0)
        assert is_restored(host) is is_early
        host.wait(70.0)
        assert is_restored(host)


def test_no_task_is_left_after_one_that_never_was() -> None:
    _, hosts = stopped()
    assert disarm_task(hosts, "win1", "nodefall-none") == ""


def test_a_task_that_does_not_run_is_no_failsafe() -> None:
    host, hosts = stopped(run=Outcome(Delivery.ANSWERED, 0, "SUCCESS: Attempted to run the scheduled task\r\n"))
    with pytest.raises(Aborted, match="was started and does not run"):
        arm_task(hosts, "win1", RESTORE, 60.0)
    host.wait(100.0)
    assert not is_restored(host)


def test_a_task_that_is_not_deleted_is_reported() -> None:
    _, hosts = stopped(delete=Outcome(Delivery.ANSWERED, 1, "", "ERROR: Access is denied."))
    arm_task(hosts, "win1", START, 60.0)
    assert disarm_task(hosts, "win1", START.unit) == f"the task {START.unit} is still there: ERROR: Access is denied."
    _, lost = stopped(delete=Outcome(Delivery.LOST, error="connection lost"))
    assert "was not deleted: connection lost" in disarm_task(lost, "win1", START.unit)


def test_a_task_that_may_still_wait_is_not_deleted() -> None:
    """Windows does not end a task that is deleted: it would go on without a name, and undo the fault of a later run."""
    host, hosts = stopped(end=Outcome(Delivery.LOST, error="connection lost"))
    arm_task(hosts, "win1", RESTORE, 60.0)
    host.wait(10.0)
    assert disarm_task(hosts, "win1", RESTORE.unit) == f"the task {RESTORE.unit} was not ended: connection lost"
    assert hosts.read("win1", "failsafe-timers") == [RESTORE.unit]
