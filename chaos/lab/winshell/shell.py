"""Lines that sshd and WinRM pass to the user's shell: a program with its arguments, and nothing else.

No shell is simulated: operators, variables and built-in commands are refused.
"""

from __future__ import annotations

import base64
import re

from chaos.lab.winshell.command_line import split_arguments
from chaos.lab.winshell.process import ProgramNotFoundError, WinProcess, find_program, launch

_LITERAL = r"\[Text\.Encoding\]::Unicode\.GetString\(\[Convert\]::FromBase64String\('([A-Za-z0-9+/=]*)'\)\)"
# How nodefall starts a program where PowerShell is sshd's shell.
_START = re.compile(
    rf"\$i=New-Object Diagnostics\.ProcessStartInfo\({_LITERAL},{_LITERAL}\);\$i\.UseShellExecute=\$false;"
    r"\$p=\[Diagnostics\.Process\]::Start\(\$i\);if\(\$p\)\{\$p\.WaitForExit\(\);exit \$p\.ExitCode\};exit 1"
)


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


async def run_powershell_line(process: WinProcess, line: str) -> int:
    """Run a line in PowerShell: the one that starts a program by .NET."""
    match = _START.fullmatch(line)
    if match is None:
        return process.fail("The lab has no PowerShell: only the start of a program by .NET is simulated.")
    path, rest = (base64.b64decode(text).decode("utf-16-le") for text in match.groups())
    try:
        program = find_program(process.host.programs, path, by_name=True)
    except ProgramNotFoundError:
        return process.fail('Exception calling "Start": "The system cannot find the file specified"')
    return await program(process, split_arguments(rest))
