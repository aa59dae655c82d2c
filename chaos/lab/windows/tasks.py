"""Task scheduler of one Windows machine: tasks on disk, with times and a trigger at boot.

Times follow the machine's clock: one that a change of the clock skips fires at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.lab.sim.clock import SimClock, Timer
from chaos.lab.windows.clock import MachineClock

NEVER_RAN, RUNNING, TERMINATED = 267011, 267009, 267014
_POWER_LOST = 0x40010004  # DBG_TERMINATE_PROCESS
_BOOT_DELAY = 1.0  # invented: seconds from the start of the service to tasks with a boot trigger
Stop = Callable[[], None]


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """``starts``: by the machine's clock, in epoch seconds. ``limit``: ExecutionTimeLimit in seconds, 0 for none.

    ``source``: the XML that it was registered from. A task that runs is not started again (IgnoreNew).
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
        """Register a task in place of its namesake, whose program goes on."""
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
        """Delete a task; its program goes on."""
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
        """Set the timers of the times that have not fired; one that is over is due at once."""
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
