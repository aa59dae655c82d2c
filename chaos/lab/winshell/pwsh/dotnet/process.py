"""[Diagnostics.Process]: programs with a command line that PowerShell does not quote."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.winshell.process import ProgramNotFoundError, WinProcess, launch
from chaos.lab.winshell.pwsh.values import NetObject, Value, call_error, to_text

_SWITCHES = ("UseShellExecute", "CreateNoWindow", "RedirectStandardOutput", "RedirectStandardError")


def _start_info(_: WinProcess, program: Value = "", arguments: Value = "") -> NetObject:
    properties = {"FileName": to_text(program), "Arguments": to_text(arguments)} | dict.fromkeys(_SWITCHES, False)
    return NetObject("System.Diagnostics.ProcessStartInfo", properties)


def _wait_for_exit(limit: Value = None) -> bool | None:
    """Nothing without a limit, as of a method that returns void."""
    return None if limit is None else True


async def _start(process: WinProcess, info: Value, arguments: Value = "") -> NetObject:
    """Start a program. The lab runs it to its end at once, so a script cannot do anything meanwhile.

    Raises ScriptError.
    """
    if isinstance(info, NetObject):
        program, rest = to_text(info.properties["FileName"]), to_text(info.properties["Arguments"])
    else:
        program, rest = to_text(info), to_text(arguments)
    try:
        code = await launch(process, f'"{program}" {rest}')
    except ProgramNotFoundError as error:
        inner = "The system cannot find the file specified"
        raise call_error("Start", 1, inner, "Win32Exception") from error
    methods: dict[str, Callable[..., Value]] = {"WaitForExit": _wait_for_exit, "Dispose": lambda: None}
    return NetObject("System.Diagnostics.Process", {"ExitCode": code, "HasExited": True}, methods)


PROPERTIES: dict[str, dict[str, Callable[[WinProcess], Value]]] = {}
METHODS: dict[str, dict[str, Callable[..., Value]]] = {"diagnostics.process": {"start": _start}}
CONSTRUCTORS: dict[str, Callable[..., Value]] = {"diagnostics.processstartinfo": _start_info}
