"""Scripts of the task scheduler: what registers a task, and what failsafe tasks run."""

from __future__ import annotations

from chaos.lab.windows.firewall import RULES_KEY
from chaos.lab.windows.task_xml import TaskXmlError, parse_task_xml
from chaos.lab.winshell.process import ProgramNotFoundError, WinProcess, call, launch
from chaos.lab.winshell.scripts.script import Parameters, ScriptError

_ATTEMPTS, _PAUSE = 60, 5.0


async def register_task(process: WinProcess, parameters: Parameters) -> int:
    """Register-ScheduledTask, from stdin."""
    parts = []
    while line := await process.read_line():
        parts.append(line)
    try:
        definition = parse_task_xml("".join(parts))
    except TaskXmlError as error:
        text = "The task XML contains a value which is incorrectly formatted or out of range."
        raise ScriptError(f"{text}\r\n{error}") from error
    process.machine.tasks.register(parameters["task"], definition)
    return 0


async def failsafe_run(process: WinProcess, parameters: Parameters) -> int:
    """The program of a task, and the end of the task once it has succeeded."""
    if parameters["wait"]:
        await process.sleep(parameters["wait"])
    line = " ".join([f'"{parameters["program"]}"', *parameters["arguments"]])
    try:
        code = await launch(process, line)
    except ProgramNotFoundError as error:
        raise ScriptError(f"The term '{error}' is not recognized as the name of a cmdlet or program.") from error
    if code == 0:
        await call(process, "schtasks", "/delete", "/tn", parameters["task"], "/f")
    return code


async def failsafe_delete_rules(process: WinProcess, parameters: Parameters) -> int:
    """Attempts until the registry has no such rule."""
    rule = parameters["rule"]
    for _ in range(_ATTEMPTS):
        code, found = await call(process, "reg", "query", RULES_KEY, "/f", f"Name={rule}|", "/d")
        if code == 1 and found:
            return 0
        await call(process, "netsh", "advfirewall", "firewall", "delete", "rule", f"name={rule}")
        await process.sleep(_PAUSE)
    return 1


async def failsafe_cancel_shutdown(process: WinProcess, parameters: Parameters) -> int:
    """Abort a shutdown with the step's comment."""
    code, events = await call(process, "wevtutil", *parameters["arguments"])
    for line in events.splitlines():
        if ">1075</EventID>" in line or ">12</EventID>" in line:
            return 0
        if f">{parameters['comment']}<" in line:
            return (await call(process, "shutdown", "/a"))[0]
    return code
