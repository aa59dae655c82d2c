"""The clock of a Windows machine, and what sets it back."""

from __future__ import annotations

import pytest

from tests.kit.win_host import WindowsHost

ADJUST = "Set-Date -Adjust ([TimeSpan]::FromSeconds({})) | Out-Null"


def _skew(host: WindowsHost) -> float:
    milliseconds = host.powershell("[DateTimeOffset]::UtcNow.ToUnixTimeMilliseconds()")[1]
    return round(int(milliseconds) / 1000 - host.sim.now, 2)


@pytest.mark.parametrize("seconds", [120, -45, 0.25])
def test_the_clock_is_set(seconds: float) -> None:
    host = WindowsHost()
    uptime = host.powershell("[Diagnostics.Stopwatch]::GetTimestamp()")[1]
    assert host.powershell(ADJUST.format(seconds)) == (0, "", "")
    assert _skew(host) == seconds
    assert host.powershell("[Diagnostics.Stopwatch]::GetTimestamp()")[1] == uptime
    out = host.run('wevtutil qe System "/q:*[System[(EventID=1)]]" /f:xml')[1]
    assert "Name='NewTime'" in out.replace('"', "'")


@pytest.mark.parametrize(
    ("stopped", "seconds"),
    [((), 5.0), (("vmictimesync",), 30.0), (("w32time",), 5.0), (("w32time", "vmictimesync"), None)],
)
def test_services_set_the_clock_right(stopped: tuple[str, ...], seconds: float | None) -> None:
    host = WindowsHost()
    for name in stopped:
        assert host.run(f"sc.exe stop {name}")[0] == 0
    host.wait(2.0)
    host.powershell(ADJUST.format(90))
    host.wait((seconds or 600.0) - 1.0)
    assert _skew(host) == 90
    host.wait(2.0)
    assert _skew(host) == (90 if seconds is None else 0)


def test_a_service_that_starts_sets_the_clock_right() -> None:
    host = WindowsHost()
    for name in ("w32time", "vmictimesync"):
        host.run(f"sc.exe stop {name}")
    host.wait(2.0)
    host.powershell(ADJUST.format(90))
    host.run("sc.exe start vmictimesync")
    host.wait(10.0)
    assert _skew(host) == 0


def test_resync_sets_the_clock_right_at_once_where_the_service_runs() -> None:
    host = WindowsHost()
    host.run("sc.exe stop vmictimesync")
    host.wait(2.0)
    host.powershell(ADJUST.format(90))
    code, out, _ = host.run("w32tm.exe /resync /force")
    assert (code, "The command completed successfully." in out, _skew(host)) == (0, True, 0)
    host.run("sc.exe stop w32time")
    host.wait(2.0)
    host.powershell(ADJUST.format(90))
    code, out, _ = host.run("w32tm.exe /resync /force")
    assert (code & 0xFFFFFFFF, "0x80070426" in out, _skew(host)) == (0x80070426, True, 90)
    assert host.run("w32tm.exe /nope")[0] != 0


def test_a_skewed_clock_outlives_a_boot_without_the_services() -> None:
    host = WindowsHost()
    for name in ("w32time", "vmictimesync"):
        host.run(f"sc.exe stop {name}")
        host.run(f"sc.exe config {name} start= disabled")
    host.wait(2.0)
    host.powershell(ADJUST.format(90))
    host.machine.reset()
    host.wait(60.0)
    assert _skew(host) == 90


def test_the_boot_time_of_wmi_moves_with_the_clock_and_the_boot_id_does_not() -> None:
    host = WindowsHost()
    script = "((Get-CimInstance Win32_OperatingSystem).LastBootUpTime).ToString('o')"
    before, boot_id = host.powershell(script)[1], host.machine.boot_id
    host.powershell(ADJUST.format(90))
    assert host.powershell(script)[1] != before
    assert host.machine.boot_id == boot_id


def test_set_date_prints_the_new_time() -> None:
    out = WindowsHost().powershell("Set-Date -Date '2026-11-22T01:02:03Z'")[1]
    assert out == "\r\nSunday, November 22, 2026 1:02:03 AM\r\n\r\n\r\n"
