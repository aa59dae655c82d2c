"""A simulated machine as its sshd serves it, without a connection: the same shell and programs."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from chaos.lab.direct.tasks import Cancelled, SimWaits, Task
from chaos.lab.hostshell.process import HostSystem, Process, discard, no_input
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.shell import Shell, execute
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock

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
        """Forget what does not survive the end of all programs."""

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
