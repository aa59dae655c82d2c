"""Kinds of the host's network interfaces."""

from __future__ import annotations

from chaos.facts._rows import json_rows
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class LinkKinds(HostFact):
    """Mapping of interfaces to kinds as ip(8) names them: ``{"eth0": "veth"}``; "" for those of hardware, and lo."""

    name = "link-kinds"
    summary = "kinds of network interfaces (veth, bridge, vxlan)"
    command = HostCommand(("ip", "-d", "-j", "link", "show"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, str]:
        if exit_code:
            raise ValueError("ip did not list the interfaces (package iproute2)")
        rows = json_rows(stdout)
        return {str(row["ifname"]): str((row.get("linkinfo") or {}).get("info_kind", "")) for row in rows}


FACT = LinkKinds()
