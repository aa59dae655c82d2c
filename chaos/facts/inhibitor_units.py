"""Units of the programs that hold a delay lock on shutdown."""

from __future__ import annotations

import json
import shlex

from chaos.facts.inhibitor_locks import LIST_INHIBITORS
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class InhibitorUnits(HostFact):
    """Mapping of holder to unit, as ``{"kubelet": "kubelet.service"}``; "" for a program outside of services."""

    name = "inhibitor-units"
    summary = "systemd units of the programs that hold a delay lock on shutdown"
    command = HostCommand(("sh", "-c", f"{shlex.join(LIST_INHIBITORS.argv)} && ps -eo pid=,unit="), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, str]:
        first, _, rest = stdout.partition("\n")
        if exit_code:
            raise ValueError("logind or ps did not answer")
        units = dict(line.split(None, 1) for line in rest.splitlines() if len(line.split(None, 1)) == 2)
        try:
            locks = json.loads(first)["data"][0]
            holders = [
                (who, str(pid)) for what, who, _, mode, _, pid in locks if mode == "delay" and "shutdown" in what
            ]
        except (json.JSONDecodeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError("logind's list of inhibitor locks is not understood") from error
        unit_by_holder = {who: units.get(pid, "").strip() for who, pid in holders}
        return {who: unit if unit.endswith(".service") else "" for who, unit in sorted(unit_by_holder.items())}


FACT = InhibitorUnits()
