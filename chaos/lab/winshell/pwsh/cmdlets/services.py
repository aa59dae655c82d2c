"""Cmdlets of services. They wait until the service has started or stopped, other than sc.exe."""

from __future__ import annotations

from chaos.lab.windows.services import RUNNING, STOPPED, Service, ServiceError, StartType
from chaos.lab.winshell.pwsh.invocation import Cmdlet, Invocation
from chaos.lab.winshell.pwsh.operators import apply
from chaos.lab.winshell.pwsh.values import NetObject, ScriptError, Value, to_text

_STATES = {1: "Stopped", 2: "StartPending", 3: "StopPending", 4: "Running"}
_START_TYPES = {"auto": "Automatic", "delayed-auto": "Automatic", "demand": "Manual", "disabled": "Disabled"}
_POLL, _LIMIT = 0.25, 240  # seconds between two looks, and how many of them
_STARTUP: dict[str, StartType] = {"automatic": "auto", "manual": "demand", "disabled": "disabled"}


def _find(call: Invocation) -> list[Service]:
    """Services by name, which may have wildcards, or of the pipeline. Raises ScriptError."""
    names = [to_text(name) for name in call.items("Name")]
    names += [to_text(item.properties.get("Name")) for item in call.input if isinstance(item, NetObject)]
    services, found = call.process.machine.services, []
    for name in names or ["*"]:
        matching = [item for item in services.all() if apply("like", item.name, name)]
        if not matching and "*" not in name:
            raise ScriptError(
                f"Cannot find any service with service name '{name}'.",
                "NoServiceFoundForGivenName,Microsoft.PowerShell.Commands",
                f"ObjectNotFound: ({name}:String) [], ServiceCommandException",
            )
        found += matching
    return found


def _as_object(service: Service) -> NetObject:
    properties = {
        "Name": service.name,
        "DisplayName": service.display_name,
        "Status": _STATES[service.state],
        "StartType": _START_TYPES[service.start_type],
        "CanStop": "STOP" in service.accepts and service.is_running,
    }
    return NetObject("System.ServiceProcess.ServiceController", properties)


async def _get(call: Invocation) -> list[Value]:
    return [_as_object(service) for service in _find(call)]


async def _wait(call: Invocation, service: Service, state: int) -> None:
    for _ in range(_LIMIT):
        if service.state == state:
            return
        await call.process.sleep(_POLL)


def _refused(service: Service, verb: str) -> ScriptError:
    text = f"Service '{service.display_name} ({service.name})' cannot be {verb}."
    return ScriptError(text, "CouldNotControlService", "OpenError: (:) [], ServiceCommandException")


async def _stop_one(call: Invocation, service: Service) -> None:
    """Raises ScriptError."""
    services = call.process.machine.services
    if service.state == STOPPED:
        return
    running = [item for item in services.dependents(service) if item.state != STOPPED]
    if running and not call.is_set("Force"):
        names = ",".join(item.name for item in running)
        text = f"Cannot stop service '{service.display_name} ({service.name})' because it has dependent services"
        text += f" ({names})."
        raise ScriptError(text, "ServiceHasDependentServices", "InvalidOperation: (:) [], ServiceCommandException")
    for item in running:
        await _stop_one(call, item)
    try:
        services.stop(service)
    except ServiceError as error:
        raise _refused(
            service, "stopped due to the following error: Cannot stop the service on computer '.'"
        ) from error
    await _wait(call, service, STOPPED)


async def _stop(call: Invocation) -> list[Value]:
    for service in _find(call):
        await _stop_one(call, service)
    return []


async def _start_one(call: Invocation, service: Service) -> None:
    """Raises ScriptError."""
    if service.state == RUNNING:
        return
    try:
        call.process.machine.services.start(service)
    except ServiceError as error:
        raise _refused(
            service, "started due to the following error: Cannot start the service on computer '.'"
        ) from error
    await _wait(call, service, RUNNING)


async def _start(call: Invocation) -> list[Value]:
    for service in _find(call):
        await _start_one(call, service)
    return []


async def _restart(call: Invocation) -> list[Value]:
    for service in _find(call):
        await _stop_one(call, service)
        await _start_one(call, service)
    return []


async def _set(call: Invocation) -> list[Value]:
    """Raises ScriptError."""
    start_type = _STARTUP.get(call.text("StartupType").lower())
    if start_type is None:
        raise ScriptError("The lab simulates -StartupType only.", "NotSimulated", ends=True)
    for service in _find(call):
        call.process.machine.services.configure(service, start_type)
    return []


CMDLETS: dict[str, Cmdlet] = {
    "Get-Service": Cmdlet(_get, ("Name",), (), ("Name",)),
    "Stop-Service": Cmdlet(_stop, ("Name",), ("Force", "PassThru"), ("Name",)),
    "Start-Service": Cmdlet(_start, ("Name",), ("PassThru",), ("Name",)),
    "Restart-Service": Cmdlet(_restart, ("Name",), ("Force", "PassThru"), ("Name",)),
    "Set-Service": Cmdlet(_set, ("Name", "StartupType"), (), ("Name",), ("Name",)),
}
