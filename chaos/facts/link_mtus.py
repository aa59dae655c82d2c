"""Largest packets of the host's network interfaces."""

from __future__ import annotations

from chaos.facts._rows import json_rows
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class LinkMtus(HostFact):
    """Mapping of interfaces to their MTU in bytes: ``{"lo": 65536, "eth0": 9001}``."""

    name = "link-mtus"
    summary = "bytes of the largest packet of each network interface"
    command = HostCommand(("ip", "-j", "link", "show"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, int]:
        if exit_code:
            raise ValueError("ip did not list the interfaces (package iproute2)")
        rows = json_rows(stdout)
        return {str(row["ifname"]): int(row["mtu"]) for row in rows if isinstance(row.get("mtu"), int)}


FACT = LinkMtus()
