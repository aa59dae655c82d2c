"""Processes of a simulated host: host system, user, standard streams.

Streams that lead nowhere: of programs without a client, and of redirections.

Syntax of the simulated hosts' shell: lists of commands, ``while``, subshells, and what is rejected.

Options as of the systemd tools: at any position, values after ``=`` or as the next word.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.hostshell.packet_filter import Chains
from chaos.lab.hostshell.traffic import Traffic
from chaos.lab.node.kubelet.process import Resource
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock, Timer
from chaos.lab.sim.lockstep import Job, Waits


def _start_task(program: Coroutine[Any, Any, int]) -> Job:
    return asyncio.get_running_loop().create_task(program)


@dataclass(slots=True)
class TransientTimer:
    """A transient timer of systemd-run."""

    name: str  # without the suffix .timer
    description: str
    next_elapse: float
    timer: Timer


@dataclass(frozen=True, slots=True)
class TransientService:
    """A running unit of systemd-run, and the resource that it exhausts."""

    resource: Resource
    timer: Timer | None  # for RuntimeMaxSec
    since: float = 0.0
    cpus: float = 0.0  # that it keeps busy


@dataclass(frozen=True, slots=True)
class NftTable:
    """Chains of one table by direction, and the text that defined them."""

    chains: Chains = ()
    text: str = ""


@dataclass
class HostSystem:
    """A machine as seen by its programs.

    ``run_as_root`` starts a command in the background, ``start_job`` a program of a shell.
    """

    machine: Machine
    sim: SimClock
    lockstep: Waits
    run_as_root: Callable[[list[str]], None]
    programs: Mapping[str, Program]  # by name
    timers: dict[str, TransientTimer] = field(default_factory=dict)
    services: dict[str, TransientService] = field(default_factory=dict)
    tables: dict[str, NftTable] = field(default_factory=dict)
    caught_packets: int = 0  # lookups and pings that the tables have dropped or rejected
    traffic: Traffic = field(default_factory=Traffic)
    parameters: dict[str, str] = field(default_factory=dict)  # of the kernel, where they were changed
    stopped: set[str] = field(default_factory=set)  # ordinary services that were stopped
    run_files: dict[str, str] = field(default_factory=dict)  # in /run
    mount_options: dict[str, str] = field(default_factory=dict)  # by mount point, where they were changed
    disk_properties: dict[str, str] = field(default_factory=dict)  # of kubepods.slice, as systemd has loaded them
    ended_fillers: list[float] = field(default_factory=list)  # CPU seconds of those since the boot that have ended
    start_job: Callable[[Coroutine[Any, Any, int]], Job] = _start_task

    @property
    def uptime(self) -> float:
        return self.sim.now - self.machine.pid1_start

    def lose_power(self) -> None:
        """Drop everything in memory and /run."""
        for transient in self.timers.values():
            transient.timer.cancel()
        self.timers.clear()
        for service in self.services.values():
            if service.timer is not None:
                service.timer.cancel()
            # also for disk: the filler's file is unlinked, so the kernel frees it with the process
            self.machine.pressure.discard(service.resource)
        self.services.clear()
        self.tables.clear()
        self.caught_packets = 0
        self.traffic = Traffic()
        self.parameters.clear()
        self.stopped.clear()
        self.run_files.clear()
        self.mount_options.clear()
        self.disk_properties.clear()
        self.ended_fillers.clear()


@dataclass(frozen=True, slots=True)
class Process:
    """A process; ``read_line`` returns the rest, or "", at the end of input."""

    host: HostSystem
    user: str
    out: Callable[[str], None]
    err: Callable[[str], None]
    read_line: Callable[[], Awaitable[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    slice: str = ""  # of systemd, where it matters

    @property
    def is_root(self) -> bool:
        return self.user == "root"

    def replace(self, **changes: Any) -> Process:
        return dataclasses.replace(self, **changes)

    def fail(self, message: str, code: int = 1) -> int:
        """Write a line to stderr, and return the exit code."""
        self.err(message + "\n")
        return code


Program = Callable[[Process, list[str]], Awaitable[int]]


def discard(_: str) -> None:
    """Take output, and forget it."""


async def no_input() -> str:
    """A line of an empty stdin: "" is its end."""
    return ""


_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\\\n|(?<![^\s;&|])\#[^\n]*)
    |(?P<redirect>[012]?(?:>>?|<)[ \t]*(?:/dev/null|/proc/sysrq-trigger|&[12])|>>[ \t]*"\$\d(?:\.\w+)?")
    |(?P<operator>&&|\|\||[;&\n])
    |(?P<word>(?:\$\([^()]*\)|'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;&|()<>'"\\`])+)""",
    re.VERBOSE | re.DOTALL,
)
_SUBSHELL = re.compile(r"\(([^()]*)\)(?=\s*(?:[;&|\n]|\Z))")
_LOOP = re.compile(r"while\s+(.*?);\s*do\s+(.*?);\s*done(?=[\s;&|]|\Z)", re.DOTALL)
_RESERVED = frozenset(
    ["if", "then", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "{", "}", "!"]
)


class ShellSyntaxError(ValueError):
    """The script is invalid, or needs a feature that is not simulated."""


@dataclass(slots=True)
class SimpleCommand:
    """One command, with the operator before it; ``words`` are still quoted.

    ``loop``: condition and body of while. ``subshell``: the commands in parentheses.
    """

    operator: str
    words: list[str] = field(default_factory=list)
    redirects: list[str] = field(default_factory=list)
    background: bool = False
    loop: tuple[list[SimpleCommand], list[SimpleCommand]] | None = None
    subshell: list[SimpleCommand] | None = None

    @property
    def is_compound(self) -> bool:
        return self.loop is not None or self.subshell is not None


def parse(script: str) -> list[SimpleCommand]:
    """Parse the commands of a script. Raises ShellSyntaxError."""
    commands: list[SimpleCommand] = []
    current, position = SimpleCommand(";"), 0
    while position < len(script):
        if not current.words and (loop := _LOOP.match(script, position)):
            position, current.words, current.loop = loop.end(), ["while"], (_parse_list(loop[1]), _parse_list(loop[2]))
            continue
        if not current.words and (subshell := _SUBSHELL.match(script, position)):
            position, current.words, current.subshell = subshell.end(), ["("], parse(subshell[1])
            continue
        match = _TOKEN.match(script, position)
        if not match:
            raise ShellSyntaxError(f"{script[position]!r} is not simulated")
        position = match.end()
        if match.lastgroup == "operator":
            current = _end_command(commands, current, match[0])
        else:
            _add(current, match.lastgroup, match[0])
    if current.words:
        commands.append(current)
    elif current.operator != ";":
        raise ShellSyntaxError("end of file unexpected")
    return commands


def _add(command: SimpleCommand, kind: str | None, text: str) -> None:
    """Add a word or a redirection; nothing for a space."""
    if kind == "word":
        if command.is_compound or (not command.words and text in _RESERVED):
            raise ShellSyntaxError(f"{text!r} is not simulated")
        command.words.append(text)
    elif kind == "redirect":
        if command.is_compound:
            raise ShellSyntaxError("a compound command with a redirection is not simulated")
        command.redirects.append(text.replace(" ", ""))


def _end_command(commands: list[SimpleCommand], current: SimpleCommand, operator: str) -> SimpleCommand:
    """End the current command, and return the next one."""
    if current.words:
        commands.append(current)
    elif operator != "\n":
        raise ShellSyntaxError(f'"{operator}" unexpected')
    current.background = operator == "&"
    if current.background and (current.operator != ";" or current.is_compound):
        raise ShellSyntaxError("a list in the background is not simulated")
    return SimpleCommand(";" if operator in "\n&" else operator) if current.words else current


def _parse_list(script: str) -> list[SimpleCommand]:
    """Condition or body of a loop, which only its condition ends. Raises ShellSyntaxError."""
    commands = parse(script)
    for command in commands:
        if command.background or (command.words and command.words[0] in ("exit", "exec", "break", "continue")):
            raise ShellSyntaxError(f"{command.words[0]!r} in a loop is not simulated")
    return commands


class UnknownOptionError(ValueError):
    """An invalid option; the text is getopt's, without the name of the program."""


def split_options(
    words: Sequence[str], flags: Mapping[str, str], valued: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Split words into options by canonical name, and the rest. Raises UnknownOptionError.

    ``flags`` and ``valued`` map accepted spellings (``--property``, ``-p``) to canonical names. A flag has one empty
    value per use.
    """
    result: dict[str, list[str]] = {}
    rest: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return result, rest + queue
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif name.startswith("--"):
            _take_long(name, value if equals else None, queue, (flags, valued), result)
        elif word[:2] in valued:
            result.setdefault(valued[word[:2]], []).append(word[2:] or _next(word, queue))
        else:
            for letter in word[1:]:
                if f"-{letter}" not in flags:
                    raise UnknownOptionError(f"invalid option -- '{letter}'")
                result.setdefault(flags[f"-{letter}"], []).append("")
    return result, rest


def _take_long(
    name: str,
    value: str | None,
    queue: list[str],
    known: tuple[Mapping[str, str], Mapping[str, str]],
    result: dict[str, list[str]],
) -> None:
    flags, valued = known
    if name in flags:
        result.setdefault(flags[name], []).append(value or "")
    elif name in valued:
        result.setdefault(valued[name], []).append(value if value is not None else _next(name, queue))
    else:
        raise UnknownOptionError(f"unrecognized option '{name}'")


def _next(name: str, queue: list[str]) -> str:
    if not queue:
        raise UnknownOptionError(f"option '{name}' requires an argument")
    return queue.pop(0)
