"""Failsafe timer on the host: armed as requested or not at all, and stopped only when no longer needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.core.action import FailsafeTimer
from chaos.core.command import Delivery, Outcome
from chaos.core.errors import Aborted
from chaos.engine.failsafe import arm, disarm, failsafe_command
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube, FakePower, FakeSession

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
    with pytest.raises(Aborted, match="no time is left of maxDuration"):
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
