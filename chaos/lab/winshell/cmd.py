"""A small cmd.exe: ``&``, ``&&``, ``||``, quotes, ``^``, ``%NAME%``, redirection, and some built-in commands.

Pipes, parentheses, ``if`` and ``for`` are not simulated: they give cmd's syntax error and exit code 1.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.lab.hostshell.streams import discard
from chaos.lab.windows.files import read_file, write_file
from chaos.lab.winshell.process import NOT_FOUND, ProgramNotFoundError, WinProcess, launch

_REDIRECT = re.compile(r"([012]?)(>>|>|<)[ \t]*(&[12]|\"[^\"]*\"|[^ \t&|<>\"]+)")
_VARIABLE = re.compile(r"%([^%\s][^%]*)%")
_RESERVED = frozenset({"if", "for", "goto", "call", "pushd", "popd"})
_BANNER = "Microsoft Windows [Version 10.0.20348.2700]"


class CmdSyntaxError(ValueError):
    """The line is invalid, or needs a feature that is not simulated; the text is the token before which it is so."""


@dataclass(slots=True)
class CmdCommand:
    """One command with the operator before it; ``redirects``: (handle, operator, target)."""

    operator: str
    text: str = ""
    redirects: list[tuple[str, str, str]] = field(default_factory=list)


def parse(line: str) -> list[CmdCommand]:
    """Parse a line. Blanks before an operator belong to the command, as in cmd. Raises CmdSyntaxError."""
    commands = [CmdCommand("&")]
    position, quoted = 0, False
    while position < len(line):
        character = line[position]
        if character == '"':
            quoted = not quoted
        elif not quoted:
            if character == "^":
                commands[-1].text += line[position + 1 : position + 2]
                position += 2
                continue
            if character in "|&" or (match := _redirect_at(line, position)):
                if character in "|&":
                    position = _end_command(commands, line, position)
                else:
                    assert match  # noqa: S101 - tested above
                    commands[-1].redirects.append((match[1] or ("0" if match[2] == "<" else "1"), match[2], match[3]))
                    position = match.end()
                continue
            if character in "()" and not commands[-1].text.strip():
                raise CmdSyntaxError(character)
        commands[-1].text += character
        position += 1
    if not commands[-1].text.strip() and commands[-1].operator != "&":
        raise CmdSyntaxError(commands[-1].operator)
    return [command for command in commands if command.text.strip()]


def _redirect_at(line: str, position: int) -> re.Match[str] | None:
    """A redirection that begins here; a digit before it counts only after a blank."""
    if line[position] in "012" and position and line[position - 1] not in " \t&|":
        return None
    return _REDIRECT.match(line, position)


def _end_command(commands: list[CmdCommand], line: str, position: int) -> int:
    operator = line[position : position + 2] if line[position : position + 2] in ("&&", "||") else line[position]
    if operator == "|" or (not commands[-1].text.strip() and operator != "&"):
        raise CmdSyntaxError(operator)
    commands.append(CmdCommand(operator))
    return position + len(operator)


async def run_line(process: WinProcess, line: str) -> int:
    """Run one line and return its errorlevel."""
    try:
        commands = parse(_expand(process, line))
    except CmdSyntaxError as error:
        return process.fail(f"{error} was unexpected at this time.")
    cmd = _Cmd(process)
    for command in commands:
        if (command.operator == "&&" and cmd.errorlevel) or (command.operator == "||" and not cmd.errorlevel):
            continue
        cmd.errorlevel = await cmd.run(command)
        if cmd.has_exited:
            break
    return 1 if cmd.errorlevel == NOT_FOUND else cmd.errorlevel


class _Cmd:
    """State of one cmd.exe."""

    def __init__(self, process: WinProcess) -> None:
        self._process = dataclasses.replace(process, environment=process.environment.copy())
        self.errorlevel = 0
        self.has_exited = False

    async def run(self, command: CmdCommand) -> int:
        process, files = _redirected(self._process, command.redirects)
        text = command.text.lstrip(" \t@")
        word = re.match(r"[^\s/.:,;=\"\\]+(?=[\s/.:,;=\"\\]|$)|\S+", text)
        name = word[0].lower() if word else ""
        rest = text[len(name) :]
        try:
            return await self._dispatch(process, name, rest, text)
        finally:
            for write in files:
                write()

    async def _dispatch(self, process: WinProcess, name: str, rest: str, text: str) -> int:
        if name in _RESERVED:
            return process.fail(f"{name} was unexpected at this time.")
        builtin = _BUILTINS.get(name)
        if builtin is not None:
            return builtin(process, rest)
        if name == "exit":
            self.has_exited = True
            words = [word for word in rest.split() if word.lower() != "/b"]
            return int(words[0]) if words and words[0].lstrip("-").isdecimal() else self.errorlevel
        if name in ("cd", "chdir"):
            return self._change_directory(process, rest)
        try:
            return await launch(process, text)
        except ProgramNotFoundError as error:
            process.err(f"'{error}' is not recognized as an internal or external command,\r\n")
            process.err("operable program or batch file.\r\n")
            return NOT_FOUND

    def _change_directory(self, process: WinProcess, rest: str) -> int:
        path = re.sub(r"(?i)^\s*/d\s+", "", rest).strip().strip('"')
        if not path:
            process.line(self._process.directory)
        else:
            joined = path if path[1:2] == ":" else f"{self._process.directory.rstrip(chr(92))}\\{path}"
            self._process = dataclasses.replace(self._process, directory=joined)
        return 0


def _redirected(
    process: WinProcess, redirects: list[tuple[str, str, str]]
) -> tuple[WinProcess, list[Callable[[], None]]]:
    """The process with redirected outputs, and what writes the files at the end."""
    out, err = process.out, process.err
    ends: list[Callable[[], None]] = []
    for handle, operator, target in redirects:
        if operator == "<":
            continue
        sink: Callable[[str], None]
        if target in ("&1", "&2"):
            sink = out if target == "&1" else err
        elif target.lower() == "nul":
            sink = discard
        else:
            sink = _file_sink(process, target.strip('"'), operator == ">>", ends)
        if handle == "2":
            err = sink
        else:
            out = sink
    return process.replace(out=out, err=err), ends


def _file_sink(process: WinProcess, path: str, append: bool, ends: list[Callable[[], None]]) -> Callable[[str], None]:
    parts = [read_file(process.machine.files, path) or ""] if append else []
    ends.append(lambda: write_file(process.machine.files, path, "".join(parts)))
    return parts.append


def _expand(process: WinProcess, line: str) -> str:
    """Expand %NAME%; a name that is not set stays as it is, as on a command line."""

    def value(match: re.Match[str]) -> str:
        found = process.environment.get(match[1])
        return match[0] if found is None else found

    return _VARIABLE.sub(value, line)


def _echo(process: WinProcess, rest: str) -> int:
    text = rest[1:] if rest[:1] in (" ", ".", ":", ",", ";", "\t") else rest
    process.line(text if text.strip() or rest[:1] == "." else "ECHO is on.")
    return 0


def _set(process: WinProcess, rest: str) -> int:
    text = rest.strip().strip('"')
    name, equals, value = text.partition("=")
    if equals:
        process.environment.set(name, value)
        return 0
    found = [item for item in process.environment.items() if item[0].lower().startswith(name.lower())]
    for item in found:
        process.line("=".join(item))
    return 0 if found else process.fail(f"Environment variable {text} not defined")


def _type(process: WinProcess, rest: str) -> int:
    content = read_file(process.machine.files, rest.strip().strip('"'))
    if content is None:
        return process.fail("The system cannot find the file specified.")
    process.out(content)
    return 0


def _del(process: WinProcess, rest: str) -> int:
    paths = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', rest) if not word.startswith("/")]
    for path in paths:
        if read_file(process.machine.files, path) is None:
            process.line(f"Could Not Find {path}")
        write_file(process.machine.files, path, None)
    return 0


def _ver(process: WinProcess, _: str) -> int:
    process.line()
    process.line(_BANNER)
    return 0


def _succeed(_: WinProcess, __: str) -> int:
    """rem, and commands without effect here."""
    return 0


_BUILTINS: dict[str, Callable[[WinProcess, str], int]] = {
    "echo": _echo,
    "set": _set,
    "type": _type,
    "del": _del,
    "erase": _del,
    "ver": _ver,
    "rem": _succeed,
    "chcp": _succeed,
}


async def cmd(process: WinProcess, line: str) -> int:
    """``cmd.exe /c LINE``; without ``/c`` the lines of stdin, each echoed after the prompt."""
    match = re.match(r"(?is)((?:/[a-bd-jl-z](?::\w+)?\s+)*)/[ck]\s?(.*)", line.lstrip())
    if match:
        return await run_line(process, _strip_quotes(match[2]))
    process.out(f"{_BANNER}\r\n(c) Microsoft Corporation. All rights reserved.\r\n")
    errorlevel = 0
    while read := await process.read_line():
        text = read.rstrip("\r\n")
        process.out(f"\r\n{process.directory}>{text}\r\n")
        errorlevel = await run_line(process, text)
        if re.search(r"(?i)(?:^|&)\s*exit\b", text):
            return errorlevel
    process.out(f"\r\n{process.directory}>")
    return errorlevel


def _strip_quotes(line: str) -> str:
    """cmd /c takes off the first and the last quote of a line that begins with one, but not of one quoted program."""
    text = line.lstrip(" \t")
    is_program = re.fullmatch(r'"[^"&<>()@^|]*"[ \t]*', text) is not None
    if not text.startswith('"') or (text.count('"') == 2 and is_program):
        return line
    head, _, tail = text[1:].rpartition('"')
    return head + tail
