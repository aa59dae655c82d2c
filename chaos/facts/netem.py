"""nodefall's queueing discipline, which delays, drops or changes packets."""

from __future__ import annotations

from typing import Any

from chaos.facts._rows import json_rows
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

ROOT, EFFECT = "4e0f:", "4e10:"  # handles of nodefall's own; the kernel gives handles from 8000: on
IFB = "nodefall0"  # device through which inbound packets are redirected
_SCRIPT = "tc -s -j qdisc show && ip -j link show"


class Netem(HostFact):
    """False without that qdisc, else the mapping ``{"interface": "eth0", "passed": 80, "dropped": 20}`` of packets.

    The interface is ``nodefall0`` where only inbound packets are hit, also where only that device is left.
    """

    name = "netem"
    summary = "whether nodefall delays, drops or changes packets on an interface, and how many"
    command = HostCommand(("sh", "-c", _SCRIPT))  # as root: tc is in /sbin, which other users do not search

    def parse(self, stdout: str, exit_code: int) -> bool | dict[str, str | int]:
        if exit_code:
            raise ValueError("tc did not list the queueing disciplines (package iproute2)")
        rows, links = (json_rows(line) for line in _two_lines(stdout))
        found = {str(row.get("dev")) for row in rows if row.get("handle") == ROOT}
        found |= {IFB for link in links if link.get("ifname") == IFB}
        if not found:
            return False
        ours = [row for row in rows if row.get("handle") == EFFECT and row.get("dev") in found]
        return {"interface": min(found), **_counted(ours)}


def _two_lines(stdout: str) -> tuple[str, str]:
    """Raises ValueError; tc prints an empty line where there is none to list."""
    lines = stdout.strip("\n").split("\n") if stdout.strip() else []
    if len(lines) not in (1, 2):
        raise ValueError("tc and ip printed something else than a line each")
    return ("", lines[0]) if len(lines) == 1 else (lines[0], lines[1])


def _counted(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {name: sum(row.get(key, 0) for row in rows) for name, key in (("passed", "packets"), ("dropped", "drops"))}


FACT = Netem()
