"""``sed -n /FROM/,/TO/p FILE...``: the lines of some blocks."""

from __future__ import annotations

import re

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.files import read_file

_BLOCKS = re.compile(r"/((?:[^/\\]|\\.)+)/,/((?:[^/\\]|\\.)+)/p")


async def sed(process: Process, argv: list[str]) -> int:
    """Print the blocks of all files, as if they were one; exit code 2 if a file is missing or unreadable."""
    match = _BLOCKS.fullmatch(argv[2]) if len(argv) > 3 and argv[1] == "-n" else None
    if match is None:
        return process.fail("sed: the lab simulates only sed -n /FROM/,/TO/p FILE...")
    begin, end = re.compile(match[1]), re.compile(match[2])
    code, inside = 0, False
    for path in argv[3:]:
        text, why = read_file(process, path)
        if text is None:
            code = process.fail(f"sed: can't read {path}: {why}", 2)
            continue
        for line in text.splitlines():
            if inside or begin.search(line):
                process.out(line + "\n")
                inside = not (inside and end.search(line))
    return code


PROGRAMS: dict[str, Program] = {"sed": sed}
