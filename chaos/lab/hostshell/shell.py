"""A tiny POSIX shell for the simulated hosts: ``;``, ``&&``, ``||``, ``&``, quoting, ``$name``, ``$(...)``, ``while``.

Subshells in parentheses have copies of the variables. Files in /run can be appended to, by ``>> "$1"`` or
``>> "$1.pid"``. Other features of a shell (pipes, ``if``, other files) are rejected with exit code 2.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Callable
from functools import partial

from chaos.lab.hostshell.process import HostSystem, Process, Program, ShellSyntaxError, SimpleCommand, discard, parse
from chaos.lab.node.machine import Machine
from chaos.lab.sim.lockstep import Job

_PIECE = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|([^'"\\]+)""", re.DOTALL)
_VARIABLE = re.compile(r"\\([$`\"\\\n])|\$(?:\{(\w+|[@*#?])\}|(\d|[A-Za-z_]\w*|[@*#?]))")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SUBSTITUTION = re.compile(r"'[^']*'|\$\(([^()]*)\)")
_DIRECTORIES = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/")
_SYSRQ = "/proc/sysrq-trigger"
SYNTAX_ERROR, NOT_FOUND = 2, 127


class Shell:
    """Shell that runs scripts in ``process``. ``arguments`` are ``$0``, ``$1``...; ``bash`` has ``$EPOCHREALTIME``."""

    def __init__(self, process: Process, arguments: list[str], *, bash: bool = False) -> None:
        self._process, self._arguments, self._bash = process, list(arguments), bash
        self._variables: dict[str, str] = {}
        self._last_exit_code = self._substituted = 0  # the second: of the last $(...) of a command
        self._jobs: list[Job] = []

    async def run(self, script: str) -> int:
        """Run a script to the end of its background jobs. Returns the exit code of the last command."""
        try:
            await self._evaluate(script)
            await self._wait()
        finally:
            for job in self._jobs:
                job.cancel()
        return self._last_exit_code

    async def _evaluate(self, script: str) -> int:
        try:
            commands = parse(script)
        except ShellSyntaxError as error:
            self._process.err(f"{self._arguments[0]}: 1: Syntax error: {error}\n")
            self._last_exit_code = SYNTAX_ERROR
        else:
            await self._commands(commands)
        return self._last_exit_code

    async def _commands(self, commands: list[SimpleCommand]) -> None:
        for command in commands:
            if (command.operator == "&&" and self._last_exit_code) or (
                command.operator == "||" and not self._last_exit_code
            ):
                continue
            if command.loop:
                await self._loop(*command.loop)
                continue
            if command.subshell is not None:
                copy = self._copy(self._process)
                await copy._commands(command.subshell)
                self._last_exit_code = copy._last_exit_code
                continue
            self._substituted = 0
            words = [word for text in command.words for word in self._expand(await self._run_substitutions(text))]
            redirects = [self._substitute(text).replace('"', "") for text in command.redirects]
            if refused := _refused_target(self._process, redirects):
                self._process.err(f"{self._arguments[0]}: 1: cannot create {refused}: Permission denied\n")
                self._last_exit_code = SYNTAX_ERROR
                continue
            process = redirect(self._process, redirects)
            if command.background:
                self._start_job(words, process)
                continue
            is_last = bool(words) and words[0] in ("exec", "exit")
            self._last_exit_code = await self._command(words, process)
            if is_last and words != ["exec"]:
                break

    async def _loop(self, condition: list[SimpleCommand], body: list[SimpleCommand]) -> None:
        """while: the exit code is the body's last one, or 0."""
        code = 0
        while True:
            await self._commands(condition)
            if self._last_exit_code:
                break
            await self._commands(body)
            code = self._last_exit_code
        self._last_exit_code = code

    async def _run_substitutions(self, text: str) -> str:
        """Replace each ``$(...)`` of a word by a variable that has what its commands print."""
        pieces: list[str] = []
        position = 0
        for match in _SUBSTITUTION.finditer(text):
            if match[1] is None:
                continue
            printed: list[str] = []
            self._substituted = await self._copy(self._process.replace(out=printed.append)).run(match[1])
            name = f"_{len(pieces)}"
            self._variables[name] = "".join(printed).rstrip("\n")
            pieces += [text[position : match.start()], f"${{{name}}}"]
            position = match.end()
        return "".join([*pieces, text[position:]])

    def _copy(self, process: Process) -> Shell:
        """A subshell."""
        shell = Shell(process, self._arguments, bash=self._bash)
        shell._variables = dict(self._variables)
        shell._last_exit_code = self._last_exit_code
        return shell

    def _start_job(self, words: list[str], process: Process) -> None:
        """Start a command in the background, in a subshell: its variables are lost."""
        branch = contextlib.ExitStack()
        branch.enter_context(process.host.lockstep.subrequest())
        shell = Shell(process, self._arguments, bash=self._bash)
        job = process.host.start_job(shell._command(words, process))
        job.add_done_callback(lambda _: branch.close())
        self._jobs.append(job)
        self._last_exit_code = 0

    async def _wait(self) -> int:
        if self._jobs:
            with self._process.host.lockstep.suspend_request():
                for job in self._jobs:
                    await job
            self._jobs.clear()
        return 0

    async def _command(self, words: list[str], process: Process) -> int:
        local = {}
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            local[match[1]] = match[2]
            words = words[1:]
        if not words:
            self._variables |= local
            return self._substituted
        name, *rest = words
        builtins: dict[str, Callable[[], Awaitable[int]]] = {
            "read": lambda: self._read(rest, process),
            "wait": self._wait,
            "eval": lambda: self._evaluate(" ".join(rest)),
        }
        if name in builtins:
            return await builtins[name]()
        if name == "shift":
            del self._arguments[1:2]
        if name == "exit":
            return int(rest[0]) & 255 if rest and rest[0].isdecimal() else self._last_exit_code
        if name == "exec":
            return await execute(process, rest, self._arguments[0]) if rest else 0
        if (is_success := _builtin(process, words)) is not None:
            return int(not is_success)
        return await execute(process, words, self._arguments[0])

    async def _read(self, words: list[str], process: Process) -> int:
        names = [word for word in words if not word.startswith("-")]
        line = await process.read_line()
        if names:
            self._variables[names[0]] = line.rstrip("\n")
        return 0 if line.endswith("\n") else 1

    def _expand(self, text: str) -> list[str]:
        """Expand one quoted word to words."""
        if text in ('"$@"', '"${@}"'):
            return self._arguments[1:]
        words, started = [""], False
        is_assignment = _ASSIGNMENT.fullmatch(text) is not None  # of which no part is split
        for single, double, escaped, bare in _PIECE.findall(text):
            if bare:
                parts = (
                    self._substitute(bare).split() if "$" in bare and not is_assignment else [self._substitute(bare)]
                )
                words[-1] += parts[0] if parts else ""
                words += parts[1:]
                started = started or bool(parts and parts[0])
            else:
                words[-1] += single or escaped or self._substitute(double)
                started = True
        return words if started else []

    def _substitute(self, text: str) -> str:
        """Substitute variables and the escapes of double quotes."""

        def replacement(match: re.Match[str]) -> str:
            if match[1]:
                return match[1].replace("\n", "")
            return self._value(match[2] or match[3])

        return _VARIABLE.sub(replacement, text)

    def _value(self, name: str) -> str:
        if name in "@*":
            return " ".join(self._arguments[1:])
        if name == "#":
            return str(len(self._arguments) - 1)
        if name == "?":
            return str(self._last_exit_code)
        if name.isdecimal():
            return self._arguments[int(name)] if int(name) < len(self._arguments) else ""
        if name == "EPOCHREALTIME" and self._bash:
            return f"{self._process.host.sim.now:.6f}"
        return self._variables.get(name, "")


def _builtin(process: Process, words: list[str]) -> bool | None:
    """Result of a builtin without effect here; None for a program."""
    match words:
        case ["set" | "export" | "umask" | "shift" | ":", *_]:
            return True
        case ["command", "-v", name]:
            return find_program(process, name) is not None
        case ["test", "-c", path]:
            return path in process.host.machine.hidden_files
        case ["test", "-n" | "-z" as empty, text]:
            return bool(text) == (empty == "-n")
    return None


def _refused_target(process: Process, redirects: list[str]) -> str:
    """The file that the user may not write to, else "": only root may write to files in /run and /proc."""
    files = [target for text in redirects if (target := text.lstrip("012><")).startswith("/") and target != "/dev/null"]
    return "" if process.is_root and all(file.startswith(("/run/", _SYSRQ)) for file in files) else "".join(files[:1])


def _append(host: HostSystem, path: str, text: str) -> None:
    host.run_files[path] = host.run_files.get(path, "") + text


def press_sysrq(machine: Machine, text: str) -> None:
    """Press a SysRq key: b reboots immediately, c crashes the kernel, o powers off; others have no effect here."""
    actions = {"b": machine.reset, "c": machine.crash, "o": machine.power_off}
    if (action := actions.get(text[:1])) is not None:
        action()


def redirect(process: Process, redirects: list[str]) -> Process:
    """Process with redirected outputs."""
    out, err = process.out, process.err
    trigger: Callable[[str], None] = partial(press_sysrq, process.host.machine)
    for text in redirects:
        if text.startswith(("<", "0")):
            continue
        target = text.lstrip("012>")
        sinks: dict[str, Callable[[str], None]] = {"/dev/null": discard, "&1": out, "&2": err, _SYSRQ: trigger}
        sink = sinks.get(target) or partial(_append, process.host, target)
        if text.startswith("2"):
            err = sink
        else:
            out = sink
    return process.replace(out=out, err=err)


async def execute(process: Process, argv: list[str], shell: str) -> int:
    """Run a program by name or path; exit code 127 with a shell's message if it does not exist."""
    program = find_program(process, argv[0])
    if program is None:
        process.err(f"{shell}: 1: {argv[0]}: not found\n")
        return NOT_FOUND
    return await program(process, [_basename(argv[0]), *argv[1:]])


def find_program(process: Process, name: str) -> Program | None:
    """The program of that name or path, None if the host has none."""
    return process.host.programs.get(_basename(name))


def _basename(name: str) -> str:
    """Name without one of the directories of programs."""
    directory = next((d for d in _DIRECTORIES if name.startswith(d)), "")
    return name.removeprefix(directory)
