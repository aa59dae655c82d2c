"""Peers of the host's management connections: nodefall, a jump host or a translated address among them."""

from __future__ import annotations

from chaos.facts.windows._addresses import parse_address
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell

# SSH_CONNECTION is exact. WinRM shows its client to no program, so everyone counts who is connected to its ports.
_SCRIPT = (
    'if($env:SSH_CONNECTION){"ssh $env:SSH_CONNECTION"}else{'
    "Get-NetTCPConnection -State Established -LocalPort 5985,5986 -ErrorAction SilentlyContinue|"
    '%{"winrm $($_.RemoteAddress)"}};exit 0'
)


class ConnectionPeers(HostFact):
    """Sorted list of addresses, as ``["10.0.0.9"]``: never empty, as one is that of this very connection."""

    name = "connection-peers"
    summary = "addresses that are connected to the host by SSH or WinRM, as seen by the host"
    command = HostCommand(powershell(_SCRIPT))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        rows = [line.split() for line in stdout.splitlines() if line.strip()]
        if exit_code or any(len(row) < 2 or row[0] not in ("ssh", "winrm") for row in rows):
            raise ValueError("the connections were not listed")
        if not rows:
            raise ValueError("nodefall's connection is neither to SSH nor to the ports 5985 and 5986 of WinRM")
        return sorted({str(parse_address(row[1])) for row in rows})


FACT = ConnectionPeers()
