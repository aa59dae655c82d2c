"""Programs of Windows hosts, by full path: ``PATH`` could lead to others. Scripts for Windows PowerShell."""

from __future__ import annotations

import base64
import csv

from chaos.model.command import HostCommand

_SYSTEM32 = r"C:\Windows\System32"
# Progress is written to standard error as XML; an error that is not fatal would leave exit code 0.
_PREFERENCES = "$ProgressPreference='SilentlyContinue';$ErrorActionPreference='Stop';"


def system_program(name: str) -> str:
    """Full path of a program of Windows, as ``shutdown`` or ``sc``."""
    return rf"{_SYSTEM32}\{name}.exe"


def powershell(script: str) -> tuple[str, ...]:
    """Arguments that run ``script`` in Windows PowerShell 5.1; the exit code is 1 if one of its commands fails.

    Encoded, as nothing then needs quoting. Not for scripts of more than about 2,500 characters: cmd.exe takes 8,191.
    """
    encoded = base64.b64encode((_PREFERENCES + script).encode("utf-16-le")).decode()
    program = rf"{_SYSTEM32}\WindowsPowerShell\v1.0\powershell.exe"
    return (program, "-NoProfile", "-NonInteractive", "-EncodedCommand", encoded)


def decode_script(argv: tuple[str, ...]) -> str:
    """The script in the arguments of :func:`powershell`, without its preamble; "" for another program."""
    if len(argv) < 2 or argv[-2] != "-EncodedCommand":
        return ""
    return base64.b64decode(argv[-1]).decode("utf-16-le").removeprefix(_PREFERENCES)


LIST_TASKS = HostCommand((system_program("schtasks"), "/query", "/fo", "csv", "/nh"))


def parse_task_names(listing: str) -> list[str]:
    """Names of the tasks in the root folder, from a listing as CSV: the name is its first column in every language."""
    names = (row[0] for row in csv.reader(listing.splitlines()) if row)
    return [name.removeprefix("\\") for name in names if name.startswith("\\") and name.count("\\") == 1]
