"""Programs of Windows nodes: output, exit codes and effects, as recorded in tests/recordings/winrm/commands."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from tests.kit.win_host import WindowsHost
from tests.kit.winrm_exchanges import read

PREFETCH = r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"
BOOT_ID = f"\r\nHKEY_LOCAL_MACHINE\\{PREFETCH}\r\n    BootId    REG_DWORD    0x20\r\n\r\n"
UNKNOWN_PROGRAM = (
    "'nosuch' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"
)
NO_KEY = "ERROR: The system was unable to find the specified registry key or value.\r\n"
NO_TASK = 'ERROR: The specified task name "\\a\\b" does not exist in the system.\r\n'
NO_RULE = "No rules match the specified criteria."
EVENTS = "{http://schemas.microsoft.com/win/2004/08/events/event}"


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
        ("echo hi", 0, "hi\r\n", ""),
        ("cmd.exe /c echo out && echo err>&2 && exit 1", 1, "out \r\n", "err \r\n"),
        ('cmd /c "echo a & echo b"', 0, "a \r\nb\r\n", ""),
        ("echo a>nul& echo b 2>nul", 0, "b \r\n", ""),
        ("echo %COMPUTERNAME% %nope% %computername%", 0, "WIN1 %nope% WIN1\r\n", ""),
        ("echo ^& ^> \"&\"", 0, '& > "&"\r\n', ""),
        ("nosuch /x", 1, "", UNKNOWN_PROGRAM),
        ("nosuch 2>nul || echo no", 0, "no\r\n", ""),
        ("exit 5", 5, "", ""),
        ("exit /b -1", -1, "", ""),
        ("echo a | more", 1, "", "| was unexpected at this time.\r\n"),
        ("&& echo", 1, "", "&& was unexpected at this time.\r\n"),
        ("set NAME=1& set NAME", 0, "NAME=1\r\n", ""),
        ("hostname & whoami", 0, "win1\r\nwin1\\administrator\r\n", ""),
        (r"echo a> C:\t.txt & echo b>> c:\T.TXT & type C:\t.txt", 0, "a \r\nb \r\n", ""),
        ("cd /d C:\\Windows & cd", 0, "C:\\Windows\r\n", ""),
        ("powershell Write-Host hi", 0, "hi\n", ""),
        ("powershell -NoProfile -Command \"Write-Output 'a b'; exit 3\"", 3, "a b\r\n", ""),
        ("powershell [Console]::Error.WriteLine('x')", 0, "", "x\r\n"),
        ("powershell $env:COMPUTERNAME", 0, "WIN1\r\n", ""),
        ("powershell $x = 'v'; $x", 0, "v\r\n", ""),
        ("powershell \"& 'C:\\Windows\\System32\\cmd.exe' /c exit 7; exit $LASTEXITCODE\"", 7, "", ""),
        ("timeout /t 5", 1, "", "ERROR: Input redirection is not supported, exiting the process immediately.\r\n"),
        (f'reg query "HKLM\\{PREFETCH}" /v BootId', 0, BOOT_ID, ""),
        ("reg query HKLM\\Nope", 1, "", NO_KEY),
        ("reg query Nope", 1, "", 'ERROR: Invalid key name.\r\nType "REG QUERY /?" for usage.\r\n'),
        ("sc.exe qpreshutdown kubelet", 1639, None, ""),
        ("sc.exe query nope", 1060, None, ""),
        ("sc.exe stop containerd", 1051, None, ""),
        ("sc.exe start kubelet", 1056, None, ""),
        ("sc.exe stop wuauserv", 1062, None, ""),
        ("sc.exe stop gpsvc", 1052, None, ""),
        ("shutdown.exe /x", 1, None, ""),
        ("shutdown.exe /r /d p:9:9", 1, None, ""),
        ("shutdown.exe /r /t 315360001", 1, None, ""),
        ("schtasks /query /tn nope", 1, "", "ERROR: The system cannot find the file specified.\r\n"),
        (r"schtasks /delete /tn \a\b /f", 1, "", NO_TASK),
        ("netsh advfirewall firewall delete rule name=nope", 1, f"\r\n{NO_RULE}\r\n\r\n", ""),
        ("netsh advfirewall firewall add rule name=x dir=in", 1, None, ""),
        ("netsh advfirewall firewall add rule name=x dir=in action=block group=g", 1, None, ""),
        ("netsh advfirewall firewall add rule name=x dir=in action=block remoteip=zz", 1, None, ""),
        ("wevtutil qe System /q:nonsense", 15001, "", None),
        ("wevtutil qe Nope", 15007, "", None),
        ("taskkill /f /im nope.exe", 128, "", 'ERROR: The process "nope.exe" not found.\r\n'),
    ],
)  # fmt: skip
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
    code, out, _ = host.run('wevtutil qe System "/q:*[System[(EventID=1074)]]" /c:1 /rd:true /f:xml')
    event = ElementTree.fromstring(out)  # noqa: S314
    data = [item.text for item in event.iter(f"{EVENTS}Data")]
    assert (code, data[3:6]) == (0, ["0x80040001", "power off", "why"])


def test_sc_query_has_the_recorded_lines(host: WindowsHost) -> None:
    """BITS in the list of services, which alone shows DISPLAY_NAME."""
    code, out, _ = host.run("sc.exe query")
    recorded = [line.rstrip() for line in _recorded("sc", 1).splitlines() if line and not line.startswith("(")]
    listed = [line.rstrip() for line in out.split("\r\n")]
    start = listed.index("SERVICE_NAME: BITS")
    assert (code, listed[start : start + len(recorded)]) == (0, recorded)
    code, out, _ = host.run("sc.exe query bits")
    assert (code, "DISPLAY_NAME" in out, out.count("\r\n")) == (0, False, 9)


def test_an_unknown_service_has_the_recorded_text(host: WindowsHost) -> None:
    _, out, _ = host.run("sc.exe query nope")
    assert out.replace("\r\n", "\n").strip() == _recorded("sc", 5).strip()


def test_a_service_stops_and_starts_later_than_the_command_ends() -> None:
    host = WindowsHost()
    code, out, _ = host.run("sc.exe stop kubelet")
    assert (code, "STATE              : 3  STOP_PENDING" in out) == (0, True)
    host.wait(2.0)
    out = host.run("sc.exe query kubelet")[1]
    assert ("STATE              : 1  STOPPED" in out, "ACCEPTS" in out) == (True, False)
    assert not host.machine.kubelet.is_running
    assert host.run("sc.exe stop containerd")[0] == 0
    assert host.run("sc.exe config kubelet start= disabled")[1] == "[SC] ChangeServiceConfig SUCCESS\r\n"
    assert host.run("sc.exe start kubelet")[0] == 1058
    host.run("sc.exe config kubelet start= demand")
    host.wait(2.0)
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


def test_a_killed_kubelet_is_started_by_its_failure_action() -> None:
    host = WindowsHost()
    assert host.run("taskkill /f /im kubelet.exe")[0] == 0
    host.wait(1.0)
    assert "1  STOPPED" in host.run("sc.exe query kubelet")[1]
    host.wait(15.0)
    assert (host.machine.kubelet.is_running, host.event_ids()[-1]) == (True, 7031)


def test_rules_have_the_recorded_form() -> None:
    host = WindowsHost()
    name = "Open Port 61001 for admin router"
    options = "dir=in action=allow protocol=TCP localport=61001"
    assert host.run(f'netsh advfirewall firewall add rule name="{name}" {options}') == (0, "Ok.\r\n\r\n", "")
    out = host.run(f'netsh advfirewall firewall show rule name="{name}"')[1]
    recorded = [line.rstrip() for line in _recorded("netsh", 4).splitlines() if line.strip()]
    assert [line for line in out.split("\r\n") if line] == recorded
    code, out, _ = host.run('netsh advfirewall firewall delete rule name="Windows Remote Management (HTTP-In)"')
    assert (code, out.split()) == (0, ["Deleted", "2", "rule(s).", "Ok."])


@pytest.mark.parametrize(
    ("rule", "is_cut"),
    [
        ("dir=out action=block", True),
        ("dir=in action=block", False),  # the kubelet opens the connection
        ("dir=out action=block remoteip=10.89.0.0/24,fd00::/8", True),
        ("dir=out action=block remoteip=10.89.0.2-10.89.0.9,fd00::1-fdff::1", True),
        ("dir=out action=block remoteip=10.89.0.2", False),  # IPv6 is left
        ("dir=out action=block protocol=TCP remoteport=6443", True),
        ("dir=out action=block protocol=TCP remoteport=1-1000", False),
        ("dir=out action=block protocol=UDP remoteport=6443", False),
        ("dir=out action=block enable=no", False),
        ("dir=out action=block profile=domain", False),
        ("dir=out action=allow", False),
    ],
)
def test_rules_cut_the_kubelet_off(rule: str, is_cut: bool) -> None:
    host = WindowsHost()
    assert host.run(f"netsh advfirewall firewall add rule name=t {rule}")[0] == 0
    assert (not any(host.machine.network.reachability().values())) is is_cut
    assert host.run("netsh advfirewall set allprofiles state off")[0] == 0
    assert all(host.machine.network.reachability().values())
    assert "OFF" in host.run("netsh advfirewall show allprofiles state")[1]


def test_a_block_beats_an_allow_and_outlives_a_reboot() -> None:
    host = WindowsHost()
    host.run("netsh advfirewall firewall add rule name=a dir=out action=block")
    host.run("netsh advfirewall firewall add rule name=b dir=out action=allow")
    assert not any(host.machine.network.reachability().values())
    host.machine.reset()
    host.wait(60.0)
    assert not any(host.machine.network.reachability().values())
    host.run("netsh advfirewall firewall delete rule name=a")
    assert all(host.machine.network.reachability().values())


def test_the_outbound_policy_leaves_what_is_allowed() -> None:
    host = WindowsHost()
    host.run("netsh advfirewall set allprofiles firewallpolicy blockinbound,blockoutbound")
    assert not any(host.machine.network.reachability().values())
    host.run("netsh advfirewall firewall add rule name=b dir=out action=allow protocol=TCP remoteport=6443")
    assert all(host.machine.network.reachability().values())


TASK = """<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
 <Triggers><TimeTrigger><StartBoundary>{start}</StartBoundary></TimeTrigger>{boot}</Triggers>
 <Settings><StartWhenAvailable>{available}</StartWhenAvailable></Settings>
 <Actions><Exec><Command>reg.exe</Command><Arguments>add HKLM\\SOFTWARE\\T /v n /d 1 /f</Arguments></Exec></Actions>
</Task>"""


def _ran(host: WindowsHost) -> bool:
    return host.run(r"reg query HKLM\SOFTWARE\T /v n")[0] == 0


def _iso(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.parametrize(
    ("boot", "available", "is_off", "runs"),
    [
        ("", "false", False, True),
        ("", "false", True, False),  # its time passed while the machine was off
        ("", "true", True, True),
        ("<BootTrigger/>", "false", True, True),
        ("<BootTrigger><Delay>PT1H</Delay></BootTrigger>", "false", True, False),
    ],
)
def test_a_task_runs_at_its_time_and_after_a_boot(boot: str, available: str, is_off: bool, runs: bool) -> None:
    host = WindowsHost()
    host.machine.files["/t.xml"] = TASK.format(start=_iso(host.sim.now + 40), boot=boot, available=available)
    created = host.run(r"schtasks /create /tn T /xml C:\t.xml /f")
    assert created == (0, 'SUCCESS: The scheduled task "T" has successfully been created.\r\n', "")
    if is_off:
        host.machine.power_off()
    host.wait(60.0)
    assert (is_off, _ran(host)) in ((True, False), (False, True))
    host.machine.power_on()
    host.wait(60.0)
    assert _ran(host) is runs


def test_tasks_are_shown_with_the_recorded_columns() -> None:
    host = WindowsHost()
    assert host.run('schtasks /create /tn T /tr "shutdown.exe /a" /sc once /st 23:59 /ru SYSTEM /f')[0] == 0
    rows = list(csv.DictReader(io.StringIO(host.run("schtasks /query /fo csv /v")[1])))
    recorded = next(csv.reader(io.StringIO(_recorded("schtasks", 1))))
    assert list(rows[0]) == recorded
    assert (rows[0]["Last Result"], rows[0]["Status"], rows[0]["Task To Run"]) == ("267011", "Ready", "shutdown.exe /a")
    assert host.run("schtasks /run /tn T")[1] == 'SUCCESS: Attempted to run the scheduled task "T".\r\n'
    rows = list(csv.DictReader(io.StringIO(host.run("schtasks /query /tn T /fo csv /v")[1])))
    assert rows[0]["Last Result"] == "1116"
    xml = re.sub(r"<\?.*?\?>", "", host.run("schtasks /query /tn T /xml")[1])
    root = ElementTree.fromstring(xml)  # noqa: S314
    assert root.tag.endswith("}Task")
    assert host.run("schtasks /delete /tn T /f")[0] == 0
    assert host.run("schtasks /query /tn T")[0] == 1


@pytest.mark.parametrize(
    "xml",
    ["", "<Task/>", "<a", TASK.format(start="soon", boot="", available="false")],
    ids=["empty", "no", "cut", "time"],
)
def test_a_bad_task_is_refused(xml: str) -> None:
    host = WindowsHost()
    host.machine.files["/t.xml"] = xml
    code, out, err = host.run(r"schtasks /create /tn T /xml C:\t.xml")
    assert (code, out, err.startswith("ERROR: ")) == (1, "", True)
    assert host.machine.tasks.all() == []


def test_registry_values_of_all_kinds() -> None:
    host = WindowsHost()
    key = r"HKLM\SOFTWARE\T"
    for kind, data, shown in (
        ("REG_SZ", "a b", "a b"),
        ("REG_DWORD", "31", "0x1f"),
        ("REG_DWORD", "0x1F", "0x1f"),
        ("REG_MULTI_SZ", r"a\0b", r"a\0b"),
    ):
        assert host.run(f'reg add {key} /v n /t {kind} /d "{data}" /f')[0] == 0
        assert f"    n    {kind}    {shown}\r\n" in host.run(f"reg query {key.lower()} /v N")[1]
    assert host.run(f"reg add {key} /v n /t REG_DWORD /d x /f")[0] == 1
    assert host.run(f"reg delete {key} /v n /f")[0] == 0
    assert host.run(f"reg query {key} /v n")[0] == 1
    assert host.run(f"reg delete {key} /f")[0] == 0
    assert host.run(f"reg query {key}")[0] == 1
