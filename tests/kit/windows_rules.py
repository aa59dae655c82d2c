"""The rules by which programs, cmd.exe and PowerShell read a command line: parsers for tests of our quoting."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping


def read_by_runtime(line: str, *, doubled_quote_closes: bool = False) -> list[str]:
    """Arguments of a command line by the C runtime (parse_cmdline), program name included.

    ``doubled_quote_closes``: the rule of runtimes before 2008, by which ``""`` within quotation marks also ends them.
    """
    program, rest = _program(line)
    found = [program]
    i = 0
    while True:
        while i < len(rest) and rest[i] in " \t":
            i += 1
        if i >= len(rest):
            return found
        argument, quoted = "", False
        while i < len(rest) and (quoted or rest[i] not in " \t"):
            slashes = 0
            while i < len(rest) and rest[i] == "\\":
                slashes, i = slashes + 1, i + 1
            if i < len(rest) and rest[i] == '"':
                argument += "\\" * (slashes // 2)
                if slashes % 2:
                    argument += '"'
                elif quoted and rest[i + 1 : i + 2] == '"':
                    argument, i, quoted = argument + '"', i + 1, not doubled_quote_closes
                else:
                    quoted = not quoted
                i += 1
                continue
            argument += "\\" * slashes
            if i < len(rest) and (quoted or rest[i] not in " \t"):
                argument, i = argument + rest[i], i + 1
        found.append(argument)


def _program(line: str) -> tuple[str, str]:
    """The program name, in which backslashes are never special, and the rest."""
    if line.startswith('"'):
        end = line.index('"', 1)
        return line[1:end], line[end + 1 :]
    end = min((line.find(c) for c in " \t" if c in line), default=len(line))
    return line[:end], line[end:]


def read_by_cmd(line: str, environment: Mapping[str, str]) -> str:
    """The command line of the one program that ``cmd.exe /c "line"`` starts. Raises ValueError for any operator."""
    expanded = re.sub(r"%([^%]+)%", lambda m: environment.get(m[1].upper(), m[0]), line)
    out, quoted, i = "", False, 0
    while i < len(expanded):
        c = expanded[i]
        if c == "\n":
            raise ValueError("the line ends here")
        if not quoted and c == "^":
            i += 1
            out += expanded[i : i + 1]
        elif not quoted and c in "&|<>()":
            raise ValueError(f"operator {c} at {i}")
        else:
            quoted = not quoted if c == '"' else quoted
            out += c
        i += 1
    return out


def read_by_powershell(line: str) -> tuple[str, str]:
    """File name and arguments of the process that the line starts; nothing in it needs quotes."""
    assert not set(line) & set('"`%&|<>^!\\\n')
    literals = re.findall(r"FromBase64String\('([A-Za-z0-9+/=]*)'\)", line)
    assert line.count("'") == 2 * len(literals)
    program, arguments = (base64.b64decode(literal).decode("utf-16-le") for literal in literals)
    return program, arguments
