"""systemctl: shutdown by logind, units of the host, and transient timers. Texts of systemd 252."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase

from chaos.lab.hostshell.process import HostSystem, Process, Program, TransientTimer, UnknownOptionError, split_options
from chaos.lab.hostshell.programs import cpu, disks
from chaos.lab.hostshell.programs.units import control, is_active, main_pid, signal_kubelet
from chaos.lab.node.logind import LogindError

NOT_ROOT = "Interactive authentication required."
_FLAGS = {
    name: name.lstrip("-")
    for name in (
        "--version",
        "--no-block",
        "--no-wall",
        "--no-pager",
        "--no-legend",
        "--plain",
        "--all",
        "--value",
        "--runtime",
    )
} | {
    "-a": "all",
    "-f": "force",
    "--force": "force",
    "-q": "quiet",
    "--quiet": "quiet",
    "-i": "ignore",
    "--no-ask-password": "ask",
}
_VALUED = {
    "-p": "property",
    "--property": "property",
    "-P": "only",
    "-t": "type",
    "--type": "type",
    "--message": "message",
    "-s": "signal",
    "--signal": "signal",
    "--kill-who": "who",
    "--kill-whom": "who",
}
_FEATURES = "+PAM +AUDIT +SELINUX +APPARMOR +IMA +SMACK +SECCOMP +GCRYPT -GNUTLS +OPENSSL default-hierarchy=unified"
_NOT_LOADED, _INACTIVE = 5, 3
_KUBELET_START = 5.0  # maximum simulated seconds that ``start`` waits
Verb = Callable[[Process, list[str], dict[str, list[str]]], Awaitable[int]]


def version_text(host: HostSystem) -> str:
    """Output of ``--version`` of the systemd tools."""
    version = host.machine.spec.systemd
    return f"systemd {version} ({version})\n{_FEATURES}\n"


def format_timespan(seconds: float) -> str:
    """Format a time span as systemd's format_timespan, to the microsecond: ``1min 40.500000s``."""
    micros = round(seconds * 1e6)
    minutes, micros = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h"] * bool(hours) + [f"{minutes}min"] * bool(minutes)
    whole, fraction = divmod(micros, 1_000_000)
    if whole or fraction or not parts:
        parts.append(f"{whole}.{fraction:06d}s" if fraction else f"{whole}s")
    return " ".join(parts)


async def systemctl(process: Process, argv: list[str]) -> int:
    """``systemctl [OPTION...] VERB ...``."""
    try:
        options, words = split_options(argv[1:], _FLAGS, _VALUED)
    except UnknownOptionError as error:
        return process.fail(f"systemctl: {error}")
    if "version" in options:
        process.out(version_text(process.host))
        return 0
    verb = words[0] if words else "list-units"
    if verb not in _VERBS:
        return process.fail(f"Unknown command verb {verb}.")
    return await _VERBS[verb](process, words, options)


async def _shut_down(process: Process, words: list[str], options: dict[str, list[str]]) -> int:
    """``poweroff`` and ``reboot``."""
    reboot = words[0] == "reboot"
    what = "reboot" if reboot else "power off"
    force = len(options.get("force", ()))
    if not process.is_root:
        return process.fail(f"Failed to {what} system via logind: {NOT_ROOT}")
    if force == 1:
        return process.fail(f"the lab does not simulate systemctl --force {words[0]}; only twice --force")
    machine = process.host.machine
    if force and not machine.logind.announces_forced:
        machine.power_off()
        if reboot:
            machine.power_on()
        return 0
    if not machine.spec.logind:  # systemctl then sends the request to PID 1
        machine.shut_down("reboot" if reboot else "poweroff")
        return 0
    try:
        (machine.logind.reboot if reboot else machine.logind.power_off)()
    except LogindError as error:
        return process.fail(f"Failed to {what} system via logind: {error}")
    return 0


def _unit_name(name: str) -> str:
    return name if name.endswith((".service", ".timer", ".target", ".socket", ".slice")) else f"{name}.service"


def _properties(host: HostSystem, unit: str) -> dict[str, str]:
    """Properties of a unit, in the order of ``systemctl show``."""
    active, pid = is_active(host, unit), main_pid(host, unit)
    timer = host.timers.get(unit.removesuffix(".timer")) if unit.endswith(".timer") else None
    result: dict[str, str] = {}
    if timer:
        elapse = format_timespan(timer.next_elapse - host.machine.pid1_start)
        result = {"Unit": f"{timer.name}.service", "NextElapseUSecMonotonic": elapse}
    is_loaded = active is not None or timer is not None
    is_running = timer is not None or bool(active)
    result |= {} if pid is None else {"MainPID": str(pid)}
    result |= {
        "Id": unit,
        "Names": unit,
        "Description": timer.description if timer else unit,
        "LoadState": "loaded" if is_loaded else "not-found",
        "ActiveState": "active" if is_running else "inactive",
        "SubState": "waiting" if timer else "running" if is_running else "dead",
        "UnitFileState": "transient" if timer else "enabled" if is_loaded else "",
    }
    if unit == cpu.UNIT:
        result |= cpu.properties(host)
    elif unit == disks.UNIT:
        result |= disks.properties(host)
    return result


async def _show(process: Process, words: list[str], options: dict[str, list[str]]) -> int:
    names = [name for value in options.get("property", []) + options.get("only", []) for name in value.split(",")]
    only_values = "value" in options or "only" in options
    blocks = []
    for unit in words[1:]:
        properties = _properties(process.host, _unit_name(unit))
        chosen = [(name, value) for name, value in properties.items() if not names or name in names]
        blocks.append("".join(f"{value}\n" if only_values else f"{name}={value}\n" for name, value in chosen))
    process.out("\n".join(blocks))
    return 0


async def _is_active(process: Process, words: list[str], options: dict[str, list[str]]) -> int:
    states = [_properties(process.host, _unit_name(unit))["ActiveState"] for unit in words[1:]]
    if "quiet" not in options:
        process.out("".join(f"{state}\n" for state in states))
    return 0 if "active" in states else _INACTIVE


async def _control(process: Process, words: list[str], options: dict[str, list[str]]) -> int:
    """``start``, ``stop`` and ``restart``."""
    for name in words[1:]:
        unit = _unit_name(name)
        if _properties(process.host, unit)["LoadState"] == "not-found":
            return process.fail(f"Failed to {words[0]} {unit}: Unit {unit} not {_missing_word(words[0])}.", _NOT_LOADED)
        if not process.is_root:
            return process.fail(f"Failed to {words[0]} {unit}: {NOT_ROOT}")
        if not _control_one(process, words[0], unit):
            return process.fail(f"the lab does not simulate systemctl {words[0]} {unit}")
        if words[0] == "stop" or unit != "kubelet.service" or "no-block" in options:
            continue
        if process.host.machine.is_stopping:  # the shutdown has taken the place of the unit's job
            return process.fail(f"Job for {unit} canceled.")
        await _wait_for_kubelet(process)
    return 0


def _missing_word(verb: str) -> str:
    return "loaded" if verb == "stop" else "found"


def _control_one(process: Process, verb: str, unit: str) -> bool:
    """Whether the unit could be controlled; False if that is not simulated."""
    timers = process.host.timers
    if unit.endswith(".timer"):
        if verb == "stop":
            timers.pop(unit.removesuffix(".timer")).timer.cancel()
        return True
    return control(process.host, verb, unit)


async def _kill(process: Process, words: list[str], options: dict[str, list[str]]) -> int:
    """``kill [-s SIGNAL] kubelet``."""
    signal = options.get("signal", ["TERM"])[-1]
    for name in words[1:]:
        unit = _unit_name(name)
        if is_active(process.host, unit) is None:
            return process.fail(f"Failed to kill unit {unit}: Unit {unit} not loaded.")
        if not process.is_root:
            return process.fail(f"Failed to kill unit {unit}: {NOT_ROOT}")
        if unit != "kubelet.service" or not main_pid(process.host, unit):
            return process.fail(f"Failed to kill unit {unit}: the lab simulates no process of it")
        if not signal_kubelet(process.host, signal):
            return process.fail(f"Failed to parse signal string {signal}.")
    return 0


async def _wait_for_kubelet(process: Process) -> None:
    """Wait until the kubelet runs, as ``start`` of a Type=notify unit does."""
    host = process.host
    end = host.sim.now + _KUBELET_START
    while not host.machine.kubelet.is_running and host.sim.now < end:
        await host.lockstep.wait_until(host.sim.now + 0.05)


def _timers(host: HostSystem, patterns: list[str]) -> list[TransientTimer]:
    chosen = [
        timer
        for timer in host.timers.values()
        if not patterns or any(fnmatchcase(f"{timer.name}.timer", pattern) for pattern in patterns)
    ]
    return sorted(chosen, key=lambda timer: timer.name)


async def _list_units(process: Process, words: list[str], options: dict[str, list[str]]) -> int:
    if options.get("type") != ["timer"]:
        return process.fail("the lab simulates only systemctl list-units --type=timer")
    for timer in _timers(process.host, words[1:]):
        process.out(f"{timer.name}.timer loaded active waiting {timer.description}\n")
    return 0


async def _list_timers(process: Process, words: list[str], options: dict[str, list[str]]) -> int:
    if "no-legend" not in options:
        process.out("NEXT LEFT LAST PASSED UNIT ACTIVATES\n")
    for timer in _timers(process.host, words[1:]):
        left = format_timespan(round(timer.next_elapse - process.host.sim.now))
        process.out(f"- {left} left - - {timer.name}.timer {timer.name}.service\n")
    return 0


async def _daemon_reload(process: Process, _: list[str], __: dict[str, list[str]]) -> int:
    if not process.is_root:
        return process.fail(f"Failed to reload daemon: {NOT_ROOT}")
    cpu.reload(process.host)
    disks.reload(process.host)
    return 0


async def _set_property(process: Process, words: list[str], options: dict[str, list[str]]) -> int:
    """``set-property --runtime UNIT ASSIGNMENT...``."""
    if len(words) < 3 or "runtime" not in options:
        return process.fail("the lab simulates only systemctl set-property --runtime UNIT ASSIGNMENT...")
    unit = _unit_name(words[1])
    if not process.is_root:
        return process.fail(f"Failed to set unit properties on {unit}: {NOT_ROOT}")
    if unit == disks.UNIT:
        return disks.set_properties(process, words[2:])
    return cpu.set_property(process, unit, " ".join(words[2:]))


async def _is_system_running(process: Process, _: list[str], __: dict[str, list[str]]) -> int:
    stopping = process.host.machine.logind.preparing_for_shutdown
    process.out("stopping\n" if stopping else "running\n")
    return 1 if stopping else 0


_VERBS: dict[str, Verb] = {
    "daemon-reload": _daemon_reload,
    "is-active": _is_active,
    "is-system-running": _is_system_running,
    "kill": _kill,
    "list-timers": _list_timers,
    "list-units": _list_units,
    "poweroff": _shut_down,
    "reboot": _shut_down,
    "restart": _control,
    "set-property": _set_property,
    "show": _show,
    "start": _control,
    "stop": _control,
}
PROGRAMS: dict[str, Program] = {"systemctl": systemctl}
