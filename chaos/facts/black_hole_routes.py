"""Networks that the host routes into a black hole."""

from __future__ import annotations

from chaos.facts._rows import json_rows
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_SHOW = "route show type blackhole"


class BlackHoleRoutes(HostFact):
    """List of networks in CIDR: ``["10.244.1.64/26"]``, without the default route.

    Calico routes each block of addresses that it has given to pods of this node into a black hole, so that addresses
    without a pod leave the host no more (confd's and Felix' routes with protocol 80 or bird).
    """

    name = "black-hole-routes"
    summary = "networks that the host routes into a black hole, as Calico its blocks of pod addresses"
    command = HostCommand(("sh", "-c", f"ip -j -4 {_SHOW} && ip -j -6 {_SHOW}"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code:
            raise ValueError("ip did not list the routes (package iproute2)")
        found = [str(row["dst"]) for line in stdout.splitlines() for row in json_rows(line) if "dst" in row]
        return [network for network in found if network != "default"]


FACT = BlackHoleRoutes()
