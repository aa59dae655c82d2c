"""Processes of D-Bus and of logind."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

BUS = ("dbus.service", "dbus-broker.service")
LOGIND = "systemd-logind.service"


class BusProcesses(HostFact):
    """Mapping ``{"bus": 300, "logind": 310, "bus-unit": "dbus.service"}``; the ID of a stopped service is 0."""

    name = "bus-processes"
    summary = "process IDs of D-Bus and of logind"
    command = HostCommand(("systemctl", "show", "--property=Id,LoadState,MainPID", *BUS, LOGIND), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, int | str]:
        processes: dict[str, int | str] = {}
        for block in stdout.split("\n\n"):
            fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            pid, unit = int(fields.get("MainPID", "0")), fields.get("Id", "")
            if fields.get("LoadState") != "loaded":
                continue
            if unit == LOGIND:
                processes["logind"] = pid
            elif not processes.get("bus"):
                processes |= {"bus": pid, "bus-unit": unit}
        if exit_code or "bus" not in processes or "logind" not in processes:
            raise ValueError("the host has no D-Bus or no logind")
        return processes


FACT = BusProcesses()
