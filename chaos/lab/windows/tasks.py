"""Task scheduler of one Windows machine: tasks on disk, with times and a trigger at boot.

Times follow the machine's clock: one that a change of the clock skips fires immediately.
Tasks as XML: parsed as Register-ScheduledTask does, formatted as ``schtasks /query /xml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from xml.etree import ElementTree

from chaos.lab.sim import SimClock, Timer
from chaos.lab.windows.disk import MachineClock

NEVER_RAN, RUNNING, TERMINATED = 267011, 267009, 267014
_POWER_LOST = 0x40010004  # DBG_TERMINATE_PROCESS
_BOOT_DELAY = 1.0  # invented: seconds from the start of the service to tasks with a boot trigger
Stop = Callable[[], None]


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """``starts``: by the machine's clock, in epoch seconds. ``limit``: ExecutionTimeLimit in seconds, 0 for none.

    ``source``: the XML that it was registered from. A running task is not started again (IgnoreNew).
    """

    command: str
    arguments: str
    user: str
    starts: tuple[float, ...]
    at_boot: bool
    start_when_available: bool
    limit: float
    source: str

    @property
    def command_line(self) -> str:
        command = f'"{self.command}"' if " " in self.command and not self.command.startswith('"') else self.command
        return f"{command} {self.arguments}".rstrip()


@dataclass(slots=True, eq=False)
class Task:
    """A registered task. ``last_result``: exit code, or NEVER_RAN, RUNNING or TERMINATED.

    ``done``: times that have fired or were missed. ``last_run``: by the machine's clock. ``stop`` ends the program that
    runs, ``limit`` is its time limit.
    """

    name: str
    definition: TaskDefinition
    last_run: float | None = None
    last_result: int = NEVER_RAN
    done: set[float] = field(default_factory=set)
    timers: list[Timer] = field(default_factory=list)
    stop: Stop | None = None
    limit: Timer | None = None

    def next_run(self, now: float) -> float | None:
        """The next time."""
        return min((start for start in self.definition.starts if start > now and start not in self.done), default=None)


class TaskScheduler:
    """Tasks by path, which ignores case.

    ``run`` starts a command line, calls back with its exit code, and returns what ends the program.
    """

    def __init__(self, sim: SimClock, clock: MachineClock) -> None:
        self._sim, self._clock = sim, clock
        self._tasks: dict[str, Task] = {}
        self._is_running = False
        self.run: Callable[[str, Callable[[int], None]], Stop] | None = None
        clock.on_change.append(lambda *_: self._on_clock_change())

    def register(self, name: str, definition: TaskDefinition) -> Task:
        """Register a task in place of its namesake, whose program continues."""
        self.delete(name)
        task = self._tasks[_path(name).lower()] = Task(_path(name), definition)
        # a time that is over when the task is registered was not missed
        task.done.update(start for start in definition.starts if start <= self._clock.now)
        if self._is_running:
            self._plan(task)
        return task

    def get(self, name: str) -> Task | None:
        return self._tasks.get(_path(name).lower())

    def all(self) -> list[Task]:
        return list(self._tasks.values())

    def delete(self, name: str) -> None:
        """Delete a task; its program continues."""
        task = self._tasks.pop(_path(name).lower(), None)
        if task is not None:
            _cancel(task)

    def start(self) -> None:
        """Start with the machine: missed times run now where StartWhenAvailable is set, and boot triggers fire."""
        self._is_running = True
        for task in self._tasks.values():
            missed = [start for start in task.definition.starts if start <= self._clock.now and start not in task.done]
            task.done.update(missed)
            if missed and task.definition.start_when_available:
                task.timers.append(self._sim.after(_BOOT_DELAY, self.run_now, task))
            if task.definition.at_boot:
                task.timers.append(self._sim.after(_BOOT_DELAY, self.run_now, task))
            self._plan(task)

    def lose_power(self) -> None:
        """Stop with the machine; tasks stay registered."""
        self._is_running = False
        for task in self._tasks.values():
            _cancel(task)
            self._stop(task, _POWER_LOST)

    def run_now(self, task: Task) -> None:
        """Start its program now, as ``schtasks /run``, unless it runs."""
        if task.stop is not None:
            return
        task.last_run, task.last_result = self._clock.now, RUNNING
        if self.run is None:
            return
        task.stop = lambda: None  # of a program that has ended before it can be stopped
        if task.definition.limit:
            task.limit = self._sim.after(task.definition.limit, self.end, task)
        stop = self.run(task.definition.command_line, lambda code: self._ended(task, code))
        if task.stop is not None:
            task.stop = stop

    def end(self, task: Task) -> None:
        """End its program, as ``schtasks /end`` and the time limit do."""
        self._stop(task, TERMINATED)

    def _stop(self, task: Task, result: int) -> None:
        stop = task.stop
        if stop is not None:
            self._ended(task, result)
            stop()

    def _ended(self, task: Task, code: int) -> None:
        if task.stop is not None:
            task.stop, task.last_result = None, code
            if task.limit is not None:
                task.limit.cancel()
                task.limit = None

    def _on_clock_change(self) -> None:
        """Replace the waits, which are in simulated time, for the times of the machine's clock."""
        if self._is_running:
            for task in self._tasks.values():
                _cancel(task)
                self._plan(task)

    def _plan(self, task: Task) -> None:
        """Set the timers of the times that have not fired; one that is over is due immediately."""
        for start in task.definition.starts:
            if start not in task.done:
                task.timers.append(self._sim.after(max(start - self._clock.now, 0.0), self._on_time, task, start))

    def _on_time(self, task: Task, start: float) -> None:
        task.done.add(start)
        self.run_now(task)


def _cancel(task: Task) -> None:
    for timer in task.timers:
        timer.cancel()
    task.timers.clear()


def _path(name: str) -> str:
    return name if name.startswith("\\") else f"\\{name}"


NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
_N = {"t": NAMESPACE}
_SPAN = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_SYSTEM_SID = "S-1-5-18"
_DEFAULT_LIMIT = "PT72H"
# Every element that the lab simulates, or that has no effect on a simulated machine.
_KNOWN = {
    *("RegistrationInfo", "URI", "Triggers", "TimeTrigger", "StartBoundary", "BootTrigger"),
    *("Principals", "Principal", "UserId", "RunLevel", "Actions", "Exec", "Command", "Arguments"),
    *("Settings", "DisallowStartIfOnBatteries", "StopIfGoingOnBatteries", "StartWhenAvailable", "ExecutionTimeLimit"),
    *("MultipleInstancesPolicy", "Enabled"),
}
_FIXED = {"MultipleInstancesPolicy": "IgnoreNew", "Enabled": "true", "UserId": _SYSTEM_SID}


class TaskXmlError(ValueError):
    """The XML is not a task, or needs what the lab does not simulate."""


def parse_task_xml(text: str) -> TaskDefinition:
    """Parse the XML of a task. Raises TaskXmlError."""
    root = _root(text)
    for item in list(root.iter())[1:]:
        name = item.tag.removeprefix(f"{{{NAMESPACE}}}")
        if name not in _KNOWN or (item.text or "") != _FIXED.get(name, item.text or ""):
            raise TaskXmlError(f"{name}: the lab does not simulate it")
    command = root.findtext("t:Actions/t:Exec/t:Command", "", _N)
    if not command:
        raise TaskXmlError("Actions")
    return TaskDefinition(
        command,
        root.findtext("t:Actions/t:Exec/t:Arguments", "", _N),
        "SYSTEM",
        tuple(_time(item.text or "") for item in root.iterfind("t:Triggers/t:TimeTrigger/t:StartBoundary", _N)),
        root.find("t:Triggers/t:BootTrigger", _N) is not None,
        root.findtext("t:Settings/t:StartWhenAvailable", "false", _N) == "true",
        parse_span(root.findtext("t:Settings/t:ExecutionTimeLimit", _DEFAULT_LIMIT, _N)),
        text,
    )


def _root(text: str) -> ElementTree.Element:
    """Raises TaskXmlError."""
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))  # noqa: S314 - the lab's own user wrote it
    except ElementTree.ParseError as error:
        raise TaskXmlError(str(error)) from error
    if root.tag != f"{{{NAMESPACE}}}Task":
        raise TaskXmlError(f"(1,1):{root.tag}:")
    return root


def _time(text: str) -> float:
    """An ISO time; local time is UTC here. Raises TaskXmlError."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise TaskXmlError(f"StartBoundary:{text}") from error
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def parse_span(text: str) -> float:
    """Parse an XML duration in days, hours, minutes, seconds; in seconds. Raises TaskXmlError."""
    match = _SPAN.fullmatch(text)
    if not match or not any(match.groups()):
        raise TaskXmlError(f"Duration:{text}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def format_task_xml(task: Task) -> str:
    """What was registered, with the task's URI."""
    ElementTree.register_namespace("", NAMESPACE)
    root = _root(task.definition.source)
    info = ElementTree.Element(f"{{{NAMESPACE}}}RegistrationInfo")
    ElementTree.SubElement(info, f"{{{NAMESPACE}}}URI").text = task.name
    root.insert(0, info)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-16"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
