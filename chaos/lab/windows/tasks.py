"""Task scheduler of one Windows machine: tasks on disk, with time triggers and a trigger at boot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from xml.etree import ElementTree

from chaos.lab.sim.clock import SimClock, Timer

NEVER_RAN, RUNNING = 267011, 267009
NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
_BOOT_DELAY = 1.0  # invented: seconds from the start of the service to tasks with a boot trigger
_SPAN = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


class TaskXmlError(ValueError):
    """The XML is not a task, or needs what the lab does not simulate."""


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """``times``: start boundaries in epoch seconds; ``boot_delay``: seconds after a boot, None without that trigger."""

    command: str
    arguments: str = ""
    user: str = "SYSTEM"
    times: tuple[float, ...] = ()
    boot_delay: float | None = None
    start_when_available: bool = False
    enabled: bool = True
    author: str = ""

    @property
    def command_line(self) -> str:
        command = f'"{self.command}"' if " " in self.command and not self.command.startswith('"') else self.command
        return f"{command} {self.arguments}".rstrip()


@dataclass(slots=True, eq=False)
class Task:
    """A registered task. ``last_result``: exit code, or NEVER_RAN or RUNNING. ``done``: times that are over."""

    name: str
    definition: TaskDefinition
    last_run: float | None = None
    last_result: int = NEVER_RAN
    done: set[float] = field(default_factory=set)
    timers: list[Timer] = field(default_factory=list)

    def next_run(self, now: float) -> float | None:
        """Next time of a time trigger."""
        return min((t for t in self.definition.times if t > now and t not in self.done), default=None)


class TaskScheduler:
    """Tasks by path, which ignores case. ``run`` starts a command line and calls back with its exit code."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self._tasks: dict[str, Task] = {}
        self._is_running = False
        self.run: Callable[[str, Callable[[int], None]], None] | None = None

    def register(self, name: str, definition: TaskDefinition) -> Task:
        """Register a task in place of its namesake."""
        self.delete(name)
        task = self._tasks[_path(name).lower()] = Task(_path(name), definition)
        if self._is_running:
            self._plan(task)
        return task

    def get(self, name: str) -> Task | None:
        return self._tasks.get(_path(name).lower())

    def all(self) -> list[Task]:
        return list(self._tasks.values())

    def delete(self, name: str) -> bool:
        """Delete a task; whether it existed. A running instance goes on."""
        task = self._tasks.pop(_path(name).lower(), None)
        if task is not None:
            _cancel(task)
        return task is not None

    def change(self, task: Task, *, enabled: bool) -> None:
        """Enable or disable a task."""
        task.definition = replace(task.definition, enabled=enabled)
        _cancel(task)
        if self._is_running:
            self._plan(task)

    def start(self) -> None:
        """Start with the machine: missed times run now where StartWhenAvailable is set, and boot triggers fire."""
        self._is_running = True
        for task in self._tasks.values():
            missed = [t for t in task.definition.times if t <= self._sim.now and t not in task.done]
            task.done.update(missed)
            if missed and task.definition.start_when_available and task.definition.enabled:
                task.timers.append(self._sim.after(_BOOT_DELAY, self.run_now, task))
            if task.definition.boot_delay is not None and task.definition.enabled:
                delay = _BOOT_DELAY + task.definition.boot_delay
                task.timers.append(self._sim.after(delay, self.run_now, task))
            self._plan(task)

    def lose_power(self) -> None:
        """Stop with the machine; tasks stay registered."""
        self._is_running = False
        for task in self._tasks.values():
            _cancel(task)
            if task.last_result == RUNNING:
                task.last_result = 0x40010004  # DBG_TERMINATE_PROCESS

    def run_now(self, task: Task) -> None:
        """Start an instance now, as ``schtasks /run``."""
        task.last_run, task.last_result = self._sim.now, RUNNING
        if self.run is not None:
            self.run(task.definition.command_line, partial(self._ended, task))

    def _ended(self, task: Task, code: int) -> None:
        task.last_result = code

    def _plan(self, task: Task) -> None:
        """Set the timers of the time triggers that are still to come."""
        if task.definition.enabled:
            for t in task.definition.times:
                if t > self._sim.now and t not in task.done:
                    task.timers.append(self._sim.at(t, self._on_time, task, t))

    def _on_time(self, task: Task, t: float) -> None:
        task.done.add(t)
        self.run_now(task)


def _cancel(task: Task) -> None:
    for timer in task.timers:
        timer.cancel()
    task.timers.clear()


def _path(name: str) -> str:
    return name if name.startswith("\\") else f"\\{name}"


def parse_task_xml(text: str) -> TaskDefinition:
    """Parse the XML of a task. Raises TaskXmlError."""
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text.lstrip("\ufeff")))  # noqa: S314 - the lab's own user wrote it
    except ElementTree.ParseError as error:
        raise TaskXmlError(str(error)) from error
    if root.tag != f"{{{NAMESPACE}}}Task":
        raise TaskXmlError(f"(1,1):{root.tag}:")
    names = {"t": NAMESPACE}
    command = root.findtext("t:Actions/t:Exec/t:Command", "", names)
    if not command:
        raise TaskXmlError("Actions")
    boots = root.findall("t:Triggers/t:BootTrigger", names)
    delay = boots[0].findtext("t:Delay", "PT0S", names) if boots else None
    return TaskDefinition(
        command,
        root.findtext("t:Actions/t:Exec/t:Arguments", "", names),
        root.findtext("t:Principals/t:Principal/t:UserId", "SYSTEM", names),
        tuple(parse_local_time(item.text or "") for item in root.findall(".//t:TimeTrigger/t:StartBoundary", names)),
        None if delay is None else parse_span(delay),
        root.findtext("t:Settings/t:StartWhenAvailable", "false", names) == "true",
        root.findtext("t:Settings/t:Enabled", "true", names) == "true",
        root.findtext("t:RegistrationInfo/t:Author", "", names),
    )


def parse_local_time(text: str) -> float:
    """Parse an ISO time; local time is UTC here. Raises TaskXmlError."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise TaskXmlError(f"StartBoundary:{text}") from error
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def parse_span(text: str) -> float:
    """Parse an XML duration in days, hours, minutes, seconds; in seconds. Raises TaskXmlError."""
    match = _SPAN.fullmatch(text)
    if not match or not any(match.groups()):
        raise TaskXmlError(f"Delay:{text}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def format_task_xml(task: Task) -> str:
    """Format a task as ``schtasks /query /xml`` does: the elements that the lab knows."""
    root = ElementTree.Element("Task", {"version": "1.2", "xmlns": NAMESPACE})
    info = ElementTree.SubElement(root, "RegistrationInfo")
    definition = task.definition
    if definition.author:
        ElementTree.SubElement(info, "Author").text = definition.author
    ElementTree.SubElement(info, "URI").text = task.name
    principal = ElementTree.SubElement(ElementTree.SubElement(root, "Principals"), "Principal", {"id": "Author"})
    ElementTree.SubElement(principal, "UserId").text = definition.user
    settings = ElementTree.SubElement(root, "Settings")
    ElementTree.SubElement(settings, "Enabled").text = str(definition.enabled).lower()
    ElementTree.SubElement(settings, "StartWhenAvailable").text = str(definition.start_when_available).lower()
    triggers = ElementTree.SubElement(root, "Triggers")
    for t in definition.times:
        boundary = ElementTree.SubElement(ElementTree.SubElement(triggers, "TimeTrigger"), "StartBoundary")
        boundary.text = datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    if definition.boot_delay is not None:
        boot = ElementTree.SubElement(triggers, "BootTrigger")
        if definition.boot_delay:
            ElementTree.SubElement(boot, "Delay").text = f"PT{definition.boot_delay:g}S"
    execution = ElementTree.SubElement(ElementTree.SubElement(root, "Actions", {"Context": "Author"}), "Exec")
    ElementTree.SubElement(execution, "Command").text = definition.command
    if definition.arguments:
        ElementTree.SubElement(execution, "Arguments").text = definition.arguments
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-16"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
