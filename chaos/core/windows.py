"""Programs of Windows hosts, by full path: ``PATH`` could lead to others. Scripts for Windows PowerShell."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import Any

from chaos.core.action import AnyAction
from chaos.core.command import HostCommand
from chaos.core.encoded_script import SCRIPTS, encode_script

_SYSTEM32 = r"C:\Windows\System32"


def system_program(name: str) -> str:
    """Full path of a program of Windows, as ``shutdown`` or ``sc``."""
    return rf"{_SYSTEM32}\{name}.exe"


def powershell(script: str, package: str = SCRIPTS, **parameters: Any) -> tuple[str, ...]:
    """Arguments that run a script in Windows PowerShell 5.1: ``SCRIPT.ps1`` in ``package``, which reads ``$p.NAME``.

    Parameters are what JSON can hold. The exit code is 1 if one of its commands fails. Not for scripts of more than
    about 2,500 characters: cmd.exe takes 8,191.
    """
    return (
        rf"{_SYSTEM32}\WindowsPowerShell\v1.0\powershell.exe",
        "-NoProfile",
        "-NonInteractive",
        *encode_script(script, parameters, package),
    )


LIST_TASKS = HostCommand((system_program("schtasks"), "/query", "/fo", "csv", "/nh"))


def parse_task_names(listing: str) -> list[str]:
    """Names of the tasks in the root folder, from a listing as CSV: the name is its first column in every language."""
    names = (row[0] for row in csv.reader(listing.splitlines()) if row)
    return [name.removeprefix("\\") for name in names if name.startswith("\\") and name.count("\\") == 1]


def windows_form(action: AnyAction, **declarations: Any) -> AnyAction:
    """The form of an action for Windows hosts: what differs, including ``state``, ``prepare`` and ``program``."""
    return replace(action, systems=frozenset({"windows"}), stops_exec=False, **declarations)
