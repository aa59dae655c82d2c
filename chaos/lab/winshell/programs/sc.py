"""sc.exe: query, queryex, qc, qfailure, start, stop, config, failure.

The exit code is the Win32 error; messages are on stdout.
"""

from __future__ import annotations

import re

from chaos.lab.windows.services import (
    NEVER_STARTED,
    RUNNING,
    STATE_NAMES,
    STOP_PENDING,
    Service,
    ServiceError,
    StartType,
)
from chaos.lab.winshell.process import WinProcess

_MESSAGES = {
    5: "Access is denied.",
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
_START_TEXTS: dict[StartType, str] = {
    "auto": "2   AUTO_START",
    "delayed-auto": "2   AUTO_START  (DELAYED)",
    "demand": "3   DEMAND_START",
    "disabled": "4   DISABLED",
}
_START_WORDS: dict[str, StartType] = {
    "auto": "auto",
    "delayed-auto": "delayed-auto",
    "demand": "demand",
    "disabled": "disabled",
}
_BAD_COMMAND = 1639  # ERROR_INVALID_COMMAND_LINE
_CALLS = {
    "query": "EnumQueryServicesStatus:OpenService",
    "queryex": "EnumQueryServicesStatus:OpenService",
    "qc": "OpenService",
    "start": "StartService",
    "stop": "ControlService",
    "config": "OpenService",
    "failure": "OpenService",
    "qfailure": "OpenService",
}
_RESTART = re.compile(r"restart/(\d+)(?:/restart/\d+)*", re.IGNORECASE)


async def sc(process: WinProcess, arguments: list[str]) -> int:
    """``sc query|queryex [NAME]``, ``sc qc|qfailure|start|stop NAME``, ``sc config|failure NAME OPTION= VALUE``."""
    verb, *rest = [word for word in arguments if not word.startswith("\\\\")] or [""]
    verb = verb.lower()
    services = process.machine.services
    if verb not in _CALLS or (not rest and verb not in ("query", "queryex")):
        process.line("DESCRIPTION:")
        process.line("        SC is a command line program used for communicating with the")
        process.line("        Service Control Manager and services.")
        return _BAD_COMMAND
    if not rest or rest[0].lower() in ("type=", "state="):
        for item in services.all():
            if item.is_running or "all" in [word.lower() for word in rest]:
                _print_status(process, item, extended=verb == "queryex", listed=True)
        return 0
    try:
        service = services.get(rest[0])
    except ServiceError as error:
        call = _CALLS[verb] if verb.startswith("query") else "OpenService"
        return _fail(process, call, error.code)
    try:
        return _run(process, verb, service, rest[1:])
    except ServiceError as error:
        return _fail(process, _CALLS[verb], error.code)


def _run(process: WinProcess, verb: str, service: Service, words: list[str]) -> int:
    """Raises ServiceError."""
    if verb in ("query", "queryex"):
        _print_status(process, service, extended=verb == "queryex", listed=False)
    elif verb == "qc":
        _print_config(process, service)
    elif verb == "qfailure":
        _print_failure(process, service)
    elif verb == "config":
        return _configure(process, service, words)
    elif verb == "failure":
        return _set_failure(process, service, words)
    else:
        control = process.machine.services.start if verb == "start" else process.machine.services.stop
        control(service)
        _print_status(process, service, extended=verb == "start", listed=False)
    return 0


def _configure(process: WinProcess, service: Service, words: list[str]) -> int:
    """``start= TYPE``; the blank after ``=`` is part of the syntax."""
    if len(words) != 2 or words[0].lower() != "start=" or words[1].lower() not in _START_WORDS:
        process.line("DESCRIPTION:")
        process.line("        Modifies a service entry in the registry and Service Database.")
        return _BAD_COMMAND
    process.machine.services.configure(service, _START_WORDS[words[1].lower()])
    process.line("[SC] ChangeServiceConfig SUCCESS")
    return 0


def _set_failure(process: WinProcess, service: Service, words: list[str]) -> int:
    """``reset= SECONDS actions= restart/MILLISECONDS``, or no action at all; every failure has the first action."""
    options = dict(zip(words[::2], words[1::2], strict=False))
    actions = options.get("actions=", options.get("ACTIONS="))
    match = _RESTART.fullmatch(actions or "")
    if actions is None or "reset=" not in [word.lower() for word in options] or (actions and not match):
        process.line("DESCRIPTION:")
        process.line("        Changes the actions upon failure")
        return _BAD_COMMAND
    service.restart_after = int(match[1]) / 1000 if match else None
    process.line("[SC] ChangeServiceConfig2 SUCCESS")
    return 0


def _print_failure(process: WinProcess, service: Service) -> None:
    """No recording."""
    process.line("[SC] QueryServiceConfig2 SUCCESS")
    process.line()
    process.line(f"SERVICE_NAME: {service.name}")
    process.line("        RESET_PERIOD (in seconds)    : 0")
    process.line("        REBOOT_MESSAGE               : ")
    process.line("        COMMAND_LINE                 : ")
    if service.restart_after is not None:
        delay = f"{service.restart_after * 1000:.0f}"
        process.line(f"        FAILURE_ACTIONS              : RESTART -- Delay = {delay} milliseconds.")


def _fail(process: WinProcess, call: str, code: int) -> int:
    process.line(f"[SC] {call} FAILED {code}:")
    process.line()
    process.line(_MESSAGES[code])
    process.line()
    return code


def _print_status(process: WinProcess, service: Service, *, extended: bool, listed: bool) -> None:
    process.line()
    process.line(f"SERVICE_NAME: {service.name}")
    if listed:
        process.line(f"DISPLAY_NAME: {service.display_name}")
    process.line(f"        TYPE               : {_type(service)}  ")
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


def _type(service: Service) -> str:
    return "10  WIN32_OWN_PROCESS" if service.own_process else "30  WIN32"


def _flags(service: Service) -> str:
    stoppable = "STOPPABLE" if "STOP" in service.accepts else "NOT_STOPPABLE"
    last = next(
        (f"ACCEPTS_{word}" for word in ("PRESHUTDOWN", "SHUTDOWN") if word in service.accepts), "IGNORES_SHUTDOWN"
    )
    return f"{stoppable}, NOT_PAUSABLE, {last}"


def _print_config(process: WinProcess, service: Service) -> None:
    process.line("[SC] QueryServiceConfig SUCCESS")
    process.line()
    process.line(f"SERVICE_NAME: {service.name}")
    process.line(f"        TYPE               : {_type(service)}  ")
    process.line(f"        START_TYPE         : {_START_TEXTS[service.start_type]}")
    process.line("        ERROR_CONTROL      : 1   NORMAL")
    process.line(f"        BINARY_PATH_NAME   : {service.binary}")
    process.line("        LOAD_ORDER_GROUP   : ")
    process.line("        TAG                : 0")
    process.line(f"        DISPLAY_NAME       : {service.display_name}")
    first, *others = service.depends or ("",)
    process.line(f"        DEPENDENCIES       : {first}")
    for name in others:
        process.line(f"                           : {name}")
    process.line("        SERVICE_START_NAME : LocalSystem")
