"""Rules of iptables. It has two back ends, and neither shows the rules of the other."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# The legacy tables are read only where the kernel has them: reading loads the module.
_SCRIPT = """echo legacy
grep -qs . /proc/net/ip_tables_names && iptables-legacy-save
grep -qs . /proc/net/ip6_tables_names && ip6tables-legacy-save
echo nft
iptables-nft-save && ip6tables-nft-save"""


class Iptables(HostFact):
    """Mapping ``{"legacy": {"filter": 3}, "nft": {"nat": 41}}``: number of rules by table, of both families."""

    name = "iptables"
    summary = "rules of iptables by back end and table"
    command = HostCommand(("sh", "-c", _SCRIPT))

    def parse(self, stdout: str, exit_code: int) -> dict[str, dict[str, int]]:
        if exit_code or not stdout.startswith("legacy\n"):
            raise ValueError("there is no iptables on the host")
        legacy, _, nft = stdout.partition("\nnft\n")
        return {"legacy": _rules(legacy), "nft": _rules(nft)}


def _rules(dump: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    table = ""
    for line in dump.splitlines():
        if match := re.match(r"\*(\w+)$", line):
            table = match[1]
        elif line.startswith("-A "):
            counts[table] = counts.get(table, 0) + 1
    return counts


FACT = Iptables()
