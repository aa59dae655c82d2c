"""busctl for logind's manager: emit, get-property, call.

shutdown(8), poweroff(8) and reboot(8) of systemd 251 and later, which all go through logind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from chaos.lab.hostshell.process import Process, Program, UnknownOptionError, split_options
from chaos.lab.hostshell.programs.systemctl import NOT_ROOT, systemctl, version_text
from chaos.lab.node.logind import Logind, LogindError

_FLAGS = {
    "--version": "version",
    "--system": "system",
    "-j": "json",
    "--no-pager": "no-pager",
    "--quiet": "quiet",
    "-q": "quiet",
}
_VALUED = {"--json": "json", "--timeout": "timeout"}
_NAME, _PATH, _MANAGER = "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
_NO_SHUTDOWN = ["", 2**64 - 1]


def _scheduled_shutdown(logind: Logind) -> list[Any]:
    result = logind.scheduled_shutdown()
    return [result[0], round(result[1] * 1e6)] if result else _NO_SHUTDOWN


_PROPERTIES: dict[str, tuple[str, Callable[[Logind], Any]]] = {
    "ScheduledShutdown": ("(st)", _scheduled_shutdown),
    "PreparingForShutdown": ("b", lambda logind: logind.preparing_for_shutdown),
    "InhibitDelayMaxUSec": ("t", lambda logind: round(logind.inhibit_delay_max * 1e6)),
    "HandlePowerKey": ("s", lambda logind: logind.power_key_action),
    "BlockInhibited": ("s", lambda _: ""),
    "DelayInhibited": ("s", lambda logind: ":".join(sorted({str(lock["what"]) for lock in logind.inhibitors()}))),
}


def _format_value(value: Any) -> str:
    """Format a value as busctl does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return " ".join(_format_value(item) for item in value)
    return str(value)


def _print(process: Process, options: dict[str, list[str]], signature: str, value: Any, plain: str = "") -> int:
    """Print one line, in JSON with ``--json``. The reply of a method is an array of its values."""
    if "json" in options:
        pretty = options["json"][-1] == "pretty"
        text = json.dumps({"type": signature, "data": value}, indent=8 if pretty else None, separators=(",", ":"))
    else:
        text = f"{signature} {plain or _format_value(value)}".rstrip()
    process.out(text + "\n")
    return 0


async def busctl(process: Process, argv: list[str]) -> int:
    """``busctl [--json=short] emit|get-property|call ...``."""
    try:
        options, words = split_options(argv[1:], _FLAGS, _VALUED)
    except UnknownOptionError as error:
        return process.fail(f"busctl: {error}")
    if "version" in options:
        process.out(version_text(process.host))
        return 0
    verb, *rest = words or ["list"]
    if verb == "emit":
        return _emit(process, rest)
    if verb == "get-property" and len(rest) > 3:
        return _get_properties(process, options, rest)
    if verb == "call" and len(rest) > 3:
        return _call(process, options, rest)
    return process.fail(f"Unknown command verb {verb}.")


def _emit(process: Process, words: list[str]) -> int:
    wanted = [_PATH, _MANAGER, "PrepareForShutdown", "b"]
    if words[:4] != wanted or len(words) != len(wanted) + 1 or words[4] not in ("true", "false"):
        return process.fail(f"the lab simulates only busctl emit {' '.join(wanted)} true|false")
    if not process.is_root:
        return process.fail("Failed to send message: Access denied")
    process.host.machine.logind.emit_prepare_for_shutdown(words[4] == "true")
    return 0


def _get_properties(process: Process, options: dict[str, list[str]], words: list[str]) -> int:
    if refused := _unknown_reason(process, words):
        return process.fail(f"Failed to get property {words[3]} on interface {words[2]}: {refused}")
    for name in words[3:]:
        if name not in _PROPERTIES:
            return process.fail(
                f"Failed to get property {name} on interface {_MANAGER}: Unknown property or interface."
            )
        signature, read = _PROPERTIES[name]
        _print(process, options, signature, read(process.host.machine.logind))
    return 0


def _unknown_reason(process: Process, words: list[str]) -> str:
    if words[0] != _NAME or not process.host.machine.spec.logind:
        return f"The name {words[0]} was not provided by any .service files"
    return "" if words[1:3] == [_PATH, _MANAGER] else f"Unknown object '{words[1]}'."


def _call(process: Process, options: dict[str, list[str]], words: list[str]) -> int:
    method, arguments = words[3], words[4:]
    if refused := _unknown_reason(process, words):
        return process.fail(f"Call failed: {refused}")
    if method == "ListInhibitors":
        return _list_inhibitors(process, options)
    if not process.is_root:
        return process.fail(f"Call failed: {NOT_ROOT}")
    try:
        return _call_method(process, options, method, arguments)
    except LogindError as error:
        return process.fail(f"Call failed: {error}")


def _list_inhibitors(process: Process, options: dict[str, list[str]]) -> int:
    keys = ("what", "who", "why", "mode", "uid", "pid")
    locks = [[lock[key] for key in keys] for lock in process.host.machine.logind.inhibitors()]
    plain = " ".join([str(len(locks)), *(_format_value(lock) for lock in locks)])
    return _print(process, options, "a(ssssuu)", [locks] if "json" in options else locks, plain)


def _call_method(process: Process, options: dict[str, list[str]], method: str, arguments: list[str]) -> int:
    logind = process.host.machine.logind
    if method in ("PowerOff", "Reboot") and arguments[:1] == ["b"]:
        (logind.power_off if method == "PowerOff" else logind.reboot)()
        return 0
    if method == "ScheduleShutdown" and len(arguments) == 3 and arguments[0] == "st" and arguments[2].isdecimal():
        logind.schedule(arguments[1], int(arguments[2]) / 1e6)
        return 0
    if method == "CancelScheduledShutdown" and not arguments:
        cancelled = logind.cancel_scheduled()
        return _print(process, options, "b", [cancelled] if "json" in options else cancelled)
    return process.fail(f"Call failed: Unknown method {method} or interface {_MANAGER}.")


_SHUTDOWN_FLAGS = {
    "-P": "poweroff",
    "--poweroff": "poweroff",
    "-h": "poweroff",
    "-r": "reboot",
    "--reboot": "reboot",
    "-c": "cancel",
    "--no-wall": "no-wall",
    "--show": "show",
}


async def shutdown(process: Process, argv: list[str]) -> int:
    """``shutdown [-P|-r] [TIME]``, ``shutdown -c``, ``shutdown --show``."""
    try:
        options, words = split_options(argv[1:], _SHUTDOWN_FLAGS, {})
    except UnknownOptionError as error:
        return process.fail(f"shutdown: {error}")
    logind = process.host.machine.logind
    if "show" in options:
        return _show(process)
    if not process.is_root:
        return process.fail(f"Failed to call ScheduleShutdown in logind, no action will be taken: {NOT_ROOT}")
    if "cancel" in options:
        logind.cancel_scheduled()
        return 0
    return await _schedule(process, "reboot" if "reboot" in options else "poweroff", words[0] if words else "+1")


async def _schedule(process: Process, kind: str, when: str) -> int:
    if when == "now":
        return await systemctl(process, ["systemctl", kind])
    at = parse_time(when, process.host.sim.now)
    if at is None:
        return process.fail(f"Failed to parse time specification: {when}")
    try:
        process.host.machine.logind.schedule(kind, at)
    except LogindError as error:
        return process.fail(f"Failed to call ScheduleShutdown in logind, no action will be taken: {error}")
    return _show(process)


def parse_time(text: str, now: float) -> float | None:
    """``+MINUTES`` or ``HH:MM`` (UTC), in seconds since the epoch; None for other texts."""
    if match := re.fullmatch(r"\+?(\d{1,6})", text):
        return now + 60.0 * int(match[1])
    clock = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", text)
    if not clock:
        return None
    today = datetime.fromtimestamp(now, UTC)
    at = today.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
    return (at if at > today else at + timedelta(days=1)).timestamp()


def _show(process: Process) -> int:
    scheduled = process.host.machine.logind.scheduled_shutdown()
    if scheduled is None:
        return process.fail("No scheduled shutdown.")
    kind, at = scheduled
    when = datetime.fromtimestamp(at, UTC).strftime("%a %Y-%m-%d %H:%M:%S UTC")
    name = "Reboot" if kind == "reboot" else "Shutdown"
    process.err(f"{name} scheduled for {when}, use 'shutdown -c' to cancel.\n")
    return 0


async def _alias(process: Process, argv: list[str]) -> int:
    return await systemctl(process, ["systemctl", argv[0], *argv[1:]])


PROGRAMS: dict[str, Program] = {
    "busctl": busctl,
    "shutdown": shutdown,
    "poweroff": _alias,
    "reboot": _alias,
}
