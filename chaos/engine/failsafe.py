"""Failsafe timer: undoes a fault on its host by itself if nodefall dies or loses the connection.

The timer is armed before the fault and stopped after the undo. It belongs to the host's PID 1 (systemd-run), so it
survives the end of nodefall and of its session.

Windows hosts have a scheduled task of SYSTEM instead. It starts by the wall clock of the host, at its time or at the
next boot, as what it undoes may survive a boot. It also starts late if the machine was off at its time. For faults that
set the clock it starts at once, and waits by itself. Once its program has exited with 0 it deletes itself; until then
it starts at each boot.
"""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from math import ceil
from xml.etree import ElementTree

from msgspec import structs

from chaos.core.action import FailsafeTimer
from chaos.core.command import Delivery, HostCommand, Outcome, is_success
from chaos.core.duration import parse_timespan
from chaos.core.errors import Aborted, NodefallError
from chaos.core.windows import LIST_TASKS, parse_task_names, powershell, system_program
from chaos.machines.pool import Hosts
from chaos.machines.windows_command_line import quote_argument

TOLERANCE = 1.0  # seconds, for rounding; the duration of the commands is measured by the host's uptime
_NOT_LOADED = 5  # exit code of systemctl
_UPTIME = HostCommand(("cat", "/proc/uptime"), sudo=False)


def failsafe_command(timer: FailsafeTimer, seconds: float) -> HostCommand:
    """The command that arms ``timer``. AccuracySec is set, as its default of 1 min once delayed a timer by 37 s."""
    return HostCommand(
        (
            "systemd-run",
            f"--on-active={seconds:.3f}s",
            "--timer-property=AccuracySec=100ms",
            "--collect",
            f"--unit={timer.unit}",
            "--",
            *timer.argv,
        )
    )


def arm(hosts: Hosts, node: str, timer: FailsafeTimer, left: float) -> float:
    """Arm ``timer``, at most ``left`` seconds ahead, and read it back; returns its seconds. Raises Aborted."""
    seconds = min(timer.seconds, left)
    if seconds <= 0:
        raise Aborted(f"{node}: failsafe timer {timer.unit} not armed: maxDuration leaves no time for it")
    if hosts.system_of(node) == "windows":
        return arm_task(hosts, node, timer, seconds)
    before = _read_uptime(hosts, node)
    _run(hosts, node, failsafe_command(timer, seconds))
    after = _read_uptime(hosts, node)
    elapse = _next_elapse(hosts, node, timer.unit)
    if elapse is None:
        raise Aborted(f"{node}: systemd does not report when the timer {timer.unit} elapses")
    if not before - TOLERANCE <= elapse - seconds <= after + TOLERANCE:
        raise Aborted(f"{node}: the timer {timer.unit} elapses in {elapse - after:.1f} s, not in {seconds:.1f} s")
    return seconds


def _read_uptime(hosts: Hosts, node: str) -> float:
    """Read the seconds since the host booted. Raises Aborted."""
    found = re.match(r"[\d.]+", _run(hosts, node, _UPTIME).stdout)
    if not found:
        raise Aborted(f"{node}: the uptime cannot be read")
    return float(found[0])


def disarm(hosts: Hosts, node: str, unit: str) -> str:
    """Stop the timer ``unit``. Returns "" if it is gone, otherwise why it may still exist."""
    if hosts.system_of(node) == "windows":
        return disarm_task(hosts, node, unit)
    stop = HostCommand(("systemctl", "stop", f"{unit}.timer"), accept=(0, _NOT_LOADED))
    outcome = hosts.send(node, stop)
    if not is_success(stop, outcome):
        return f"the timer {unit} was not stopped: {_failure_reason(outcome)}"
    return f"the timer {unit} is still there" if _next_elapse(hosts, node, unit) is not None else ""


def _next_elapse(hosts: Hosts, node: str, unit: str) -> float | None:
    """The timer's next elapse in seconds since boot; None if it is not active. Raises Aborted."""
    show = HostCommand(("systemctl", "show", "--property=NextElapseUSecMonotonic", f"{unit}.timer"), sudo=False)
    value = _run(hosts, node, show).stdout.strip().partition("=")[2]
    return parse_timespan(value)


def _run(hosts: Hosts, node: str, command: HostCommand) -> Outcome:
    outcome = hosts.send(node, command)
    if not is_success(command, outcome):
        raise Aborted(f"{node}: {command}: {_failure_reason(outcome)}")
    return outcome


def _failure_reason(outcome: Outcome) -> str:
    reason = outcome.error or outcome.stderr.strip() or outcome.stdout.strip()
    return reason or (f"exit code {outcome.exit}" if outcome.delivery is Delivery.ANSWERED else "connection lost")


_NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
_SYSTEM_SID = "S-1-5-18"
_SETTINGS = {
    "MultipleInstancesPolicy": "IgnoreNew",
    "DisallowStartIfOnBatteries": "false",
    "StopIfGoingOnBatteries": "false",
    "StartWhenAvailable": "true",
    "Enabled": "true",
}
_RUNNING, _LAST_RESULT = "267009", 6  # SCHED_S_TASK_RUNNING, and its column in a detailed listing
_RUN_READS = 10  # readings until a task runs that was started


def task_xml(timer: FailsafeTimer, start: datetime | None) -> str:
    """The Task Scheduler XML of ``timer``; ``start`` in UTC and whole seconds, None for no start time."""
    ElementTree.register_namespace("", _NAMESPACE)
    task = ElementTree.Element(_tag("Task"), {"version": "1.2"})
    triggers = _add(task, "Triggers")
    if start is not None:
        _add(_add(triggers, "TimeTrigger"), "StartBoundary", _format(start))
    _add(triggers, "BootTrigger")
    principal = _add(_add(task, "Principals"), "Principal")
    principal.set("id", "Author")
    _add(principal, "UserId", _SYSTEM_SID)
    _add(principal, "RunLevel", "HighestAvailable")
    settings = _add(task, "Settings")
    for name, value in (_SETTINGS | {"ExecutionTimeLimit": "PT1H" if start else "PT0S"}).items():
        _add(settings, name, value)
    actions = _add(task, "Actions")
    actions.set("Context", "Author")
    program = _add(actions, "Exec")
    _add(program, "Command", timer.argv[0])
    _add(program, "Arguments", _arguments(timer))
    return ElementTree.tostring(task, encoding="unicode")


def register_command(timer: FailsafeTimer, start: datetime | None) -> HostCommand:
    """The command that registers the task. It reads the XML from stdin, as schtasks.exe takes only a file."""
    return HostCommand(powershell("register-task", task=timer.unit), stdin=task_xml(timer, start))


def arm_task(hosts: Hosts, node: str, timer: FailsafeTimer, seconds: float) -> float:
    """Register the task to act after ``seconds``, rounded up, and read it back; returns its seconds. Raises Aborted."""
    return (
        _arm_by_uptime(hosts, node, timer, seconds) if timer.by_uptime else _arm_by_clock(hosts, node, timer, seconds)
    )


def _arm_by_clock(hosts: Hosts, node: str, timer: FailsafeTimer, seconds: float) -> float:
    """Register a task with a start time. Reads the host's clock before and after, to notice if it is set meanwhile."""
    before = _read_clock(hosts, node)
    start = datetime.fromtimestamp(ceil(before + seconds), UTC)
    _register(hosts, node, structs.replace(timer, argv=task_argv(timer)), start)
    after = _read_clock(hosts, node)
    if not before <= after < start.timestamp():
        left = start.timestamp() - after
        raise Aborted(f"{node}: the task {timer.unit} starts in {left:.1f} s by the host's clock, not in {seconds:.1f}")
    return start.timestamp() - before


def _arm_by_uptime(hosts: Hosts, node: str, timer: FailsafeTimer, seconds: float) -> float:
    """Start the task, and check that it is running: nothing else shows that it is waiting."""
    whole = float(ceil(seconds))
    _register(hosts, node, structs.replace(timer, argv=task_argv(timer, whole)), None)
    schtasks = system_program("schtasks")
    _run(hosts, node, HostCommand((schtasks, "/run", "/tn", timer.unit)))
    query = HostCommand((schtasks, "/query", "/tn", timer.unit, "/fo", "csv", "/v", "/nh"))
    for _ in range(_RUN_READS):
        rows = csv.reader(_run(hosts, node, query).stdout.splitlines())
        if any(row[_LAST_RESULT : _LAST_RESULT + 1] == [_RUNNING] for row in rows):
            return whole
    raise Aborted(f"{node}: the task {timer.unit} was started and does not run")


def task_argv(timer: FailsafeTimer, wait: float = 0.0) -> tuple[str, ...]:
    """The command of the task: the timer's program after ``wait`` seconds of uptime, then the deletion of the task.

    A program that failed is tried again at the next boot. The wait is in the script that ``schtasks /end`` ends.
    """
    program, *words = timer.argv
    arguments = [quote_argument(word) for word in words]
    return powershell("failsafe-run", wait=round(wait), program=program, arguments=arguments, task=timer.unit)


def _register(hosts: Hosts, node: str, timer: FailsafeTimer, start: datetime | None) -> None:
    """Register the task and read it back. Raises Aborted."""
    _run(hosts, node, register_command(timer, start))
    found = _read_task(hosts, node, timer.unit)
    expected = (_format(start) if start else "", timer.argv[0], _arguments(timer), _SYSTEM_SID)
    if found != expected:
        raise Aborted(f"{node}: the task {timer.unit} was registered as {found} instead of {expected}")


def disarm_task(hosts: Hosts, node: str, unit: str) -> str:
    """Delete the task ``unit``. Returns "" if Task Scheduler no longer lists it, otherwise why it may still exist.

    The task is ended first. If it were deleted while it waits, it would go on and undo a later run's fault.
    """
    schtasks = system_program("schtasks")
    ended = hosts.send(node, HostCommand((schtasks, "/end", "/tn", unit), accept=(0, 1)))  # 1: there is no such task
    if ended.delivery is not Delivery.ANSWERED:
        return f"the task {unit} was not ended: {_failure_reason(ended)}"
    outcome = hosts.send(node, HostCommand((schtasks, "/delete", "/tn", unit, "/f"), accept=(0, 1)))
    if outcome.delivery is not Delivery.ANSWERED:
        return f"the task {unit} was not deleted: {_failure_reason(outcome)}"
    try:
        is_left = unit in parse_task_names(_run(hosts, node, LIST_TASKS).stdout)
    except NodefallError as error:
        return f"the task {unit} may be left: {error.message}"
    return f"the task {unit} is still there: {_failure_reason(outcome)}" if is_left else ""


def _read_clock(hosts: Hosts, node: str) -> float:
    try:
        return float(hosts.read(node, "host-time"))
    except NodefallError as error:
        raise Aborted(f"{node}: failsafe timer not armed: {error.message}", hint=error.hint) from error


def _read_task(hosts: Hosts, node: str, unit: str) -> tuple[str, str, str, str]:
    """Read the start, program, arguments and user of a task. Raises Aborted."""
    text = _run(hosts, node, HostCommand((system_program("schtasks"), "/query", "/tn", unit, "/xml"))).stdout
    try:
        task = ElementTree.fromstring(text[text.index("<Task") :])  # noqa: S314 - of a host that obeys us
    except (ValueError, ElementTree.ParseError) as error:
        raise Aborted(f"{node}: the task {unit} cannot be read back: {error}") from error
    paths = (
        "Triggers/TimeTrigger/StartBoundary",
        "Actions/Exec/Command",
        "Actions/Exec/Arguments",
        "Principals/Principal/UserId",
    )
    start, program, arguments, user = (
        task.findtext("/".join(map(_tag, path.split("/"))), default="") for path in paths
    )
    return start, program, arguments, user


def _arguments(timer: FailsafeTimer) -> str:
    return " ".join(map(quote_argument, timer.argv[1:]))


def _format(start: datetime) -> str:
    return start.strftime("%Y-%m-%dT%H:%M:%SZ")


def _add(parent: ElementTree.Element, name: str, text: str | None = None) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, _tag(name))
    child.text = text
    return child


def _tag(name: str) -> str:
    return f"{{{_NAMESPACE}}}{name}"
