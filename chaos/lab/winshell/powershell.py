"""powershell.exe: its command line, and scripts from it or from stdin."""

from __future__ import annotations

import base64
import binascii
import re

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.errors import ErrorStream
from chaos.lab.winshell.pwsh.interpreter import Interpreter
from chaos.lab.winshell.pwsh.parser import parse
from chaos.lab.winshell.pwsh.syntax import SyntaxProblem
from chaos.lab.winshell.pwsh.values import ScriptError

_ENCODED = re.compile(r"(?i)-e(?:c|nc|ncodedcommand)?\s+(\S+)\s*$")
_COMMAND = re.compile(r"(?is)-c(?:ommand)?\s+(.*)")
_OPTION = re.compile(r"(?i)-(?:noprofile|nop|noninteractive|noni|nologo|executionpolicy\s+\w+|ep\s+\w+)\s+")


async def powershell(process: WinProcess, line: str) -> int:
    """``powershell.exe [options] [-Command] TEXT``, ``-EncodedCommand BASE64``, or ``-`` for stdin."""
    rest = line.strip()
    while match := _OPTION.match(rest + " "):
        rest = (rest + " ")[match.end() :].strip()
    if rest.lower() in ("-", "-command -", "-c -"):
        return await _run_stdin(process)
    if match := _ENCODED.match(rest):
        try:
            text = base64.b64decode(match[1], validate=True).decode("utf-16-le")
        except (binascii.Error, UnicodeDecodeError):
            reason = "the value specified with -EncodedCommand is not properly encoded."
            return process.fail(f"Cannot process the command because {reason}")
        return await _run(process, text, is_clixml=True)
    match = _COMMAND.match(rest)
    text = match[1] if match else rest
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('\\"', '"')
    return await _run(process, text, is_clixml=False)


async def _run(process: WinProcess, text: str, *, is_clixml: bool) -> int:
    """Run a script; a syntax error runs nothing of it."""
    errors = ErrorStream(process, is_clixml=is_clixml)
    try:
        return await _interpret(Interpreter(process, errors), text)
    finally:
        errors.close()


async def _interpret(interpreter: Interpreter, text: str) -> int:
    try:
        script = parse(text)
    except SyntaxProblem as problem:
        category = "ParserError: (:) [], ParentContainsErrorRecordException"
        interpreter.errors.write(ScriptError(str(problem), "ParserError", category), text.strip())
        return 1
    return await interpreter.run(script)


async def _run_stdin(process: WinProcess) -> int:
    """Run the lines of stdin, each as a script; ``exit`` ends the rest."""
    errors = ErrorStream(process, is_clixml=False)
    interpreter = Interpreter(process, errors)
    code = 0
    while line := await process.read_line():
        code = await _interpret(interpreter, line)
        if interpreter.has_exited:
            return code
    return code
