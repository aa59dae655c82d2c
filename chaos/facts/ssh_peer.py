"""Peer of the host's SSH connection: nodefall, a jump host or a translated address."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class SshPeer(HostFact):
    """Mapping ``{"address": "10.0.0.9", "port": 22}``: the peer's address, the port of sshd; {} without SSH."""

    name = "ssh-peer"
    summary = "peer of nodefall's connection, as seen by the host"
    command = HostCommand(("printenv", "SSH_CONNECTION"), accept=(0, 1), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, str | int]:
        words = stdout.split()
        if exit_code == 1 and not words:
            return {}
        if len(words) != 4 or not words[3].isdecimal():
            raise ValueError(f"SSH_CONNECTION is {stdout.strip()[:80]!r}")
        return {"address": words[0].split("%")[0], "port": int(words[3])}


FACT = SshPeer()
