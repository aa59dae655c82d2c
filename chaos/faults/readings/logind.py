"""logind: the locks that delay a shutdown, and pending shutdowns."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from chaos.core.command import HostCommand
from chaos.core.fact import ANY_TEXT, HostFact, host_fact, lines

NO_SHUTDOWN_SCHEDULED = '(st) "" 18446744073709551615'


NOT_PREPARING = "b false"


POWERS_OFF = 's "poweroff"'  # of a key
_MANAGER = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")


def _property(name: str, summary: str, property_: str, form: str) -> HostFact:
    """Make a fact from a property of logind's manager, in busctl's text format."""
    return host_fact(
        name,
        summary,
        HostCommand(("busctl", "get-property", *_MANAGER, property_), sudo=False),
        value='Text: type and value as busctl prints them: ``t 30000000``, ``s "poweroff"``, '
        '``(st) "poweroff" 1774000000``.',
        form=rf"{form}\n",
    )(_parse_property)


def _parse_property(stdout: str, exit_code: int) -> str:
    value = stdout.strip()
    if exit_code or not value:
        raise ValueError("logind did not answer")
    return value


# logind's limit on delay locks. No shutdown is graceful if it is shorter than the kubelet's grace period.
inhibit_delay_max = _property(
    "inhibit-delay-max", "logind's limit on delay locks, in microseconds", "InhibitDelayMaxUSec", r"t \d+"
)
# logind.conf(5), HandlePowerKey.
power_key = _property(
    "power-key", "what logind does when the power button is pressed", "HandlePowerKey", r's "[a-z-]*"'
)
# A shutdown has begun and waits for delay locks.
preparing_for_shutdown = _property(
    "preparing-for-shutdown", "whether a shutdown has begun", "PreparingForShutdown", "b (?:true|false)"
)
scheduled_shutdown = _property(
    "scheduled-shutdown",
    "kind and time (microseconds) of the scheduled shutdown",
    "ScheduledShutdown",
    r'\(st\) "[a-z-]*" \d+',
)


NOLOGIN_FILE = "/run/nologin"


# logind makes the file five minutes before a scheduled shutdown, and removes it when the shutdown is cancelled, unless
# it was restarted in between (systemd issue 20129). pam_nologin(8).
@host_fact(
    "nologin",
    "whether the host refuses logins of other users than root, by /run/nologin",
    HostCommand(("find", NOLOGIN_FILE, "-maxdepth", "0"), accept=(0, 1), sudo=False),
    form=rf"(?:{NOLOGIN_FILE}\n)?",
)
def nologin(stdout: str, exit_code: int) -> bool:
    """True or false: true while the file exists, as in the last minutes before a scheduled shutdown."""
    if exit_code not in (0, 1) or (exit_code == 0) != bool(stdout):
        raise ValueError("find did not answer")
    return exit_code == 0


LIST_INHIBITORS = HostCommand(("busctl", "--json=short", "call", *_MANAGER, "ListInhibitors"), sudo=False)


def parse_inhibitors(stdout: str, exit_code: int) -> list[dict[str, Any]]:
    """Parse the locks in busctl's JSON as {who, what, mode, why}. Raises ValueError."""
    if exit_code:
        raise ValueError("logind did not answer")
    try:
        locks = json.loads(stdout)["data"][0]
        return [{"who": who, "what": what, "mode": mode, "why": why} for what, who, why, mode, _, _ in locks]
    except (json.JSONDecodeError, KeyError, IndexError, TypeError) as error:
        raise ValueError("cannot parse logind's list of inhibitor locks") from error


def _delays_shutdown(lock: Mapping[str, Any]) -> bool:
    return lock["mode"] == "delay" and "shutdown" in lock["what"].split(":")


@host_fact("inhibitor-locks", "inhibitor locks held at logind", LIST_INHIBITORS, form=ANY_TEXT)
def inhibitor_locks(stdout: str, exit_code: int) -> list[dict[str, Any]]:
    """List of ``{"who": "kubelet", "what": "shutdown", "mode": "delay", "why": REASON}``, in logind's order."""
    return parse_inhibitors(stdout, exit_code)


@host_fact("inhibitor-holders", "programs that hold a delay lock on shutdown", LIST_INHIBITORS, form=ANY_TEXT)
def inhibitor_holders(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of names in logind, as ``["kubelet"]``; a program with two locks is listed twice."""
    return sorted(lock["who"] for lock in parse_inhibitors(stdout, exit_code) if _delays_shutdown(lock))


# The kubelet's delay lock on shutdown: without it a power-off is not graceful.
@host_fact("inhibitor-kubelet", "whether the kubelet holds a delay lock on shutdown", LIST_INHIBITORS, form=ANY_TEXT)
def inhibitor_kubelet(stdout: str, exit_code: int) -> bool:
    """True or false: whether the kubelet holds a delay lock."""
    return any(lock["who"] == "kubelet" and _delays_shutdown(lock) for lock in parse_inhibitors(stdout, exit_code))


@host_fact(
    "inhibitor-units",
    "systemd units of the programs that hold a delay lock on shutdown",
    HostCommand(("sh", "-c", f"{shlex.join(LIST_INHIBITORS.argv)} && ps -eo pid=,unit="), sudo=False),
    form=r"[^\n]+\n" + lines(r" *\d+ +[^\n]+"),
)
def inhibitor_units(stdout: str, exit_code: int) -> dict[str, str]:
    """Mapping of holder to unit, as ``{"kubelet": "kubelet.service"}``; "" for a program outside of services."""
    first, _, rest = stdout.partition("\n")
    if exit_code:
        raise ValueError("logind or ps did not answer")
    units = dict(line.split(None, 1) for line in rest.splitlines() if len(line.split(None, 1)) == 2)
    try:
        locks = json.loads(first)["data"][0]
        holders = [(who, str(pid)) for what, who, _, mode, _, pid in locks if mode == "delay" and "shutdown" in what]
    except (json.JSONDecodeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError("cannot parse logind's list of inhibitor locks") from error
    unit_by_holder = {who: units.get(pid, "").strip() for who, pid in holders}
    return {who: unit if unit.endswith(".service") else "" for who, unit in sorted(unit_by_holder.items())}


BUS = ("dbus.service", "dbus-broker.service")
LOGIND = "systemd-logind.service"


@host_fact(
    "bus-processes",
    "process IDs of D-Bus and of logind",
    HostCommand(("systemctl", "show", "--property=Id,LoadState,MainPID", *BUS, LOGIND), sudo=False),
    form=lines(r"(?:Id|LoadState|MainPID)=[^\n]*", ""),
)
def bus_processes(stdout: str, exit_code: int) -> dict[str, int | str]:
    """Mapping ``{"bus": 300, "logind": 310, "bus-unit": "dbus.service"}``; the ID of a stopped service is 0."""
    processes: dict[str, int | str] = {}
    for block in stdout.split("\n\n"):
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if not {"Id", "LoadState"} <= fields.keys():
            raise ValueError("systemd did not answer for each unit")
        pid, unit = int(fields.get("MainPID", "0")), fields["Id"]
        if fields.get("LoadState") != "loaded":
            continue
        if unit == LOGIND:
            processes["logind"] = pid
        elif not processes.get("bus"):
            processes |= {"bus": pid, "bus-unit": unit}
    if exit_code or "bus" not in processes or "logind" not in processes:
        raise ValueError("the host lacks D-Bus or logind")
    return processes
