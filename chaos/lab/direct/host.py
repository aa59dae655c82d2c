"""A simulated machine as its sshd serves it, without a connection: the same shell and programs.

Its programs are coroutines that the simulated clock alone drives; everything happens in one thread.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, Generic, TypeVar, cast

from chaos.lab.hostshell.process import HostSystem, Process, discard, no_input
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.shell import Shell, execute
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock

T = TypeVar("T")
_Resume = Callable[[], object]
Suspend = Callable[[_Resume], Callable[[], object]]  # registers what resumes a task; returns what takes that back


class Cancelled(BaseException):
    """The task was cancelled: its machine is off, or its client has gone."""


class Task(Generic[T]):
    """A coroutine that runs at once as far as it can, and later whenever what it waits for has come."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], object]] = []
        self._forget: Callable[[], object] | None = None  # takes back what would resume it
        self._is_cancelled = False
        self.done = False
        self._advance(None)

    def result(self) -> T:
        """The result of a task that is done. Raises what ended it, Cancelled among it."""
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def cancel(self) -> None:
        """End the task where it waits, or as soon as it waits. Has no effect on a finished task."""
        self._is_cancelled = True
        if not self.done and self._forget is not None:
            self._forget()
            self._advance(Cancelled())

    def add_done_callback(self, call: Callable[[Any], object], /) -> None:
        """Call ``call`` with the task when it is done, now if it is."""
        if self.done:
            call(self)
        else:
            self._callbacks.append(call)

    def __await__(self) -> Generator[Suspend, None, T]:
        if not self.done:
            yield self._suspend_for
        return self.result()

    def _suspend_for(self, resume: _Resume) -> Callable[[], object]:
        def call(_: Any) -> None:
            resume()

        self._callbacks.append(call)
        return lambda: self._callbacks.remove(call)

    def _advance(self, error: Cancelled | None = None) -> None:
        self._forget = None
        try:
            suspend = self._coroutine.throw(error) if error else self._coroutine.send(None)
            while self._is_cancelled:
                suspend = self._coroutine.throw(Cancelled())
        except StopIteration as end:
            self._value = end.value
        except (Exception, Cancelled) as failure:  # noqa: BLE001 - raised by result()
            self._error = failure
        else:
            self._forget = suspend(self._advance)
            return
        self.done = True
        for call in self._callbacks:
            call(self)


class _Until:
    """Waits for a simulated time."""

    def __init__(self, sim: SimClock, until: float) -> None:
        self._sim, self._until = sim, until

    def __await__(self) -> Generator[Suspend, None, None]:
        yield lambda resume: self._sim.at(self._until, resume).cancel


class SimWaits:
    """Implements ``chaos.lab.sim.lockstep.Waits``: time moves only while nothing else can happen; nothing stops it."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self._nothing: nullcontext[None] = nullcontext()

    def request(self) -> nullcontext[None]:
        return self._nothing

    def subrequest(self) -> nullcontext[None]:
        return self._nothing

    def suspend_request(self) -> nullcontext[None]:
        return self._nothing

    def hold_for_new_tasks(self) -> None:
        """No-op: a task runs as far as it can when it is created."""

    async def wait_until(self, until: float, *, background: bool = False) -> None:  # noqa: ARG002 - of the port
        if until > self._sim.now:
            await _Until(self._sim, until)

    def on_sent(self) -> None:
        """No-op: who listens to the store has heard it."""


_ENVIRONMENT = {"SSH_CONNECTION": "127.0.0.1 40000 127.0.0.1 22"}  # the client is on loopback, as of a lab's process


class DirectProgram:
    """A program that a client runs. ``is_lost``: the machine went down before the program's end was reported."""

    def __init__(self, make: Callable[[DirectProgram], Coroutine[Any, Any, int]], began: float) -> None:
        self.began = began
        self.is_lost = False
        self._out: list[str] = []
        self._err: list[str] = []
        self.task: Task[int] = Task(make(self))

    @property
    def stdout(self) -> str:
        return "".join(self._out)

    @property
    def stderr(self) -> str:
        return "".join(self._err)

    def write_out(self, text: str) -> None:
        self._out.append(text)

    def write_err(self, text: str) -> None:
        self._err.append(text)


class DirectHost:
    """``host_key``: as an SSH client shows it. ``boot``: number of times the machine became unreachable."""

    def __init__(self, machine: Machine, sim: SimClock, user: str, seed: int) -> None:
        self.machine, self.user, self.boot = machine, user, 0
        self._seed = seed
        self._sim = sim
        self._tasks: set[Task[int]] = set()
        self._programs: list[DirectProgram] = []
        self._was_reachable = machine.is_reachable
        machine.on_change.append(self._on_machine_change)

    @property
    def host_key(self) -> str:
        digest = hashlib.sha256(f"host key of {self._seed}/{self.machine.host_key_owner}".encode()).digest()
        return f"ssh-ed25519 SHA256:{b64encode(digest).decode().rstrip('=')}"

    @property
    def is_reachable(self) -> bool:
        return self.machine.is_reachable

    def run(self, line: str, stdin: str) -> DirectProgram:
        """Run ``line`` in the login shell of a machine that is reachable."""
        return self.start(lambda program: self._execute(program, line, stdin))

    def start(self, make: Callable[[DirectProgram], Coroutine[Any, Any, int]]) -> DirectProgram:
        """Start a program, which ends with its machine."""
        boot = self.boot
        program = DirectProgram(make, self._sim.now)
        if self.boot != boot:  # the program itself took the machine down
            program.is_lost = True
            program.task.cancel()
        elif not program.task.done:
            self._programs.append(program)
            program.task.add_done_callback(lambda _: self._programs.remove(program))
            self._track(program.task)
        return program

    async def _execute(self, program: DirectProgram, line: str, stdin: str) -> int:
        """The exit code of ``line`` in the login shell."""
        raise NotImplementedError

    def _on_machine_change(self, machine: Machine) -> None:
        if self._was_reachable and not machine.is_reachable:
            self.boot += 1
            for program in self._programs:
                program.is_lost = True
            for task in list(self._tasks):
                task.cancel()
            self._lose_power()
        self._was_reachable = machine.is_reachable

    def _lose_power(self) -> None:
        """Drop the state that does not survive the end of all programs."""

    def _track(self, task: Task[int]) -> Task[int]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def line_reader(stdin: str) -> Callable[[], Awaitable[str]]:
    """Returns the next line of ``stdin``, or "" at its end."""
    lines = iter(stdin.splitlines(keepends=True))

    async def read_line() -> str:
        return next(lines, "")

    return read_line


class LinuxHost(DirectHost):
    """Programs run in bash, timers as root."""

    def __init__(self, machine: Machine, sim: SimClock, user: str, seed: int) -> None:
        super().__init__(machine, sim, user, seed)
        self.system = HostSystem(
            machine,
            sim,
            SimWaits(sim),
            self._run_as_root,
            PROGRAMS,
            start_job=lambda program: self._track(Task(program)),
        )

    async def _execute(self, program: DirectProgram, line: str, stdin: str) -> int:
        process = Process(
            self.system, self.user, program.write_out, program.write_err, line_reader(stdin), dict(_ENVIRONMENT)
        )
        return await Shell(process, ["bash"], bash=True).run(line)

    def _lose_power(self) -> None:
        self.system.lose_power()

    def _run_as_root(self, argv: list[str]) -> None:
        """Run the command of a timer now."""
        process = Process(self.system, "root", discard, discard, no_input)
        self._sim.after(0.0, partial(self._start, process, argv))

    def _start(self, process: Process, argv: list[str]) -> None:
        self._track(Task(execute(process, argv, "systemd"))).add_done_callback(_raise_failure)


def _raise_failure(task: Task[int]) -> None:
    """Raise what a program without a client ended with, unless its machine went down."""
    with suppress(Cancelled):
        task.result()
