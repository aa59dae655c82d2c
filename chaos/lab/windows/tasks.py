"""Task scheduler of one Windows machine: tasks on disk, with time triggers and a trigger at boot.

Time triggers follow the machine's clock: one whose time a change of the clock skips fires at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from chaos.lab.sim.clock import SimClock, Timer
from chaos.lab.windows.clock import MachineClock

NEVER_RAN, RUNNING, TERMINATED = 267011, 267009, 267014
DEFAULT_LIMIT = 259_200.0  # seconds: PT72H
_BOOT_DELAY = 1.0  # invented: seconds from the start of the service to tasks with a boot trigger
Policy = Literal["IgnoreNew", "Parallel", "Queue", "StopExisting"]
Stop = Callable[[], None]


@dataclass(frozen=True, slots=True)
class TimeTrigger:
    """``start`` and ``end`` by the machine's clock, in epoch seconds; after ``end`` the trigger is off."""

    start: float
    end: float | None = None

    def is_over(self, now: float) -> bool:
        """Whether the trigger is off for ever."""
        return self.end is not None and now >= self.end


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """``boot_delay``: seconds after a boot, None without that trigger. ``limit``: ExecutionTimeLimit, 0 for none.

    ``source``: the XML that it was registered from, empty for none.
    """

    command: str
    arguments: str = ""
    user: str = "SYSTEM"
    triggers: tuple[TimeTrigger, ...] = ()
    boot_delay: float | None = None
    start_when_available: bool = False
    enabled: bool = True
    author: str = ""
    limit: float = DEFAULT_LIMIT
    policy: Policy = "IgnoreNew"
    source: str = ""

    @property
    def command_line(self) -> str:
        command = f'"{self.command}"' if " " in self.command and not self.command.startswith('"') else self.command
        return f"{command} {self.arguments}".rstrip()


@dataclass(slots=True, eq=False)
class Instance:
    """A running instance. ``stop`` ends its program."""

    stop: Stop
    timer: Timer | None = None


@dataclass(slots=True, eq=False)
class Task:
    """A registered task. ``last_result``: exit code, or NEVER_RAN, RUNNING or TERMINATED.

    ``done``: time triggers that have fired or were missed. ``last_run``: by the machine's clock.
    """

    name: str
    definition: TaskDefinition
    last_run: float | None = None
    last_result: int = NEVER_RAN
    done: set[TimeTrigger] = field(default_factory=set)
    timers: list[Timer] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    is_queued: bool = False

    def next_run(self, now: float) -> float | None:
        """Next time of a time trigger."""
        waiting = [item.start for item in self.definition.triggers if item.start > now and item not in self.done]
        return min(waiting, default=None)


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
        """Register a task in place of its namesake, whose running instances go on."""
        self.delete(name)
        task = self._tasks[_path(name).lower()] = Task(_path(name), definition)
        # a time that is over when the task is registered was not missed
        task.done.update(item for item in definition.triggers if item.start <= self._clock.now)
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
            definition, now = task.definition, self._clock.now
            missed = [item for item in definition.triggers if item.start <= now and item not in task.done]
            task.done.update(missed)
            if any(not item.is_over(now) for item in missed) and definition.start_when_available and definition.enabled:
                task.timers.append(self._sim.after(_BOOT_DELAY, self.run_now, task))
            if definition.boot_delay is not None and definition.enabled:
                task.timers.append(self._sim.after(_BOOT_DELAY + definition.boot_delay, self.run_now, task))
            self._plan(task)

    def lose_power(self) -> None:
        """Stop with the machine; tasks stay registered."""
        self._is_running = False
        for task in self._tasks.values():
            _cancel(task)
            task.is_queued = False
            self._stop(task, 0x40010004)  # DBG_TERMINATE_PROCESS

    def run_now(self, task: Task) -> None:
        """Start an instance now, as ``schtasks /run``, if the policy for several instances permits it."""
        if task.instances and task.definition.policy == "IgnoreNew":
            return
        if task.instances and task.definition.policy == "Queue":
            task.is_queued = True
            return
        if task.definition.policy == "StopExisting":
            self._stop(task, TERMINATED)
        task.last_run, task.last_result = self._clock.now, RUNNING
        if self.run is None:
            return
        instance = Instance(lambda: None)
        task.instances.append(instance)
        if task.definition.limit:
            instance.timer = self._sim.after(task.definition.limit, self.end, task)
        instance.stop = self.run(task.definition.command_line, partial(self._ended, task, instance))

    def end(self, task: Task) -> None:
        """End all instances, as ``schtasks /end`` and the time limit do."""
        self._stop(task, TERMINATED)

    def _stop(self, task: Task, result: int) -> None:
        instances, task.instances = task.instances, []
        for instance in instances:
            task.last_result = result
            if instance.timer is not None:
                instance.timer.cancel()
            instance.stop()

    def _ended(self, task: Task, instance: Instance, code: int) -> None:
        if instance not in task.instances:
            return
        task.instances.remove(instance)
        if instance.timer is not None:
            instance.timer.cancel()
        task.last_result = code
        if task.is_queued:
            task.is_queued = False
            self.run_now(task)

    def _on_clock_change(self) -> None:
        """Replace the waits, which are in simulated time, for the times of the machine's clock."""
        if self._is_running:
            for task in self._tasks.values():
                _cancel(task)
                self._plan(task)

    def _plan(self, task: Task) -> None:
        """Set the timers of the time triggers that have not fired; of one whose time is over it is due at once."""
        for item in task.definition.triggers if task.definition.enabled else ():
            if item not in task.done:
                task.timers.append(self._sim.after(max(item.start - self._clock.now, 0.0), self._on_time, task, item))

    def _on_time(self, task: Task, item: TimeTrigger) -> None:
        task.done.add(item)
        if not item.is_over(self._clock.now):
            self.run_now(task)


def _cancel(task: Task) -> None:
    for timer in task.timers:
        timer.cancel()
    task.timers.clear()


def _path(name: str) -> str:
    return name if name.startswith("\\") else f"\\{name}"
