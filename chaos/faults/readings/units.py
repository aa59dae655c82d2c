"""Units of systemd: those of the kubelet, the container runtime and the time synchronisation, and nodefall's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from pydantic import Field

from chaos.core.command import HostCommand
from chaos.core.fact import HostFact, host_fact, lines
from chaos.core.field_types import Model

_SHOWN = lines("(?:Id|ActiveState|LoadState|UnitFileState)=[^\\n]*", "")
_STATE = r"ActiveState=[a-z-]+\n"


def show_command(units: Sequence[str]) -> HostCommand:
    """The command whose output :func:`parse_unit` reads."""
    properties = "--property=Id,ActiveState,LoadState,UnitFileState"
    return HostCommand(("systemctl", "show", properties, *units), sudo=False)


def parse_unit(stdout: str, exit_code: int, names: Sequence[str]) -> str:
    """Name of the loaded unit in the output of ``systemctl show``, an active one first. Raises ValueError.

    If all are stopped, a unit that starts at boot: rke2 installs the units of servers and of agents everywhere.
    """
    units = []
    for block in stdout.split("\n\n"):
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if not {"Id", "LoadState"} <= fields.keys():
            raise ValueError("systemd did not answer for each unit")
        if fields["LoadState"] == "loaded":
            idle = fields.get("ActiveState") in ("inactive", "failed", None)
            enabled = fields.get("UnitFileState", "").startswith("enabled")
            units.append((fields.get("ActiveState") != "active", idle, not enabled, fields["Id"]))
    if exit_code or not units:
        raise ValueError("none of " + ", ".join(names) + " is loaded")
    return min(units)[-1]


def parse_active_state(stdout: str, exit_code: int) -> str:
    """ActiveState in the output of ``systemctl show``. Raises ValueError."""
    state = stdout.strip().partition("ActiveState=")[2]
    if exit_code or not state:
        raise ValueError("systemd did not answer")
    return state


def show_active_state(unit: str) -> HostCommand:
    """The command whose output :func:`parse_active_state` reads."""
    return HostCommand(("systemctl", "show", "--property=ActiveState", unit), sudo=False)


def _unit(name: str, summary: str, units: Sequence[str], value: str) -> HostFact:
    """Make a fact that names the unit, one of ``units``, that the host uses."""
    return host_fact(name, summary, show_command(units), value=value, form=_SHOWN)(partial(parse_unit, names=units))


def _state(name: str, summary: str, unit: str) -> HostFact:
    """Make a fact for the state of a unit; ``unit``: the fact that names the unit."""
    value = "Text: systemd's ActiveState: active, inactive, failed, activating, deactivating."
    return host_fact(
        name, summary, lambda known: show_active_state(str(known[unit])), needs=(unit,), value=value, form=_STATE
    )(parse_active_state)


def _filler(name: str, summary: str) -> HostFact:
    """Make a fact for the state of one of nodefall's own units."""
    value = "Text: systemd's ActiveState, as ``active``; ``inactive`` if the unit is not loaded."
    command = show_active_state(f"nodefall-{name}.service")
    return host_fact(name, summary, command, value=value, form=_STATE)(parse_active_state)


class UnitStateParams(Model):
    unit: str = Field(
        pattern=r"^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*$", description="The name of the unit, such as cron.service."
    )


@host_fact(
    "unit-state",
    "systemd's ActiveState of a unit",
    lambda _, options: show_active_state(options.unit),
    params=UnitStateParams,
    form=_STATE,
)
def unit_state(stdout: str, exit_code: int, _options: UnitStateParams) -> str:
    """Text: active, inactive, failed, activating or deactivating; inactive for a ``unit`` that is not loaded."""
    return parse_active_state(stdout, exit_code)


# Their names depend on the distribution.
KUBELET_UNITS = (
    "kubelet.service",
    "k3s.service",
    "k3s-agent.service",
    "rke2-server.service",
    "rke2-agent.service",
    "k0scontroller.service",
    "k0sworker.service",
    "snap.microk8s.daemon-kubelite.service",
    "snap.microk8s.daemon-kubelet.service",
    "snap.kubelet.daemon.service",
)
# Their main process is not the kubelet but its parent.
SUPERVISING_UNITS = ("rke2-server.service", "rke2-agent.service", "k0scontroller.service", "k0sworker.service")
RUNTIME_UNITS = ("containerd.service", "crio.service", "snap.microk8s.daemon-containerd.service", "docker.service")
TIME_SYNC_UNITS = (
    "chronyd.service",
    "chrony.service",
    "systemd-timesyncd.service",
    "ntpsec.service",
    "ntpd.service",
    "ntp.service",
    "openntpd.service",
)
kubelet_unit = _unit(
    "kubelet-unit",
    "systemd unit of the kubelet",
    KUBELET_UNITS,
    "Text: name of the loaded unit, as ``kubelet.service``; an active one before one that starts at boot.",
)
kubelet_state = _state("kubelet-state", "systemd's ActiveState of the kubelet's unit", "kubelet-unit")
runtime_unit = _unit(
    "runtime-unit",
    "systemd unit of the container runtime",
    RUNTIME_UNITS,
    "Text: name of the loaded unit, an active one first. In k3s and rke2 that of the kubelet contains the runtime.",
)
runtime_state = _state("runtime-state", "systemd's ActiveState of the container runtime's unit", "runtime-unit")
time_sync_unit = _unit(
    "time-sync-unit",
    "systemd unit of the time synchronisation",
    TIME_SYNC_UNITS,
    "Text: name of the loaded unit, an active one first.",
)
time_sync_state = _state("time-sync-state", "state of the time synchronisation's unit", "time-sync-unit")

cpu_filler = _filler("cpu-filler", "state of the unit by which nodefall keeps CPUs busy")
disk_filler = _filler("disk-filler", "state of the unit by which nodefall fills disk space")
memory_filler = _filler("memory-filler", "state of the unit by which nodefall fills memory")
pid_filler = _filler("pid-filler", "state of the unit by which nodefall fills process IDs")


@host_fact(
    "failsafe-timers",
    "timers of nodefall that are still loaded",
    HostCommand(
        ("systemctl", "list-units", "--all", "--plain", "--no-legend", "--type=timer", "nodefall-*"), sudo=False
    ),
    form=lines(r"nodefall-\S+\.timer +[a-z-]+ +[a-z-]+ +[a-z-]+[^\n]*"),
)
def failsafe_timers(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of unit names, as ``["nodefall-run-1a2b3c-stop.timer"]``."""
    if exit_code:
        raise ValueError("systemd did not answer")
    return sorted(line.split()[0] for line in stdout.splitlines() if line.strip())


# Version of systemd, on which the effect of cancelling a shutdown depends.
@host_fact(
    "systemd-version",
    "version of systemd",
    HostCommand(("systemctl", "--version"), sudo=False),
    form=r"systemd \d+[^\n]*\n(?:[+-][^\n]*\n)*",
)
def systemd_version(stdout: str, exit_code: int) -> int:
    """Whole number, as 252."""
    match = re.match(r"systemd (\d+)", stdout)
    if exit_code or not match:
        raise ValueError("no systemd")
    return int(match[1])
