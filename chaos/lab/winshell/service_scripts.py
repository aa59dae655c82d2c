"""Scripts that start and stop services. They wait until the service has started or stopped, unlike sc.exe.
Scripts of the task scheduler: what registers a task, and what failsafe tasks run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from chaos.lab.windows.firewall import RULES_KEY
from chaos.lab.windows.services import RUNNING, STOPPED, Service, ServiceError
from chaos.lab.windows.tasks import TaskXmlError, parse_task_xml
from chaos.lab.winshell.process import ProgramNotFoundError, WinProcess, call, launch

Parameters = dict[str, Any]


class ScriptError(Exception):
    """The error that ends a script, with its text."""


class Script(NamedTuple):
    """``digest``: of the script's text without name, parameters and comments. ``run`` returns the exit code."""

    digest: str
    run: Callable[[WinProcess, Parameters], Awaitable[int]]


_POLL, _LIMIT = 0.25, 240  # seconds between two looks, and how many of them
_ATTEMPTS, _PAUSE = 60, 5.0  # of failsafe tasks
TIME_SERVICE = "w32time"


def find(process: WinProcess, name: str) -> Service:
    """Raises ScriptError."""
    try:
        return process.machine.services.get(name)
    except ServiceError as error:
        raise ScriptError(f"Cannot find any service with service name '{name}'.") from error


async def _wait(process: WinProcess, service: Service, state: int) -> None:
    for _ in range(_LIMIT):
        if service.state == state:
            return
        await process.sleep(_POLL)


async def stop(process: WinProcess, name: str) -> None:
    """Stop-Service. Raises ScriptError."""
    service, services = find(process, name), process.machine.services
    if service.state == STOPPED:
        return
    title = f"{service.display_name} ({service.name})"
    if any(item.state != STOPPED for item in services.dependents(service)):
        raise ScriptError(f"Cannot stop service '{title}' because it has dependent services.")
    try:
        services.stop(service)
    except ServiceError as error:
        raise ScriptError(f"Service '{title}' cannot be stopped.") from error
    await _wait(process, service, STOPPED)


async def start(process: WinProcess, name: str) -> None:
    """Start-Service. Raises ScriptError."""
    service = find(process, name)
    if service.state == RUNNING:
        return
    try:
        process.machine.services.start(service)
    except ServiceError as error:
        raise ScriptError(f"Service '{service.display_name} ({service.name})' cannot be started.") from error
    await _wait(process, service, RUNNING)


def resync(process: WinProcess) -> bool:
    """``w32tm.exe /resync``: whether the time service runs, and has set the clock right."""
    if not find(process, TIME_SERVICE).is_running:
        return False
    process.machine.clock.correct()
    return True


async def stop_services(process: WinProcess, parameters: Parameters) -> int:
    """Stop-Service for each."""
    for name in parameters["services"]:
        await stop(process, name)
    return 0


async def restart_service(process: WinProcess, parameters: Parameters) -> int:
    """Restart-Service."""
    await stop(process, parameters["service"])
    await start(process, parameters["service"])
    return 0


async def start_service(process: WinProcess, parameters: Parameters) -> int:
    """Start-Service; the time service then corrects the clock."""
    await start(process, parameters["service"])
    if parameters["service"] == TIME_SERVICE:
        resync(process)
    return 0


async def failsafe_start_service(process: WinProcess, parameters: Parameters) -> int:
    """Attempts until the service runs."""
    for _ in range(_ATTEMPTS):
        if find(process, parameters["service"]).is_running:
            return 0
        await call(process, "sc", "start", parameters["service"])
        await process.sleep(_PAUSE)
    return 1


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
