"""``systemctl show`` of one or more units."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.model.command import HostCommand


def show_command(units: Sequence[str]) -> HostCommand:
    """Command whose output :func:`parse_unit` understands."""
    properties = "--property=Id,ActiveState,LoadState,UnitFileState"
    return HostCommand(("systemctl", "show", properties, *units), sudo=False)


def parse_unit(stdout: str, exit_code: int, names: Sequence[str]) -> str:
    """Name of the loaded unit in the output of ``systemctl show``, an active one first. Raises ValueError.

    If all are stopped, a unit that starts at boot: rke2 installs the units of servers and of agents everywhere.
    """
    units = []
    for block in stdout.split("\n\n"):
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if fields.get("LoadState") == "loaded":
            idle = fields.get("ActiveState") in ("inactive", "failed", None)
            enabled = fields.get("UnitFileState", "").startswith("enabled")
            units.append((fields.get("ActiveState") != "active", idle, not enabled, fields.get("Id", "")))
    if exit_code or not units:
        raise ValueError("none of " + ", ".join(names) + " is loaded")
    return min(units)[-1]


def parse_active_state(stdout: str, exit_code: int) -> str:
    """ActiveState in the output of ``systemctl show``. Raises ValueError."""
    state = stdout.strip().partition("ActiveState=")[2]
    if exit_code or not state:
        raise ValueError("systemd did not answer")
    return state
