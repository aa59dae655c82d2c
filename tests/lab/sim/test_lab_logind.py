"""logind: locks, the two steps of a shutdown, the schedule."""

from __future__ import annotations

import pytest

from chaos.lab.node.logind import Inhibitor, Kind, Logind, LogindError
from chaos.lab.rules import LogindRules
from chaos.lab.sim import SimClock

_LOCK = Inhibitor("shutdown", "kubelet", "why", "delay", 0, 700)


class Bench:
    """A logind whose signals and shutdowns are recorded."""

    def __init__(self, files: dict[str, str] | None = None, version: int = 252) -> None:
        self.sim = SimClock(1000.0, 1)
        self.done: list[tuple[float, Kind]] = []
        self.signals: list[bool] = []
        self.logind = Logind(self.sim, version, self._execute, LogindRules(), files)
        self.logind.start()
        self.logind.listen(self.signals.append)

    def _execute(self, kind: Kind) -> None:
        self.done.append((self.sim.now, kind))

    def run(self, seconds: float) -> None:
        self.sim.run_until(self.sim.now + seconds)


def test_without_a_lock_the_shutdown_is_not_delayed() -> None:
    bench = Bench()
    bench.logind.power_off()
    bench.run(0.1)
    assert (bench.done, bench.signals) == ([(1000.0, "poweroff")], [True])


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("", ["poweroff"]), ("HandlePowerKey=reboot", ["reboot"]), ("HandlePowerKey=ignore", [])],
)
def test_the_power_key_does_what_is_configured(setting: str, expected: list[Kind]) -> None:
    bench = Bench({"/etc/systemd/logind.conf.d/key.conf": f"[Login]\n{setting}\n"})
    bench.logind.inhibit(_LOCK)
    bench.logind.press_power_key()
    bench.logind.press_power_key()  # again: a shutdown is in progress
    bench.run(3.0)
    assert (bench.done, bench.signals) == ([], [True] if expected else [])
    bench.logind.release(_LOCK)
    assert [kind for _, kind in bench.done] == expected


def test_a_delay_lock_holds_until_it_is_released() -> None:
    bench = Bench()
    bench.logind.inhibit(_LOCK)
    bench.logind.reboot()
    bench.run(3.0)
    assert (bench.done, bench.signals) == ([], [True])
    bench.logind.release(_LOCK)
    assert bench.done == [(1003.0, "reboot")]
    bench.run(100.0)
    assert len(bench.done) == 1


def test_two_locks_must_both_be_released() -> None:
    bench = Bench()
    other = Inhibitor("shutdown", "unattended-upgrades", "why", "delay", 0, 800)
    bench.logind.inhibit(_LOCK)
    bench.logind.inhibit(other)
    bench.logind.power_off()
    bench.logind.release(other)
    assert not bench.done
    bench.logind.release(_LOCK)
    assert bench.done


def test_the_lock_expires_after_the_maximum_delay() -> None:
    bench = Bench()
    bench.logind.inhibit(_LOCK)
    bench.logind.power_off()
    bench.run(4.9)
    assert not bench.done
    bench.run(0.2)
    assert bench.done == [(1005.0, "poweroff")]


def test_one_shutdown_at_a_time() -> None:
    bench = Bench()
    bench.logind.inhibit(_LOCK)
    bench.logind.power_off()
    for again in (bench.logind.power_off, bench.logind.reboot, lambda: bench.logind.schedule("poweroff", 2000.0)):
        with pytest.raises(LogindError, match="already a shutdown"):
            again()
    with pytest.raises(LogindError, match="already running"):
        bench.logind.inhibit(_LOCK)


def test_schedule_fires_with_its_kind_at_its_time() -> None:
    bench = Bench()
    bench.logind.schedule("poweroff", 1030.0)
    bench.logind.schedule("reboot", 1060.0)
    assert bench.logind.scheduled_shutdown() == ("reboot", 1060.0)
    bench.run(100.0)
    assert bench.done == [(1060.0, "reboot")]
    assert bench.logind.scheduled_shutdown() is None


def test_schedule_of_another_kind_is_refused() -> None:
    with pytest.raises(LogindError, match="kexec"):
        Bench().logind.schedule("kexec", 1030.0)


def test_cancel_before_the_time_emits_no_signal() -> None:
    bench = Bench()
    bench.logind.schedule("poweroff", 1030.0)
    assert bench.logind.cancel_scheduled()
    bench.run(100.0)
    assert (bench.done, bench.signals, bench.logind.cancel_scheduled()) == ([], [], False)


@pytest.mark.parametrize(("version", "done"), [(252, 1), (256, 1), (257, 0)])
def test_cancel_in_flight(version: int, done: int) -> None:
    bench = Bench(version=version)
    bench.logind.inhibit(_LOCK)
    bench.logind.power_off()
    bench.run(1.0)
    bench.logind.cancel_scheduled()
    bench.run(30.0)
    assert len(bench.done) == done
    assert bench.signals == [True]  # no signal announces the cancellation


def test_a_foreign_signal_does_not_change_logind() -> None:
    bench = Bench()
    bench.logind.emit_prepare_for_shutdown(True)
    bench.run(1.0)
    bench.logind.emit_prepare_for_shutdown(False)
    bench.run(1.0)
    assert (bench.signals, bench.done, bench.logind.preparing_for_shutdown) == ([True, False], [], False)


def test_signals_of_one_instant_keep_their_order() -> None:
    bench = Bench()
    sent = [True, False, False, True] * 10
    for active in sent:
        bench.logind.emit_prepare_for_shutdown(active)
    bench.run(1.0)
    assert bench.signals == sent


def test_restart_drops_the_delayed_shutdown_and_saves_locks_and_schedule() -> None:
    bench = Bench()
    bench.logind.inhibit(_LOCK)
    bench.logind.schedule("reboot", 1100.0)
    bench.logind.power_off()
    bench.logind.restart()
    bench.run(50.0)
    assert not bench.done
    assert (len(bench.logind.inhibitors()), bench.logind.scheduled_shutdown()) == (1, ("reboot", 1100.0))


def test_no_signal_is_delivered_after_the_machine_is_off() -> None:
    bench = Bench()
    bench.logind.schedule("poweroff", 1001.0)
    bench.logind.emit_prepare_for_shutdown(True)
    bench.logind.stop()
    bench.run(30.0)
    assert (bench.signals, bench.done, bench.logind.inhibitors()) == ([], [], [])


def test_calls_on_a_machine_that_is_off_fail() -> None:
    bench = Bench()
    bench.logind.stop()
    for ask in (bench.logind.power_off, bench.logind.reboot, lambda: bench.logind.schedule("poweroff", 2000.0)):
        with pytest.raises(LogindError, match="logind does not run"):
            ask()


@pytest.mark.parametrize(
    ("restarts", "expected"), [(False, [False, True, False]), (True, [False, True, True])], ids=["usual", "restarted"]
)
def test_logins_are_refused_before_a_scheduled_shutdown(restarts: bool, expected: list[bool]) -> None:
    """Five minutes before it; a logind that was restarted meanwhile leaves the file behind (systemd issue 20129)."""
    bench, seen = Bench(), []
    bench.logind.schedule("poweroff", bench.sim.now + 310.0)
    bench.run(9.0)
    seen.append(bench.logind.refuses_logins)
    bench.run(2.0)
    seen.append(bench.logind.refuses_logins)
    if restarts:
        bench.logind.restart()
    bench.logind.cancel_scheduled()
    seen.append(bench.logind.refuses_logins)
    bench.run(400.0)
    assert seen == expected
    assert bench.logind.refuses_logins is expected[-1]
    bench.logind.stop()
    assert not bench.logind.refuses_logins
