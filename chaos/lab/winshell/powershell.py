"""A small PowerShell: statements separated by ``;`` or line ends, a few cmdlets, programs.

Everything else is an error in PowerShell's words with exit code 1, so that no script half works.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

from chaos.lab.winshell.dotnet_process import started_line
from chaos.lab.winshell.process import ProgramNotFoundError, WinProcess, launch

_STATEMENT = re.compile(r"""((?:'(?:''|[^'])*'|"(?:`.|[^"`])*"|[^;\n'"])+)""")
_STRING = re.compile(r"""\s*(?:'((?:''|[^'])*)'|"((?:`.|[^"`])*)")\s*""")
_SLEEP = re.compile(r"(?i)start-sleep\s+(?:-(s\w*|m\w*)\s+)?(\d+(?:\.\d+)?)")
_ERROR_LINE = re.compile(r"(?i)\[console\]::error\.write(line)?\((.*)\)")
_ASSIGNMENT = re.compile(r"(?i)\$(?:global:)?(\w+)\s*=\s*(.*)", re.DOTALL)
_ENCODED = re.compile(r"(?i)-e(?:c|nc|ncodedcommand)?\s+([A-Za-z0-9+/=]+)\s*$")
_COMMAND = re.compile(r"(?is)-c(?:ommand)?\s+(.*)")
_OPTION = re.compile(r"(?i)-(?:noprofile|nop|noninteractive|noni|nologo|executionpolicy\s+\w+|ep\s+\w+)\s+")


class UnknownStatementError(ValueError):
    """A statement that is not simulated."""


async def powershell(process: WinProcess, line: str) -> int:
    """``powershell.exe [options] [-Command] TEXT``, ``-EncodedCommand BASE64``, or ``-`` for stdin."""
    rest = line
    while match := _OPTION.match(rest + " "):
        rest = (rest + " ")[match.end() :]
    rest = rest.strip()
    script = _PowerShell(process)
    if rest in ("-", "-Command -", "-command -", "-c -"):
        return await script.run_stdin()
    if match := _ENCODED.match(rest):
        try:
            text = base64.b64decode(match[1], validate=True).decode("utf-16-le")
        except (binascii.Error, UnicodeDecodeError):
            reason = "the value specified with -EncodedCommand is not properly encoded."
            return process.fail(f"Cannot process the command because {reason}")
    else:
        match = _COMMAND.match(rest)
        text = match[1] if match else rest
        if len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1].replace('\\"', '"')
    return await script.run(text)


class _PowerShell:
    """State of one powershell.exe."""

    def __init__(self, process: WinProcess) -> None:
        self._process = process
        self._variables: dict[str, str] = {}
        self._last_exit_code = 0
        self._failed = False
        self._exit: int | None = None

    async def run(self, text: str) -> int:
        """Run a script; 1 if its last statement failed."""
        if (line := started_line(text)) is not None:
            return await self._start(line)
        for statement in _STATEMENT.findall(text.replace("\r", "")):
            if statement.strip():
                await self._statement(statement.strip())
            if self._exit is not None:
                return self._exit
        return int(self._failed)

    async def _start(self, line: str) -> int:
        """Exit code of a program; 1 with .NET's error if it does not exist."""
        try:
            return await launch(self._process, line)
        except ProgramNotFoundError:
            text = 'Exception calling "Start" with "1" argument(s): "The system cannot find the file specified"'
            return self._process.fail(text)

    async def run_stdin(self) -> int:
        """Run the lines of stdin."""
        while line := await self._process.read_line():
            await self.run(line)
            if self._exit is not None:
                return self._exit
        return int(self._failed)

    async def _statement(self, text: str) -> None:
        self._failed = False
        try:
            await self._execute(text)
        except (UnknownStatementError, ProgramNotFoundError):
            word = text.split(maxsplit=1)[0]
            self._process.err(
                f"{word} : The term '{word}' is not recognized as the name of a cmdlet, function, script file, or "
                "operable program. Check the spelling of the name, or if a path was included, verify that the path is "
                f"correct and try again.\r\nAt line:1 char:1\r\n+ {text}\r\n    + CategoryInfo          : "
                f"ObjectNotFound: ({word}:String) [], CommandNotFoundException\r\n"
                "    + FullyQualifiedErrorId : CommandNotFoundException\r\n \r\n"
            )
            self._failed = True

    async def _execute(self, text: str) -> None:
        process, (name, _, rest) = self._process, text.partition(" ")
        if match := _SLEEP.fullmatch(text):
            unit = 0.001 if (match[1] or "s").lower().startswith("m") else 1.0
            await process.sleep(float(match[2]) * unit)
        elif name.lower() == "exit":
            self._exit = int(self._value(rest) or 0) if rest else 0
        elif match := _ASSIGNMENT.fullmatch(text):
            self._variables[match[1].lower()] = self._value(match[2])
        elif match := _ERROR_LINE.fullmatch(text):
            process.err(self._value(match[2]) + ("\r\n" if match[1] else ""))
        elif name.lower() == "write-host":
            process.out(self._value(rest))
            process.out("\n")
        elif name.lower() in ("write-output", "echo"):
            process.line(self._value(rest))
        elif output := _EXPRESSIONS.get(text.lower().replace(" ", "")):
            process.line(output(process))
        elif text[0] in "'\"" or text.startswith("$"):
            process.line(self._value(text))
        else:
            await self._program(text)

    async def _program(self, text: str) -> None:
        line = text[1:].lstrip() if text.startswith("&") else text
        match = _STRING.match(line)
        if match and text.startswith("&"):
            line = f'"{match[1] or match[2]}" {line[match.end() :]}'
        elif text[0] in "([{$@":
            raise UnknownStatementError(text)
        self._last_exit_code = await launch(self._process, self._substitute(line))
        self._failed = self._last_exit_code != 0

    def _value(self, text: str) -> str:
        """Value of an expression: a string, a variable, or a bare word."""
        match = _STRING.fullmatch(text)
        if match:
            return match[1].replace("''", "'") if match[1] is not None else self._substitute(match[2])
        if text.strip().startswith(("(", "[", "@", "{")) or "|" in text:
            raise UnknownStatementError(text)
        return self._substitute(text.strip())

    def _substitute(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1]:
                return self._process.environment.get(match[1]) or ""
            name = match[2].lower()
            if name == "lastexitcode":
                return str(self._last_exit_code)
            return {"true": "True", "false": "False"}.get(name, self._variables.get(name, ""))

        return re.sub(r"\$(?:env:(\w+)|(\w+))", value, text, flags=re.IGNORECASE).replace('`"', '"')


def _directory(process: WinProcess) -> str:
    return process.directory


_EXPRESSIONS: dict[str, Callable[[WinProcess], str]] = {
    "(pwd).path": _directory,
    "(get-location).path": _directory,
    "get-help": lambda _: "\r\nTOPIC\r\n    Windows PowerShell Help System\r\n",
    "$psversiontable.psversion.tostring()": lambda _: "5.1.20348.2700",
}
