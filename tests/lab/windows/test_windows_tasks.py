"""The task scheduler: XML from stdin, times by the machine's clock, limits."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from chaos.core.windows import powershell, system_program
from chaos.lab.windows.tasks import NAMESPACE, TaskXmlError, parse_span, parse_task_xml
from tests.kit.win_host import WindowsHost

XML = """<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Triggers>{triggers}</Triggers>
  <Principals>
    <Principal id="Author"><UserId>S-1-5-18</UserId><RunLevel>HighestAvailable</RunLevel></Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>{limit}</ExecutionTimeLimit>
  </Settings>
  <Actions Context="Author"><Exec><Command>{command}</Command><Arguments>{arguments}</Arguments></Exec></Actions>
</Task>
"""
STOP = system_program("sc"), "stop wuauserv"  # which does not run: 1062
NOT_STARTED = 1062
_PROGRAM, *_WORDS = powershell("failsafe-run", wait=60, program=STOP[0], arguments=STOP[1].split(), task="none")
SLEEP = _PROGRAM, " ".join(_WORDS)


def _iso(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _at(start: float) -> str:
    return f"<TimeTrigger><StartBoundary>{_iso(start)}</StartBoundary></TimeTrigger>"


def _register(host: WindowsHost, triggers: str = "", what: tuple[str, str] = STOP, limit: str = "PT1H") -> None:
    xml = XML.format(triggers=triggers, limit=limit, command=what[0], arguments=what[1])
    assert host.script("register-task", xml, task="nodefall-t") == (0, "", "")


def _ran(host: WindowsHost) -> bool:
    return _result(host) == NOT_STARTED


def _result(host: WindowsHost) -> int:
    task = host.machine.tasks.get("nodefall-t")
    assert task is not None
    return task.last_result


def test_a_task_of_stdin_runs_when_it_is_due_and_is_read_back() -> None:
    host = WindowsHost()
    due = float(int(host.sim.now) + 30)
    _register(host, _at(due))
    code, out, _ = host.run("schtasks.exe /query /tn nodefall-t /xml")
    root = ElementTree.fromstring(out.partition("?>")[2])  # noqa: S314
    names = {"t": NAMESPACE}
    assert (code, root.findtext("t:RegistrationInfo/t:URI", "", names)) == (0, "\\nodefall-t")
    assert root.findtext("t:Triggers/t:TimeTrigger/t:StartBoundary", "", names) == _iso(due)
    assert root.findtext("t:Settings/t:StopIfGoingOnBatteries", "", names) == "false"
    host.wait(due - host.sim.now - 0.5)
    assert not _ran(host)
    host.wait(2.0)
    assert _ran(host)
    assert host.run("schtasks.exe /delete /tn nodefall-t /f")[0] == 0
    assert host.run("schtasks.exe /query /tn nodefall-t /xml")[0] == 1


@pytest.mark.parametrize(
    ("triggers", "available", "runs"),
    [("time", "true", True), ("time", "false", False), ("boot", "false", True)],
)
def test_a_time_that_passed_while_the_machine_was_off(triggers: str, available: str, runs: bool) -> None:
    host = WindowsHost()
    found = _at(host.sim.now + 30) if triggers == "time" else "<BootTrigger/>"
    xml = XML.format(triggers=found, limit="PT1H", command=STOP[0], arguments=STOP[1])
    xml = xml.replace("<StartWhenAvailable>true", f"<StartWhenAvailable>{available}")
    assert host.script("register-task", xml, task="nodefall-t") == (0, "", "")
    host.machine.power_off()
    host.wait(60.0)
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
    assert host.script("set-clock", seconds=skew) == (0, "", "")
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
    assert _result(host) == NOT_STARTED


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


def test_there_is_no_second_instance() -> None:
    host = WindowsHost()
    _register(host, what=SLEEP)
    host.run("schtasks.exe /run /tn nodefall-t")
    task = host.machine.tasks.get("nodefall-t")
    assert task is not None
    began = task.last_run
    host.wait(30.0)
    host.run("schtasks.exe /run /tn nodefall-t")
    host.wait(35.0)
    assert (_ran(host), task.last_run, task.stop) == (True, began, None)


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
    assert _result(host) == NOT_STARTED


def test_a_missing_program_is_a_result() -> None:
    host = WindowsHost()
    _register(host, what=(r"C:\nope.exe", ""))
    host.run("schtasks.exe /run /tn nodefall-t")
    host.wait(1.0)
    assert _result(host) == 0x80070002
    assert '"-2147024894"' in host.run("schtasks.exe /query /tn nodefall-t /fo csv /v")[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("IgnoreNew", "Parallel"),
        ("{limit}", "1h"),
        ("{triggers}", "<CalendarTrigger><StartBoundary>2026-11-22T00:00:00</StartBoundary></CalendarTrigger>"),
        ("{triggers}", "<TimeTrigger><Repetition/></TimeTrigger>"),
        ("{triggers}", "<TimeTrigger><StartBoundary>soon</StartBoundary></TimeTrigger>"),
        ("<Settings>", "<Extra/><Settings>"),
        ("{triggers}", "<TimeTrigger><EndBoundary>2026-11-22T00:00:00</EndBoundary></TimeTrigger>"),
        ("S-1-5-18", "S-1-5-19"),
        ("{command}", ""),
        ("</Task>", ""),
    ],
)
def test_xml_that_is_no_task(old: str, new: str) -> None:
    text = XML.replace(old, new)
    for name, value in (
        ("triggers", ""),
        ("limit", "PT1H"),
        ("command", "x"),
        ("arguments", ""),
    ):
        text = text.replace(f"{{{name}}}", value)
    with pytest.raises(TaskXmlError):
        parse_task_xml(text)
    host = WindowsHost()
    code, out, err = host.script("register-task", text, task="nodefall-t")
    assert (code, out, "incorrectly formatted or out of range" in err) == (1, "", True)
    assert host.machine.tasks.all() == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("PT1H", 3600.0), ("P1DT1M", 86460.0), ("PT0S", 0.0), ("PT72H", 259200.0)]
)
def test_spans(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds
