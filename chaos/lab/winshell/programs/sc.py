"""sc.exe: query, queryex, start, stop. The exit code is the Win32 error; messages are on stdout."""

from __future__ import annotations

from chaos.lab.windows.services import NEVER_STARTED, RUNNING, STATE_NAMES, STOP_PENDING, Service, ServiceError
from chaos.lab.winshell.process import WinProcess

_MESSAGES = {
    1051: "A stop control has been sent to a service that other running services are dependent on.",
    1052: "The requested control is not valid for this service.",
    1056: "An instance of the service is already running.",
    1058: (
        "The service cannot be started, either because it is disabled or because it has no enabled devices associated "
        "with it."
    ),
    1060: "The specified service does not exist as an installed service.",
    1061: "The service cannot accept control messages at this time.",
    1062: "The service has not been started.",
    1115: "A system shutdown is in progress.",
}
_QUERY = "EnumQueryServicesStatus:OpenService"
_CALLS = {"query": _QUERY, "queryex": _QUERY, "start": "StartService", "stop": "ControlService"}
_BAD_COMMAND = 1639  # ERROR_INVALID_COMMAND_LINE


async def sc(process: WinProcess, arguments: list[str]) -> int:
    """``sc query|queryex|start|stop NAME``."""
    verb, name = arguments if len(arguments) == 2 else ("", "")
    if verb not in _CALLS:
        process.line("DESCRIPTION:")
        process.line("        SC is a command line program used for communicating with the")
        process.line("        Service Control Manager and services.")
        return _BAD_COMMAND
    services = process.machine.services
    try:
        service = services.get(name)
    except ServiceError as error:
        return _fail(process, _CALLS[verb] if verb.startswith("query") else "OpenService", error.code)
    try:
        if verb in ("start", "stop"):
            (services.start if verb == "start" else services.stop)(service)
    except ServiceError as error:
        return _fail(process, _CALLS[verb], error.code)
    _print_status(process, service, extended=verb in ("queryex", "start"))
    return 0


def _fail(process: WinProcess, call: str, code: int) -> int:
    process.line(f"[SC] {call} FAILED {code}:")
    process.line()
    process.line(_MESSAGES[code])
    process.line()
    return code


def _print_status(process: WinProcess, service: Service, *, extended: bool) -> None:
    process.line()
    process.line(f"SERVICE_NAME: {service.name}")
    process.line(f"        TYPE               : {'10  WIN32_OWN_PROCESS' if service.own_process else '30  WIN32'}  ")
    process.line(f"        STATE              : {service.state}  {STATE_NAMES[service.state]} ")
    if service.state in (RUNNING, STOP_PENDING):
        process.line(f"                                ({_flags(service)})")
    code = service.exit_code
    shown = f"{code}       (0x{code:x})" if code == NEVER_STARTED else f"{code}  (0x{code:x})"
    process.line(f"        WIN32_EXIT_CODE    : {shown}")
    process.line("        SERVICE_EXIT_CODE  : 0  (0x0)")
    process.line("        CHECKPOINT         : 0x0")
    process.line("        WAIT_HINT          : 0x0")
    if extended:
        process.line(f"        PID                : {service.pid}")
        process.line("        FLAGS              : ")


def _flags(service: Service) -> str:
    stoppable = "STOPPABLE" if "STOP" in service.accepts else "NOT_STOPPABLE"
    last = next(
        (f"ACCEPTS_{word}" for word in ("PRESHUTDOWN", "SHUTDOWN") if word in service.accepts), "IGNORES_SHUTDOWN"
    )
    return f"{stoppable}, NOT_PAUSABLE, {last}"
