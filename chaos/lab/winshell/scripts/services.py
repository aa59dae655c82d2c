"""Scripts that start and stop services. They wait until the service has started or stopped, unlike sc.exe."""

from __future__ import annotations

from chaos.lab.windows.services import RUNNING, STOPPED, Service, ServiceError
from chaos.lab.winshell.process import WinProcess, call
from chaos.lab.winshell.scripts.script import Parameters, ScriptError

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
