"""Peer of the host's SSH connection: nodefall, a jump host or a translated address."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.machine_address import plain_address
from chaos.model.windows import powershell


class ConnectionPeers(HostFact):
    """List of one address, as ``["10.0.0.9"]``. WinRM shows its client to no program: its service reports it."""

    name = "connection-peers"
    summary = "address that nodefall's connection comes from, as seen by the host"
    command = HostCommand(powershell("read-connection"))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        words = stdout.split()
        if exit_code or len(words) != 4:
            raise ValueError(f"SSH_CONNECTION is {stdout.strip()[:80]!r}")
        return [str(plain_address(words[0]))]


FACT = ConnectionPeers()
