"""Processes of a simulated Windows machine: machine, user, environment, standard streams; and programs by path."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from chaos.lab.sim.clock import SimClock
from chaos.lab.sim.waits import Waits
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.command_line import split_arguments, split_program

SYSTEM32 = "C:\\Windows\\System32\\"
TOOLS = "C:\\Tools\\"  # invented: where the machine's owner has put programs that Windows does not include
POWERSHELL = SYSTEM32 + "WindowsPowerShell\\v1.0\\"
NOT_FOUND = 9009  # of cmd.exe, inside its shell


class ProgramNotFoundError(LookupError):
    """No program has this name or path."""


class Environment:
    """Variables whose names ignore case and keep it."""

    def __init__(self, variables: Iterable[tuple[str, str]] = ()) -> None:
        self._variables = {name.lower(): (name, value) for name, value in variables}

    def get(self, name: str) -> str | None:
        found = self._variables.get(name.lower())
        return None if found is None else found[1]

    def set(self, name: str, value: str) -> None:
        """Set a variable; an empty value deletes it."""
        if value:
            self._variables[name.lower()] = (name, value)
        else:
            self._variables.pop(name.lower(), None)

    def items(self) -> list[tuple[str, str]]:
        """Name and value, by name."""
        return [self._variables[key] for key in sorted(self._variables)]

    def copy(self) -> Environment:
        return Environment(self._variables.values())


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
    again and again.
    """

    host: WinHost
    user: str
    out: Callable[[str], None]
    err: Callable[[str], None]
    read_line: Callable[[], Awaitable[str]]
    environment: Environment = field(default_factory=Environment)
    directory: str = "C:\\"
    is_foreground: bool = False

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

    def replace(
        self,
        *,
        out: Callable[[str], None] | None = None,
        err: Callable[[str], None] | None = None,
        read_line: Callable[[], Awaitable[str]] | None = None,
    ) -> WinProcess:
        """The same process with other streams."""
        return dataclasses.replace(
            self, out=out or self.out, err=err or self.err, read_line=read_line or self.read_line
        )

    def line(self, text: str = "") -> None:
        """Write a line to stdout."""
        self.out(text + "\r\n")

    def fail(self, message: str, code: int = 1) -> int:
        """Write a line to stderr, and return the exit code."""
        self.err(message + "\r\n")
        return code


Program = Callable[[WinProcess, str], Awaitable[int]]  # the text is the command line after the program's name


def with_arguments(program: Callable[[WinProcess, list[str]], Awaitable[int]]) -> Program:
    """A program that gets its arguments split by the rules of the C runtime, as all but cmd and PowerShell do."""

    async def run(process: WinProcess, rest: str) -> int:
        return await program(process, split_arguments(rest))

    return run


def default_environment(machine: WindowsMachine, user: str, *, profile: bool = True) -> Environment:
    """Variables of a remote shell, as the recordings have them; without a profile those of the default user."""
    home = f"C:\\Users\\{user}" if profile else "C:\\Users\\Default"
    temp = f"{home}\\AppData\\Local\\Temp" if profile else "C:\\Windows\\TEMP"
    own = [("APPDATA", f"{home}\\AppData\\Roaming"), ("LOCALAPPDATA", f"{home}\\AppData\\Local")] if profile else []
    return Environment(
        [
            *own,
            ("ALLUSERSPROFILE", "C:\\ProgramData"),
            ("CommonProgramFiles", "C:\\Program Files\\Common Files"),
            ("COMPUTERNAME", machine.computer),
            ("ComSpec", "C:\\Windows\\system32\\cmd.exe"),
            ("NUMBER_OF_PROCESSORS", "2"),
            ("OS", "Windows_NT"),
            ("Path", f"C:\\Windows\\system32;C:\\Windows;{SYSTEM32}Wbem;{POWERSHELL}"),
            ("PATHEXT", ".COM;.EXE;.BAT;.CMD;.VBS;.VBE;.JS;.JSE;.WSF;.WSH;.MSC"),
            ("PROCESSOR_ARCHITECTURE", "AMD64"),
            ("ProgramData", "C:\\ProgramData"),
            ("ProgramFiles", "C:\\Program Files"),
            ("PROMPT", "$P$G"),
            ("PUBLIC", "C:\\Users\\Public"),
            ("SystemDrive", "C:"),
            ("SystemRoot", "C:\\Windows"),
            ("TEMP", temp),
            ("TMP", temp),
            ("USERDOMAIN", machine.computer),
            ("USERNAME", user),
            ("USERPROFILE", home),
            ("windir", "C:\\Windows"),
        ]
    )


_HOMES = {"powershell": POWERSHELL, "notmyfault64": TOOLS}


def find_program(programs: Mapping[str, Program], path: str, *, by_name: bool) -> Program:
    """Program with this path, or also by its name where ``by_name``. Raises ProgramNotFoundError."""
    lower = path.lower().replace("/", "\\")
    directory, _, name = lower.rpartition("\\")
    stem = name.removesuffix(".exe")
    program = programs.get(stem)
    home = _HOMES.get(stem, SYSTEM32).lower().rstrip("\\")
    by_name = by_name and home != TOOLS.lower().rstrip("\\")  # which is not in Path
    if program is None or (directory and directory != home) or (not directory and not by_name):
        raise ProgramNotFoundError(path)
    if not by_name and not name.endswith(".exe"):
        raise ProgramNotFoundError(path)
    return program


async def launch(process: WinProcess, line: str, *, by_name: bool = True) -> int:
    """Run a command line. Raises ProgramNotFoundError."""
    name, rest = split_program(line)
    program = find_program(process.host.programs, name, by_name=by_name)
    return await program(process, rest)
