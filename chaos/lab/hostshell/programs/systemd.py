"""systemd-run (transient timers), systemd-inhibit --list, systemd-detect-virt.

journalctl(1), for one unit, in JSON.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Container

from chaos.lab.hostshell.process import HostSystem, Process, Program, TransientTimer, UnknownOptionError, split_options
from chaos.lab.hostshell.programs.cpu import busy_cpus
from chaos.lab.hostshell.programs.systemctl import NOT_ROOT
from chaos.lab.hostshell.programs.units import resource_of, start_filler
from chaos.lab.hostshell.shell import execute

_FLAGS = {
    "--no-block": "no-block",
    "--quiet": "quiet",
    "-q": "quiet",
    "--collect": "collect",
    "-G": "collect",
    "--scope": "scope",
}
_VALUED = {
    "--on-active": "on-active",
    "--timer-property": "timer-property",
    "--slice": "slice",
    "--unit": "unit",
    "-u": "unit",
    "--description": "description",
    "--property": "property",
    "-p": "property",
}
_TIMESPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|sec|seconds?|min|minutes?|m|h|hr|hours?|d|days?|)\s*")
_UNITS = {"u": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ACCURACY = 60.0  # systemd.timer(5): AccuracySec defaults to one minute


def parse_timespan(text: str) -> float | None:
    """Parse a time span of systemd.time(7) to seconds; None if it is invalid."""
    parts = _TIMESPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != re.sub(r"\s", "", text):
        return None
    return sum(float(number) * _UNITS["ms" if unit == "ms" else unit[:1]] for number, unit in parts)


async def systemd_run(process: Process, argv: list[str]) -> int:
    """``systemd-run --on-active=SPAN [--timer-property=AccuracySec=SPAN] [--unit=NAME] COMMAND...``."""
    option_words, command = _split_command(argv[1:])
    try:
        options, _ = split_options(option_words, _FLAGS, _VALUED)
    except UnknownOptionError as error:
        return process.fail(f"systemd-run: {error}")
    if "scope" in options:
        return await _run_scope(process, options, command)
    if "on-active" not in options:
        return _run_service(process, options, command)
    return _start_timer(process, options, command)


def _new_unit(process: Process, options: dict[str, list[str]], kind: str, taken: Container[str]) -> tuple[str, str]:
    """Name of a transient unit, and the reason why it cannot be created, else ""."""
    prefix = f"Failed to start transient {kind} unit: "
    if not process.is_root:
        return "", prefix + NOT_ROOT
    name = options.get("unit", [f"run-r{process.host.sim.rng.getrandbits(128):032x}"])[-1].removesuffix(f".{kind}")
    if name in taken:
        return name, f"{prefix}Unit {name}.{kind} was already loaded or has a fragment file."
    return name, ""


def _start_timer(process: Process, options: dict[str, list[str]], command: list[str]) -> int:
    delay = parse_timespan(options["on-active"][-1])
    if delay is None or not command:
        return process.fail("systemd-run: the lab simulates only systemd-run --on-active=SPAN COMMAND")
    accuracy = _accuracy(options.get("timer-property", []))
    if accuracy is None:
        return process.fail("systemd-run: the lab simulates no timer property but AccuracySec")
    host = process.host
    name, reason = _new_unit(process, options, "timer", host.timers)
    if reason:
        return process.fail(reason)
    due = host.sim.now + delay + host.sim.rng.uniform(0, accuracy)
    timer = host.sim.at(due, _elapse, host, name, command)
    host.timers[name] = TransientTimer(name, shlex.join(command), due, timer)
    process.err(f"Running timer as unit: {name}.timer\nWill run service as unit: {name}.service\n")
    return 0


def _run_service(process: Process, options: dict[str, list[str]], command: list[str]) -> int:
    """Run a transient service that exhausts a resource."""
    resource = resource_of(command)
    if resource is None:
        return process.fail("systemd-run: the lab simulates only services that use up memory, disk, PIDs or CPUs")
    host = process.host
    name, reason = _new_unit(process, options, "service", host.services)
    if reason:
        return process.fail(reason)
    properties = dict(text.split("=", 1) for text in options.get("property", ()) if "=" in text)
    cpus = busy_cpus(host, command, properties.get("CPUQuota", "")) if resource == "cpu" else 0.0
    start_filler(host, name, resource, parse_timespan(properties.get("RuntimeMaxSec", "")), cpus)
    process.err(f"Running as unit: {name}.service\n")
    return 0


async def _run_scope(process: Process, options: dict[str, list[str]], command: list[str]) -> int:
    """``systemd-run --scope --quiet --slice=SLICE COMMAND...``: runs it here."""
    if not command or "quiet" not in options or "slice" not in options:
        return process.fail("systemd-run: the lab simulates only --scope --quiet --slice=SLICE COMMAND...")
    _, reason = _new_unit(process, {}, "scope", ())
    if reason:
        return process.fail(reason)
    return await execute(process.replace(slice=options["slice"][-1]), command, "systemd-run")


def _split_command(words: list[str]) -> tuple[list[str], list[str]]:
    """Options, and the command, which starts at the first word that is not an option."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        if words[index] == "--":
            return words[:index], words[index + 1 :]
        index += 2 if words[index] in _VALUED else 1
    return words[:index], words[index:]


def _accuracy(properties: list[str]) -> float | None:
    accuracy: float | None = _ACCURACY
    for text in properties:
        name, _, value = text.partition("=")
        accuracy = parse_timespan(value) if name == "AccuracySec" else None
    return accuracy


def _elapse(host: HostSystem, name: str, command: list[str]) -> None:
    """Run the command of a timer, and unload the timer, as of RemainAfterElapse=no."""
    del host.timers[name]
    host.run_as_root(command)


async def systemd_inhibit(process: Process, argv: list[str]) -> int:
    """``systemd-inhibit --list``, as a table."""
    if argv[1:2] != ["--list"]:
        return process.fail("systemd-inhibit: the lab simulates only --list")
    heads = ("WHO", "UID", "USER", "PID", "COMM", "WHAT", "WHY", "MODE")
    rows = [
        (lock["who"], lock["uid"], "root", lock["pid"], lock["who"], lock["what"], lock["why"], lock["mode"])
        for lock in process.host.machine.logind.inhibitors()
    ]
    table = [tuple(str(cell) for cell in row) for row in (heads, *rows)]
    if "--no-legend" in argv:
        table = table[1:]
    widths = [max((len(row[i]) for row in table), default=0) for i in range(len(heads))]
    for row in table:
        process.out(" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")
    if "--no-legend" not in argv:
        process.out(f"\n{len(rows)} inhibitors listed.\n" if rows else "No inhibitors.\n")
    return 0


async def systemd_detect_virt(process: Process, argv: list[str]) -> int:
    """``systemd-detect-virt``: a virtual machine, not a container."""
    container = "--container" in argv or "-c" in argv
    process.out("none\n" if container else "kvm\n")
    return 1 if container else 0


_JOURNAL_VALUED = {
    "-u": "unit",
    "--unit": "unit",
    "-o": "output",
    "--output": "output",
    "--output-fields": "fields",
    "--since": "since",
    "-S": "since",
    "--grep": "grep",
    "-g": "grep",
}
_JOURNAL_FLAGS = {"-q": "quiet", "--quiet": "quiet", "--no-pager": "no-pager"}


async def journalctl(process: Process, argv: list[str]) -> int:
    """``journalctl -q -u UNIT -o json --since=-SPAN --grep=TEXT``; exit code 1 without a match, as systemd's."""
    try:
        options, words = split_options(argv[1:], _JOURNAL_FLAGS, _JOURNAL_VALUED)
    except UnknownOptionError as error:
        return process.fail(f"journalctl: {error}")
    since = options.get("since", [""])[-1]
    seconds = parse_timespan(since[1:]) if since.startswith("-") else None
    complete = "quiet" in options and options.get("output") == ["json"] and "unit" in options
    if words or seconds is None or not complete:
        return process.fail("journalctl: the lab simulates only journalctl -q -u UNIT -o json --since=-SPAN")
    if not process.is_root:
        return 1
    host, pattern = process.host, options.get("grep", [""])[-1]
    records = host.machine.journal.since(host.sim.now - seconds, options["unit"][-1])
    matches = [record for record in records if re.search(pattern, record.message)]
    for record in matches:
        stamp = f"{record.t:.6f}".replace(".", "")
        process.out(json.dumps({"__REALTIME_TIMESTAMP": stamp, "MESSAGE": record.message}) + "\n")
    return 0 if matches or not pattern else 1


PROGRAMS: dict[str, Program] = {
    "systemd-detect-virt": systemd_detect_virt,
    "systemd-inhibit": systemd_inhibit,
    "systemd-run": systemd_run,
    "journalctl": journalctl,
}
