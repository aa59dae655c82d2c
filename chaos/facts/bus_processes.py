"""The processes of D-Bus and of logind."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

BUS = ("dbus.service", "dbus-broker.service")
LOGIND = "systemd-logind.service"


class BusProcesses(HostFact):
    """``{"bus": 300, "logind": 310, "bus-unit": "dbus.service"}``; a process ID of 0 is a service that does not run."""

    name = "bus-processes"
    summary = "process IDs of D-Bus and of logind"
    command = HostCommand(("systemctl", "show", "--property=Id,LoadState,MainPID", *BUS, LOGIND), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, int | str]:
        found: dict[str, int | str] = {}
        for block in stdout.split("\n\n"):
            fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            pid, unit = int(fields.get("MainPID", "0")), fields.get("Id", "")
            if fields.get("LoadState") != "loaded":
                continue
            if unit == LOGIND:
                found["logind"] = pid
            elif not found.get("bus"):
                found |= {"bus": pid, "bus-unit": unit}
        if exit_code or "bus" not in found or "logind" not in found:
            raise ValueError("the host has no D-Bus or no logind")
        return found


FACT = BusProcesses()
