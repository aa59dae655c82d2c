"""Command lines by the rules of the Microsoft C runtime (CommandLineToArgvW).

Processes of a simulated Windows machine: machine, user and standard streams; and programs by path.
Lines that sshd and WinRM pass to cmd.exe: a program with its arguments, and nothing else.
No shell is simulated: operators, variables and built-in commands are refused.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from chaos.lab.sim import SimClock
from chaos.lab.sim.lockstep import Waits
from chaos.lab.windows.machine import WindowsMachine


def split_program(line: str) -> tuple[str, str]:
    """The program's name and the rest of the line. A quoted name ends at the next quote, without escapes."""
    line = line.lstrip(" \t")
    if line.startswith('"'):
        name, _, rest = line[1:].partition('"')
        return name, rest.lstrip(" \t")
    for index, character in enumerate(line):
        if character in " \t":
            return line[:index], line[index:].lstrip(" \t")
    return line, ""


def split_arguments(text: str) -> list[str]:
    """Arguments of a program. 2n backslashes before a quote are n, 2n+1 are n and a literal quote."""
    arguments: list[str] = []
    position, length = 0, len(text)
    while True:
        while position < length and text[position] in " \t":
            position += 1
        if position >= length:
            return arguments
        argument, position = _next_argument(text, position)
        arguments.append(argument)


def _next_argument(text: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    quoted = False
    while position < len(text) and (quoted or text[position] not in " \t"):
        slashes = 0
        while position < len(text) and text[position] == "\\":
            slashes += 1
            position += 1
        if position < len(text) and text[position] == '"':
            parts.append("\\" * (slashes // 2))
            if slashes % 2:
                parts.append('"')
            elif quoted and text[position + 1 : position + 2] == '"':
                parts.append('"')  # two quotes inside quotes are one
                position += 1
            else:
                quoted = not quoted
            position += 1
            continue
        parts.append("\\" * slashes)
        if position < len(text) and (quoted or text[position] not in " \t"):
            parts.append(text[position])
            position += 1
    return "".join(parts), position


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


class _OperatorError(ValueError):
    """What only cmd.exe would understand."""


async def run_line(process: WinProcess, line: str) -> int:
    """Run a line as cmd.exe does, which first takes the carets out of it."""
    try:
        return await launch(process, _without_carets(line))
    except _OperatorError as error:
        return process.fail(f"The lab has no cmd.exe: {error} is not simulated.")
    except ProgramNotFoundError as error:
        process.err(f"'{error}' is not recognized as an internal or external command,\r\n")
        return process.fail("operable program or batch file.")


def _without_carets(line: str) -> str:
    """A caret takes the meaning of the next character, unless it is quoted. Raises _OperatorError."""
    found, is_quoted, characters = "", False, iter(line)
    for character in characters:
        if character == "^" and not is_quoted:
            found += next(characters, "")
            continue
        if character in "&|<>%" and (not is_quoted or character == "%"):
            raise _OperatorError(character)
        is_quoted ^= character == '"'
        found += character
    return found


SYSTEM = r"NT AUTHORITY\SYSTEM"


FILE_NOT_FOUND = 0x80070002
