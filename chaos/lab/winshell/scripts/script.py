"""What answers a PowerShell script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from chaos.lab.winshell.process import WinProcess

Parameters = dict[str, Any]


class ScriptError(Exception):
    """The error that ends a script, with its text."""


class Script(NamedTuple):
    """``digest``: of the script's text without name, parameters and comments. ``run`` returns the exit code."""

    digest: str
    run: Callable[[WinProcess, Parameters], Awaitable[int]]
