"""The clock of a Windows machine, and what sets it back."""

from __future__ import annotations

import pytest

from tests.kit.win_host import WindowsHost


def _skew(host: WindowsHost) -> float:
    milliseconds = host.script("read-time")[1]
    return round(int(milliseconds) / 1000 - host.sim.now, 2)


@pytest.mark.parametrize("seconds", [120, -45, 0.25])
def test_the_clock_is_set(seconds: float) -> None:
    host = WindowsHost()
    uptime = host.machine.uptime
    assert host.script("set-clock", seconds=seconds) == (0, "", "")
    assert _skew(host) == seconds
    assert host.machine.uptime == uptime


@pytest.mark.parametrize(
    ("stopped", "seconds"),
    [((), 5.0), (("vmictimesync",), 30.0), (("w32time",), 5.0), (("w32time", "vmictimesync"), None)],
)
def test_services_set_the_clock_right(stopped: tuple[str, ...], seconds: float | None) -> None:
    host = WindowsHost()
    for name in stopped:
        assert host.run(f"sc.exe stop {name}")[0] == 0
    host.wait(2.0)
    host.script("set-clock", seconds=90)
    host.wait((seconds or 600.0) - 1.0)
    assert _skew(host) == 90
    host.wait(2.0)
    assert _skew(host) == (90 if seconds is None else 0)


def test_a_service_that_starts_sets_the_clock_right() -> None:
    host = WindowsHost()
    for name in ("w32time", "vmictimesync"):
        host.run(f"sc.exe stop {name}")
    host.wait(2.0)
    host.script("set-clock", seconds=90)
    host.run("sc.exe start vmictimesync")
    host.wait(10.0)
    assert _skew(host) == 0


def test_the_start_of_the_time_service_sets_the_clock_right_at_once() -> None:
    host = WindowsHost()
    for name in ("w32time", "vmictimesync"):
        host.stop(name)
    host.script("set-clock", seconds=90)
    assert host.script("start-service", service="w32time") == (0, "", "")
    assert _skew(host) == 0


def test_a_skewed_clock_outlives_a_boot_without_the_services() -> None:
    host = WindowsHost()
    for name in ("w32time", "vmictimesync"):
        host.run(f"sc.exe stop {name}")
        host.configure(name, "disabled")
    host.wait(2.0)
    host.script("set-clock", seconds=90)
    host.machine.reset()
    host.wait(60.0)
    assert _skew(host) == 90


def test_the_number_of_the_boot_does_not_move_with_the_clock_and_its_time_does() -> None:
    host = WindowsHost()
    before = [int(word) for word in host.script("read-clock")[1].split()]
    host.script("set-clock", seconds=90)
    after = [int(word) for word in host.script("read-clock")[1].split()]
    assert after == [before[0], pytest.approx(before[1] + 90_000, abs=2), *before, 90]
