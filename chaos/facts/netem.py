"""nodefall's queueing discipline, which delays or drops packets."""

from __future__ import annotations

from chaos.facts._rows import json_rows
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

ROOT, NETEM = "4e0f:", "4e10:"  # handles of nodefall's own; the kernel gives handles from 8000: on


class Netem(HostFact):
    """False without that qdisc, else the mapping ``{"interface": "eth0", "passed": 80, "dropped": 20}`` of packets."""

    name = "netem"
    summary = "whether nodefall delays or drops packets on an interface, and how many"
    command = HostCommand(("tc", "-s", "-j", "qdisc", "show"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> bool | dict[str, str | int]:
        if exit_code:
            raise ValueError("tc did not list the queueing disciplines (package iproute2)")
        rows = json_rows(stdout)
        if not any(row.get("handle") == ROOT for row in rows):
            return False
        interface = next(str(row.get("dev")) for row in rows if row.get("handle") == ROOT)
        found = [row for row in rows if row.get("handle") == NETEM and row.get("dev") == interface]
        passed, dropped = (sum(row.get(name, 0) for row in found) for name in ("packets", "drops"))
        return {"interface": interface, "passed": passed, "dropped": dropped}


FACT = Netem()
