"""Lines that sshd and WinRM pass to cmd.exe: a program with its arguments, and nothing else.

No shell is simulated: operators, variables and built-in commands are refused.
"""

from __future__ import annotations

from chaos.lab.winshell.process import ProgramNotFoundError, WinProcess, launch


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
