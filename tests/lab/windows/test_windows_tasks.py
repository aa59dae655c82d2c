"""The task scheduler: XML from stdin, times by the machine's clock, limits, several instances."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from chaos.lab.windows.task_xml import NAMESPACE, TaskXmlError, parse_span, parse_task_xml
from tests.kit.win_host import WindowsHost

REGISTER = (
    "$ProgressPreference='SilentlyContinue'; $ErrorActionPreference='Stop'; "
    "Register-ScheduledTask -TaskName 'nodefall-t' -Xml ([Console]::In.ReadToEnd()) -Force | Out-Null"
)
XML = """<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Triggers>{triggers}</Triggers>
  <Principals>
    <Principal id="Author"><UserId>S-1-5-18</UserId><RunLevel>HighestAvailable</RunLevel></Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>{policy}</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>{limit}</ExecutionTimeLimit>
  </Settings>
  <Actions Context="Author"><Exec><Command>{command}</Command><Arguments>{arguments}</Arguments></Exec></Actions>
</Task>
"""
MARK = r"C:\Windows\System32\reg.exe", r"add HKLM\SOFTWARE\T /v n /d 1 /f"
POWERSHELL = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe"
SLEEP = POWERSHELL, "-Command &quot;Start-Sleep -Seconds 60; exit 5&quot;"


def _iso(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _at(start: float, end: float | None = None) -> str:
    boundary = "" if end is None else f"<EndBoundary>{_iso(end)}</EndBoundary>"
    return f"<TimeTrigger><StartBoundary>{_iso(start)}</StartBoundary>{boundary}<Enabled>true</Enabled></TimeTrigger>"


def _register(
    host: WindowsHost, triggers: str = "", what: tuple[str, str] = MARK, policy: str = "IgnoreNew", limit: str = "PT1H"
) -> None:
    xml = XML.format(triggers=triggers, policy=policy, limit=limit, command=what[0], arguments=what[1])
    assert host.powershell(REGISTER, xml) == (0, "", "")


def _ran(host: WindowsHost) -> bool:
    return host.machine.registry.value(r"HKLM\SOFTWARE\T", "n") is not None


def _result(host: WindowsHost) -> int:
    task = host.machine.tasks.get("nodefall-t")
    assert task is not None
    return task.last_result


def test_a_task_of_stdin_runs_when_it_is_due_and_is_read_back() -> None:
    host = WindowsHost()
    due = float(int(host.sim.now) + 30)
    _register(host, _at(due, due + 600))
    code, out, _ = host.run("schtasks.exe /query /tn nodefall-t /xml")
    root = ElementTree.fromstring(out.partition("?>")[2])  # noqa: S314
    names = {"t": NAMESPACE}
    assert (code, root.findtext("t:RegistrationInfo/t:URI", "", names)) == (0, "\\nodefall-t")
    assert root.findtext("t:Triggers/t:TimeTrigger/t:EndBoundary", "", names) == _iso(due + 600)
    assert root.findtext("t:Settings/t:StopIfGoingOnBatteries", "", names) == "false"
    host.wait(due - host.sim.now - 0.5)
    assert not _ran(host)
    host.wait(2.0)
    assert (_ran(host), _result(host)) == (True, 0)
    assert host.run("schtasks.exe /delete /tn nodefall-t /f")[0] == 0
    assert host.run("schtasks.exe /query /tn nodefall-t /xml")[0] == 1


@pytest.mark.parametrize(
    ("off_for", "end", "boots", "runs"),
    [
        (60.0, 600.0, "", True),  # StartWhenAvailable
        (60.0, 40.0, "", False),  # over when the machine is back
        (60.0, 40.0, "<BootTrigger/>", True),
        (60.0, 40.0, "<BootTrigger><Enabled>false</Enabled></BootTrigger>", False),
    ],
)
def test_a_time_that_passed_while_the_machine_was_off(off_for: float, end: float, boots: str, runs: bool) -> None:
    host = WindowsHost()
    _register(host, _at(host.sim.now + 30, host.sim.now + end) + boots)
    host.machine.power_off()
    host.wait(off_for)
    assert not _ran(host)
    host.machine.power_on()
    host.wait(60.0)
    assert _ran(host) is runs


@pytest.mark.parametrize(("skew", "runs_early", "runs_in_time"), [(60.0, True, True), (-60.0, False, False)])
def test_times_follow_the_machines_clock(skew: float, runs_early: bool, runs_in_time: bool) -> None:
    host = WindowsHost()
    for name in ("w32time", "vmictimesync"):
        assert host.run(f"sc.exe stop {name}")[0] == 0
    _register(host, _at(host.sim.now + 40))
    assert host.powershell(f"Set-Date -Adjust ([TimeSpan]::FromSeconds({skew})) | Out-Null") == (0, "", "")
    host.wait(5.0)
    assert _ran(host) is runs_early
    host.wait(40.0)
    assert _ran(host) is runs_in_time
    host.wait(60.0)
    assert _ran(host)


def test_a_task_that_waits_by_itself_does_not_follow_the_clock() -> None:
    host = WindowsHost()
    _register(host, what=SLEEP)
    assert host.run("schtasks.exe /run /tn nodefall-t")[0] == 0
    assert _result(host) == 267009
    assert '"Running"' in host.run("schtasks.exe /query /tn nodefall-t /fo csv /v")[1]
    host.machine.clock.adjust(300.0)
    host.wait(55.0)
    assert _result(host) == 267009
    host.wait(10.0)
    assert _result(host) == 5


def test_the_time_limit_and_end_terminate_a_task() -> None:
    host = WindowsHost()
    _register(host, what=SLEEP, limit="PT20S")
    host.run("schtasks.exe /run /tn nodefall-t")
    host.wait(21.0)
    assert _result(host) == 267014
    host.run("schtasks.exe /run /tn nodefall-t")
    host.wait(5.0)
    assert host.run("schtasks.exe /end /tn nodefall-t")[0] == 0
    assert _result(host) == 267014
    assert host.run("schtasks.exe /end /tn nope")[0] == 1


@pytest.mark.parametrize(
    ("policy", "running", "after"),
    [("IgnoreNew", 1, 0), ("Parallel", 2, 1), ("StopExisting", 1, 1), ("Queue", 1, 1)],
)
def test_a_second_instance(policy: str, running: int, after: int) -> None:
    """``after``: how many run when the first has had its 60 s."""
    host = WindowsHost()
    _register(host, what=SLEEP, policy=policy)
    task = host.machine.tasks.get("nodefall-t")
    assert task is not None
    host.run("schtasks.exe /run /tn nodefall-t")
    host.wait(30.0)
    host.run("schtasks.exe /run /tn nodefall-t")
    assert len(task.instances) == running
    host.wait(35.0)
    assert len(task.instances) == after
    host.wait(90.0)
    assert (task.instances, task.last_result) == ([], 5)


def test_a_power_cut_ends_running_tasks() -> None:
    host = WindowsHost()
    _register(host, what=SLEEP)
    host.run("schtasks.exe /run /tn nodefall-t")
    host.machine.reset()
    host.wait(90.0)
    assert _result(host) == 0x40010004


def test_tasks_outlive_sshd() -> None:
    host = WindowsHost()
    _register(host, what=SLEEP)
    host.run("schtasks.exe /run /tn nodefall-t")
    host.run("sc.exe stop sshd")
    host.wait(70.0)
    assert _result(host) == 5


def test_a_missing_program_is_a_result() -> None:
    host = WindowsHost()
    _register(host, what=(r"C:\nope.exe", ""))
    host.run("schtasks.exe /run /tn nodefall-t")
    host.wait(1.0)
    assert _result(host) == 0x80070002
    assert '"-2147024894"' in host.run("schtasks.exe /query /tn nodefall-t /fo csv /v")[1]


def test_cmdlets_of_tasks() -> None:
    host = WindowsHost()
    _register(host, _at(host.sim.now + 40))
    again = REGISTER.replace(" -Force", "")
    xml = XML.format(triggers="", policy="IgnoreNew", limit="PT1H", command="cmd.exe", arguments="")
    assert "HRESULT 0x800700b7" in host.powershell(again, xml)[2]
    assert host.powershell("(Get-ScheduledTask nodefall-*).State")[1] == "Ready\r\n"
    assert host.powershell("Start-ScheduledTask nodefall-t; (Get-ScheduledTaskInfo nodefall-t).LastTaskResult")[0] == 0
    assert host.powershell("Unregister-ScheduledTask nodefall-t")[0] == 1  # it would ask
    assert host.powershell("Unregister-ScheduledTask nodefall-t -Confirm:$false")[0] == 0
    assert host.machine.tasks.get("nodefall-t") is None
    assert "NotFound_TaskName" in host.powershell("Get-ScheduledTask nodefall-t")[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{policy}", "Sometimes"),
        ("{limit}", "1h"),
        ("{triggers}", "<CalendarTrigger><StartBoundary>2026-11-22T00:00:00</StartBoundary></CalendarTrigger>"),
        ("{triggers}", "<TimeTrigger><Repetition/></TimeTrigger>"),
        ("{triggers}", "<TimeTrigger><StartBoundary>soon</StartBoundary></TimeTrigger>"),
        ("<Settings>", "<Extra/><Settings>"),
        ("<StartWhenAvailable>true", "<StartWhenAvailable>yes"),
        ("{command}", ""),
        ("</Task>", ""),
    ],
)
def test_xml_that_is_no_task(old: str, new: str) -> None:
    text = XML.replace(old, new)
    for name, value in (
        ("triggers", ""),
        ("policy", "IgnoreNew"),
        ("limit", "PT1H"),
        ("command", "x"),
        ("arguments", ""),
    ):
        text = text.replace(f"{{{name}}}", value)
    with pytest.raises(TaskXmlError):
        parse_task_xml(text)
    host = WindowsHost()
    code, out, err = host.powershell(REGISTER, text)
    assert (code, out, "CimException" in err) == (1, "", True)
    assert host.machine.tasks.all() == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("PT1H", 3600.0), ("P1DT1M", 86460.0), ("PT0S", 0.0), ("PT72H", 259200.0)]
)
def test_spans(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds
