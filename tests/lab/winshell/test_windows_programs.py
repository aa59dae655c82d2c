"""Programs of Windows nodes: output, exit codes and effects, as recorded in tests/recordings/winrm/commands."""

from __future__ import annotations

import csv
import io
import re
from xml.etree import ElementTree

import pytest

from chaos.lab.windows.disk import PREFETCH
from tests.kit.win_host import WindowsHost
from tests.kit.winrm_exchanges import read

BOOT_ID = f"\r\n{PREFETCH.replace('HKLM', 'HKEY_LOCAL_MACHINE')}\r\n    BootId    REG_DWORD    0x20\r\n\r\n"
NO_KEY = "ERROR: The system was unable to find the specified registry key or value.\r\n"
NO_TASK = 'ERROR: The specified task name "\\a\\b" does not exist in the system.\r\n'
NO_RULE = "No rules match the specified criteria."
EVENTS = "{http://schemas.microsoft.com/win/2004/08/events/event}"
ADD = "netsh advfirewall firewall add rule name=t profile=any protocol=any enable=yes"
QUERY = "/q:*[System[(Provider[@Name='User32']) and (EventID={})]]"


@pytest.fixture(scope="module")
def host() -> WindowsHost:
    """For commands that change nothing."""
    return WindowsHost()


def _recorded(name: str, number: int) -> str:
    """One numbered block of a recording, without its heading."""
    blocks = re.split(r"(?m)^\[(\d+)\] ", read(f"commands/{name}.txt"))
    return blocks[blocks.index(str(number)) + 1].split("\n", 1)[1]


@pytest.mark.parametrize(
    ("line", "code", "stdout", "stderr"),
    [
        ("whoami /nope", 1, "", None),
        (f'reg query "{PREFETCH}" /v BootId', 0, BOOT_ID, ""),
        (r"reg query HKLM\Nope /v x", 1, "", NO_KEY),
        (r"reg query HKLM\Nope /f x /d", 1, "", NO_KEY),
        ("reg query Nope /v x", 1, "", 'ERROR: Invalid key name.\r\nType "REG QUERY /?" for usage.\r\n'),
        (r"reg query HKLM\SYSTEM /s", 1, "", None),
        (r"reg add HKLM\SOFTWARE\T /f", 1, "", None),
        ("sc.exe qpreshutdown kubelet", 1639, None, ""),
        ("sc.exe query", 1639, None, ""),
        ("sc.exe query nope", 1060, None, ""),
        ("sc.exe stop nope", 1060, None, ""),
        ("sc.exe stop containerd", 1051, None, ""),
        ("sc.exe start kubelet", 1056, None, ""),
        ("sc.exe stop wuauserv", 1062, None, ""),
        ("sc.exe stop gpsvc", 1052, None, ""),
        ("shutdown.exe /x", 1, None, ""),
        ("shutdown.exe /r /d p:9:9", 1, None, ""),
        ("shutdown.exe /r /t 315360001", 1, None, ""),
        ("shutdown.exe", 1, None, ""),
        ("schtasks /query /tn nope /xml", 1, "", "ERROR: The system cannot find the file specified.\r\n"),
        ("schtasks /create /tn nope", 1, "", "ERROR: The system cannot find the file specified.\r\n"),
        (r"schtasks /delete /tn \a\b /f", 1, "", NO_TASK),
        ("schtasks", 1, "", None),
        ("netsh advfirewall firewall delete rule name=nope", 1, f"\r\n{NO_RULE}\r\n\r\n", ""),
        ("netsh advfirewall set allprofiles state off", 1, None, ""),
        (f"{ADD} dir=in action=allow", 1, None, ""),
        (f"{ADD} dir=up action=block", 1, None, ""),
        (f"{ADD} dir=in action=block group=g", 1, None, ""),
        (f"{ADD} dir=in action=block remoteip=zz", 1, None, ""),
        ("wevtutil qe System /q:nonsense /c:1 /rd:true /f:xml", 15001, "", None),
        ("wevtutil qe System /q:*", 87, "", None),
    ],
)
def test_commands(host: WindowsHost, line: str, code: int, stdout: str | None, stderr: str | None) -> None:
    ran = host.run(line)
    assert ran[0] == code
    assert stdout is None or ran[1] == stdout
    assert stderr is None or ran[2] == stderr


@pytest.mark.parametrize(
    ("first", "line", "code", "text"),
    [
        ("", "shutdown /r /f /t 10", 0, ""),
        ("shutdown /r /f /t 10", 'shutdown /r /f /t 60 /c "packer restart test"', 1190, "scheduled"),
        ("shutdown.exe -f -r -t 0", 'shutdown.exe -f -r -t 60 -c "packer restart test"', 1115, "progress"),
        ("", "shutdown /a", 1116, "abort"),
        ("shutdown /s /t 60", "shutdown /a", 0, ""),
    ],
)
def test_shutdown_has_the_recorded_codes_and_texts(first: str, line: str, code: int, text: str) -> None:
    host = WindowsHost()
    if first:
        assert host.run(first) == (0, "", "")
    ran = host.run(line)
    assert (ran[0], ran[1]) == (code, "")
    recorded = [row for row in read("commands/shutdown.txt").splitlines() if row.endswith(f"({code})")]
    assert ran[2] == (recorded[0] + "\n" if text else "")
    assert not text or text in ran[2]
    assert {1190: 52, 1115: 40}.get(code, len(ran[2])) == len(ran[2])


def test_a_schedule_is_not_replaced_and_an_abort_leaves_no_trace_but_events() -> None:
    host = WindowsHost()
    boot = host.machine.boot_id
    assert host.run("shutdown /s /t 5 /c why /d p:4:1")[0] == 0
    assert host.run("shutdown /r /t 1")[0] == 1190
    assert host.run("shutdown /a")[0] == 0
    host.wait(30.0)
    assert (host.machine.state, host.machine.boot_id) == ("on", boot)
    assert host.event_ids()[-2:] == [1074, 1075]
    code, out, _ = host.run(f'wevtutil qe System "{QUERY.format(1074)}" /c:1 /rd:true /f:xml')
    event = ElementTree.fromstring(out)  # noqa: S314
    data = [item.text for item in event.iter(f"{EVENTS}Data")]
    assert (code, data[3:6]) == (0, ["0x80040001", "power off", "why"])


def test_events_come_the_newest_first_and_are_counted() -> None:
    host = WindowsHost()
    for number in range(3):
        host.machine.event_log.log_shutdown_request(f"{number}.exe", "user", "restart", "Other|0x0", "")
    out = host.run(f'wevtutil qe System "{QUERY.format(1074)}" /c:2 /rd:true /f:xml')[1]
    assert re.findall(r"(\d)\.exe", out) == ["2", "1"]


def test_sc_query_has_the_recorded_lines(host: WindowsHost) -> None:
    """BITS, as in the recorded list of services, which has DISPLAY_NAME besides."""
    code, out, _ = host.run("sc.exe query bits")
    recorded = [line.rstrip() for line in _recorded("sc", 1).splitlines() if line and not line.startswith("(")]
    expected = [line for line in recorded if not line.startswith("DISPLAY_NAME")]
    assert (code, [line.rstrip() for line in out.split("\r\n") if line]) == (0, expected)


def test_an_unknown_service_has_the_recorded_text(host: WindowsHost) -> None:
    _, out, _ = host.run("sc.exe query nope")
    assert out.replace("\r\n", "\n").strip() == _recorded("sc", 5).strip()


def test_a_service_stops_and_starts_later_than_the_command_ends() -> None:
    host = WindowsHost()
    code, out, _ = host.run("sc.exe stop kubelet")
    assert (code, "STATE              : 3  STOP_PENDING" in out) == (0, True)
    assert host.run("sc.exe stop kubelet")[0] == 1061
    host.wait(2.0)
    out = host.run("sc.exe query kubelet")[1]
    assert ("STATE              : 1  STOPPED" in out, "ACCEPTS" in out) == (True, False)
    assert not host.machine.kubelet.is_running
    host.stop("containerd")
    host.configure("kubelet", "disabled")
    assert host.run("sc.exe start kubelet")[0] == 1058
    host.configure("kubelet", "demand")
    assert host.run("sc.exe start kubelet")[0] == 0
    host.wait(2.0)
    for name in ("kubelet", "containerd"):
        assert "STATE              : 4  RUNNING" in host.run(f"sc.exe query {name}")[1]
    assert host.machine.kubelet.pid


def test_a_service_that_never_ran_has_code_1077(host: WindowsHost) -> None:
    out = host.run("sc.exe query wuauserv")[1]
    recorded = re.search(r"WIN32_EXIT_CODE    : 1077.*", read("commands/sc.txt"))
    assert recorded
    assert recorded[0] in out


def test_rules_are_added_and_deleted_with_the_recorded_texts() -> None:
    host = WindowsHost()
    for direction in ("in", "out"):
        assert host.run(f"{ADD} dir={direction} action=block remoteip=10.0.0.1") == (0, "Ok.\r\n\r\n", "")
    code, out, _ = host.run("netsh advfirewall firewall delete rule name=t")
    assert (code, out.split()) == (0, ["Deleted", "2", "rule(s).", "Ok."])


def test_tasks_are_shown_with_the_recorded_columns() -> None:
    host = WindowsHost()
    xml = (
        '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">'
        "<Actions><Exec><Command>shutdown.exe</Command><Arguments>/a</Arguments></Exec></Actions></Task>"
    )
    assert host.script("register-task", xml, task="T")[0] == 0
    rows = list(csv.DictReader(io.StringIO(host.run("schtasks /query /tn T /fo csv /v")[1])))
    recorded = next(csv.reader(io.StringIO(_recorded("schtasks", 1))))
    assert list(rows[0]) == recorded
    assert (rows[0]["Last Result"], rows[0]["Status"], rows[0]["Task To Run"]) == ("267011", "Ready", "shutdown.exe /a")
    assert host.run("schtasks /run /tn T")[1] == 'SUCCESS: Attempted to run the scheduled task "T".\r\n'
    rows = list(csv.DictReader(io.StringIO(host.run("schtasks /query /tn T /fo csv /v")[1])))
    assert rows[0]["Last Result"] == "1116"
    assert host.run("schtasks /query /fo csv /nh")[1] == '"\\T","N/A","Ready"\r\n'
    assert host.run("schtasks /delete /tn T /f")[1] == 'SUCCESS: The scheduled task "T" was successfully deleted.\r\n'
    assert host.run("schtasks /query /fo csv /nh") == (0, "", "")
