"""Command lines of Windows: one text, which the C runtime of the started program splits into arguments."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chaos.core.errors import Refused

CMD_LIMIT = 8191  # characters of a line that cmd.exe takes
PROCESS_LIMIT = 32766  # characters of a command line of any process
_FULL_PATH = re.compile(r'[A-Za-z]:\\[^"%!\r\n]+')
_PLAIN = re.compile(r"[A-Za-z0-9_:\\.~-]+")
_NEEDS_QUOTES = re.compile(r'[ \t\n\v"]|^$')
_BACKSLASHES = re.compile(r'(\\*)("|$)')
_CMD_SPECIAL = re.compile(r'([()%!^"<>&|])')
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff\ud800-\udfff]")  # what XML 1.0 cannot hold, and \r


class WindowsShell(StrEnum):
    """The shell that sshd of a Windows host passes a command to (``DefaultShell``)."""

    CMD = "cmd"
    POWERSHELL = "powershell"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A program, quoted if its path has blanks, and its quoted arguments."""

    program: str
    arguments: str

    def __str__(self) -> str:
        return f"{self.program} {self.arguments}" if self.arguments else self.program


def quote_argument(argument: str) -> str:
    """Quote ``argument`` for the C runtime: backslashes are special only before a quotation mark."""
    if not _NEEDS_QUOTES.search(argument):
        return argument
    escaped = _BACKSLASHES.sub(lambda m: m[1] * 2 + ('\\"' if m[2] else ""), argument)
    return f'"{escaped}"'


def process_command_line(argv: Sequence[str]) -> CommandLine:
    """The command line of a process that is started without a shell. Raises Refused for what cannot be sent."""
    program, *arguments = argv
    if not _FULL_PATH.fullmatch(program):
        raise Refused(
            f"{program!r} cannot be started: it is not a full path",
            hint=r"write it like C:\Windows\System32\shutdown.exe: PATH could lead to another program",
        )
    if any(map(_CONTROL.search, argv)):
        raise Refused(
            f"{program} cannot be started: an argument has a control character", hint="pass such text on stdin"
        )
    line = CommandLine(quote_argument(program), " ".join(map(quote_argument, arguments)))
    _check_length(str(line), PROCESS_LIMIT, program)
    return line


def shell_command_line(argv: Sequence[str], shell: WindowsShell) -> str:
    """A line for ``shell`` that starts ``argv`` and ends with its exit code. Raises Refused for what cannot be sent."""
    line = process_command_line(argv)
    return _for_cmd(line, argv) if shell is WindowsShell.CMD else _for_powershell(line, argv[0])


def _for_cmd(line: CommandLine, argv: Sequence[str]) -> str:
    """Quote for cmd.exe: a caret before every special character, including quotation marks.

    The program itself is quoted if necessary, because cmd.exe cannot find its end otherwise.
    """
    if any("\n" in argument for argument in argv):
        raise Refused(f"{argv[0]} cannot be started: cmd.exe takes no line breaks", hint="pass such text on stdin")
    program = argv[0] if _PLAIN.fullmatch(argv[0]) else f'"{argv[0]}"'
    text = str(CommandLine(program, _CMD_SPECIAL.sub(r"^\1", line.arguments)))
    _check_length(text, CMD_LIMIT, argv[0])
    return text


def _for_powershell(line: CommandLine, program: str) -> str:
    """Start the program through .NET: PowerShell versions differ in how they pass arguments with quotation marks.

    The script is in base64, so that neither sshd nor PowerShell has to quote anything.
    """
    text = (
        f"$i=New-Object Diagnostics.ProcessStartInfo({_text(program)},{_text(line.arguments)});"
        # exit $null is exit 0: a program that does not exist must not pass for one that succeeded
        "$i.UseShellExecute=$false;$p=[Diagnostics.Process]::Start($i);"
        "if($p){$p.WaitForExit();exit $p.ExitCode};exit 1"
    )
    _check_length(text, PROCESS_LIMIT, program)
    return text


def _text(text: str) -> str:
    encoded = base64.b64encode(text.encode("utf-16-le")).decode()
    return f"[Text.Encoding]::Unicode.GetString([Convert]::FromBase64String('{encoded}'))"


def _check_length(line: str, limit: int, program: str) -> None:
    if len(line) > limit:
        raise Refused(
            f"{program} cannot be started: its command line has {len(line)} characters, of {limit} at most",
            hint="pass the input on stdin",
        )


def normalize_line_ends(text: str) -> str:
    """Output with ``\\n`` as the line end, as some programs of Windows write it, and others do not."""
    return text.replace("\r\n", "\n")
