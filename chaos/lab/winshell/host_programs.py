r"""Programs that read and set what a Windows machine has.

hostname.exe and whoami.exe.
reg.exe query. Numbers are shown in hexadecimal; strings of a REG_MULTI_SZ are joined with \0.
netsh advfirewall firewall add|delete rule, as nodefall uses it. Errors have exit code 1.
Output is as recorded. No recording: the texts of errors other than "No rules match".
sc.exe: query, queryex, start, stop. The exit code is the Win32 error; messages are on stdout.
"""

from __future__ import annotations

from chaos.lab.windows.disk import KeyPathError, Value, WindowsRegistry
from chaos.lab.windows.firewall import FirewallError, FirewallRule, covers_address
from chaos.lab.windows.services import NEVER_STARTED, RUNNING, STATE_NAMES, STOP_PENDING, Service, ServiceError
from chaos.lab.winshell.process import WinProcess

# Invented: the groups of an administrator who logged in over the network, elevated; only their SIDs are as on Windows.
_GROUPS = (
    ("Everyone", "Well-known group", "S-1-1-0"),
    ("BUILTIN\\Administrators", "Alias", "S-1-5-32-544"),
    ("Mandatory Label\\High Mandatory Level", "Label", "S-1-16-12288"),
)


async def hostname(process: WinProcess, _: list[str]) -> int:
    """``hostname``."""
    process.line(process.machine.name)
    return 0


async def whoami(process: WinProcess, arguments: list[str]) -> int:
    """``whoami``: domain and user in lower case; ``whoami /groups /fo csv /nh``: the groups."""
    if not arguments:
        process.line(process.user.lower())
    elif arguments == ["/groups", "/fo", "csv", "/nh"]:
        for name, kind, sid in _GROUPS:
            process.line(f'"{name}","{kind}","{sid}","Mandatory group, Enabled by default, Enabled group"')
    else:
        return process.fail("ERROR: Invalid argument/option.")
    return 0


_NOT_FOUND = "ERROR: The system was unable to find the specified registry key or value."


async def reg(process: WinProcess, arguments: list[str]) -> int:
    """``reg query KEY /v NAME``: one value. ``reg query KEY /f TEXT /d``: values whose data has the text."""
    registry = process.machine.registry
    try:
        match arguments:
            case ["query", key, "/v", name]:
                value = registry.value(key, name)
                if value is None:
                    return process.fail(_NOT_FOUND)
                _print(process, registry, key, [value])
                return 0
            case ["query", key, "/f", text, "/d"]:
                return _search(process, registry, key, text.lower())
    except KeyPathError:
        return process.fail('ERROR: Invalid key name.\r\nType "REG QUERY /?" for usage.')
    return process.fail('ERROR: Invalid syntax.\r\nType "REG /?" for usage.')


def _search(process: WinProcess, registry: WindowsRegistry, path: str, wanted: str) -> int:
    """Values of one key; the search ignores case."""
    values = registry.values(path)
    if values is None:
        return process.fail(_NOT_FOUND)
    found = [value for value in values if wanted in _text(value).lower()]
    if found:
        _print(process, registry, path, found)
    process.line(f"End of search: {len(found)} match(es) found.")
    return 0 if found else 1


def _print(process: WinProcess, registry: WindowsRegistry, path: str, values: list[Value]) -> None:
    process.line()
    process.line(registry.display_path(path))
    for value in values:
        process.line(f"    {value.name}    {value.kind}    {_text(value)}")
    process.line()


def _text(value: Value) -> str:
    if isinstance(value.data, int):
        return f"0x{value.data:x}"
    return "\\0".join(value.data) if isinstance(value.data, tuple) else value.data


_CONSTANT = {"action": "block", "profile": "any", "protocol": "any", "enable": "yes"}
_PROBE = "192.0.2.1"


async def netsh(process: WinProcess, arguments: list[str]) -> int:
    """``add rule name=N dir=in|out action=block profile=any protocol=any enable=yes remoteip=A,B``, ``delete rule``."""
    pairs = dict(word.partition("=")[::2] for word in arguments[4:])
    try:
        match arguments[:4]:
            case ["advfirewall", "firewall", "add", "rule"]:
                process.machine.firewall.add(_rule(pairs))
            case ["advfirewall", "firewall", "delete", "rule"] if pairs.keys() == {"name"}:
                count = process.machine.firewall.delete(pairs["name"])
                if not count:
                    return _fail(process, "No rules match the specified criteria.")
                process.line()
                process.line(f"Deleted {count} rule(s).")
            case _:
                process.line(f"The following command was not found: {' '.join(arguments)}.")
                return 1
    except FirewallError as error:
        return _fail(process, f"A specified value is not valid: {error}")
    process.line("Ok.")
    process.line()
    return 0


def _rule(pairs: dict[str, str]) -> FirewallRule:
    """Raises FirewallError, also for what the lab does not simulate."""
    rest = pairs.keys() - _CONSTANT.keys() - {"name", "dir", "remoteip"}
    if rest or not pairs.get("name") or any(pairs.get(key) != value for key, value in _CONSTANT.items()):
        raise FirewallError(" ".join(map("=".join, pairs.items())))
    direction, addresses = pairs.get("dir"), tuple(pairs.get("remoteip", "any").split(","))
    for item in addresses:
        covers_address(item, _PROBE)
    if direction == "in":
        return FirewallRule(pairs["name"], "in", addresses)
    if direction == "out":
        return FirewallRule(pairs["name"], "out", addresses)
    raise FirewallError(f"dir={direction}")


def _fail(process: WinProcess, message: str) -> int:
    process.line()
    process.line(message)
    process.line()
    return 1


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
        return _sc_fail(process, _CALLS[verb] if verb.startswith("query") else "OpenService", error.code)
    try:
        if verb in ("start", "stop"):
            (services.start if verb == "start" else services.stop)(service)
    except ServiceError as error:
        return _sc_fail(process, _CALLS[verb], error.code)
    _print_status(process, service, extended=verb in ("queryex", "start"))
    return 0


def _sc_fail(process: WinProcess, call: str, code: int) -> int:
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
