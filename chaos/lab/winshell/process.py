"""Processes of a simulated Windows machine: machine, user and standard streams; and programs by path."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from chaos.lab.sim.clock import SimClock
from chaos.lab.sim.lockstep import Waits
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.command_line import split_arguments, split_program

SYSTEM32 = "C:\\Windows\\System32\\"
TOOLS = "C:\\Tools\\"  # invented: where the machine's owner has put programs that Windows does not include
_HOMES = {"powershell": SYSTEM32 + "WindowsPowerShell\\v1.0\\", "notmyfault64": TOOLS}


class ProgramNotFoundError(LookupError):
    """No program has this name or path."""


@dataclass(frozen=True, slots=True)
class WinHost:
    """A machine as seen by its programs."""

    machine: WindowsMachine
    sim: SimClock
    waits: Waits
    programs: Mapping[str, Program]


@dataclass(frozen=True, slots=True)
class WinProcess:
    """``read_line`` returns the rest, or "", at the end of input. ``user``: with its domain.

    ``is_foreground``: its client waits for it alone, as over SSH or in the client's process; over WinRM the client asks
    again and again. ``connection``: SSH_CONNECTION in the environment, "" over WinRM.
    """

    host: WinHost
    user: str
    out: Callable[[str], None]
    err: Callable[[str], None]
    read_line: Callable[[], Awaitable[str]]
    is_foreground: bool = False
    connection: str = ""

    async def sleep(self, seconds: float) -> None:
        """Wait in simulated time. Only a foreground process lets time pass for its client, which waits for it."""
        host = self.host
        if self.is_foreground:
            await host.waits.wait_until(host.sim.now + seconds)
            return
        future = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not future.done():
                future.set_result(None)
                host.waits.hold_for_new_tasks()  # until this process runs

        timer = host.sim.after(seconds, wake)
        try:
            with host.waits.suspend_request():
                await future
        finally:
            timer.cancel()

    @property
    def machine(self) -> WindowsMachine:
        return self.host.machine

    def line(self, text: str = "") -> None:
        """Write a line to stdout."""
        self.out(text + "\r\n")

    def fail(self, message: str, code: int = 1) -> int:
        """Write a line to stderr, and return the exit code."""
        self.err(message + "\r\n")
        return code


Program = Callable[[WinProcess, list[str]], Awaitable[int]]  # with its arguments


def find_program(programs: Mapping[str, Program], path: str, *, by_name: bool) -> Program:
    """Program with this path, or also by its name where ``by_name``. Raises ProgramNotFoundError."""
    directory, _, name = path.lower().replace("/", "\\").rpartition("\\")
    stem = name.removesuffix(".exe")
    program = programs.get(stem)
    home = _HOMES.get(stem, SYSTEM32)
    by_name = by_name and home != TOOLS  # which is not in Path
    if program is None or (directory and f"{directory}\\" != home.lower()) or (not directory and not by_name):
        raise ProgramNotFoundError(path)
    if not by_name and not name.endswith(".exe"):
        raise ProgramNotFoundError(path)
    return program


async def launch(process: WinProcess, line: str, *, by_name: bool = True) -> int:
    """Run a command line. Raises ProgramNotFoundError."""
    name, rest = split_program(line)
    return await find_program(process.host.programs, name, by_name=by_name)(process, split_arguments(rest))


async def call(process: WinProcess, program: str, *arguments: str) -> tuple[int, str]:
    """Exit code and output of a program that a script starts; its errors are those of the script."""
    parts: list[str] = []
    found = find_program(process.host.programs, program, by_name=True)
    code = await found(dataclasses.replace(process, out=parts.append), list(arguments))
    return code, "".join(parts)
