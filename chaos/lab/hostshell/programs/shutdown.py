"""shutdown(8), poweroff(8) and reboot(8) of systemd 251 and later, which all go through logind."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.options import UnknownOptionError, split_options
from chaos.lab.hostshell.programs.systemctl import NOT_ROOT, systemctl
from chaos.lab.node.logind import LogindError

_FLAGS = {
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
        options, words = split_options(argv[1:], _FLAGS, {})
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


PROGRAMS: dict[str, Program] = {"shutdown": shutdown, "poweroff": _alias, "reboot": _alias}
