"""Rules of nodefall's table in the host's packet filter."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

TABLE = "inet nodefall"
_END_OF_TABLES = "listed"
_PACKETS = re.compile(r"counter packets (\d+) ")


class NftRules(HostFact):
    """False without that table, else the mapping ``{"packets": N}``: the packets that its rules have dropped."""

    name = "nft-rules"
    summary = "whether nodefall's packet filter table exists, and the packets it has dropped"
    command = HostCommand(
        ("sh", "-c", f"nft list tables && echo {_END_OF_TABLES} && nft list table {TABLE}"), accept=(0, 1)
    )

    def parse(self, stdout: str, exit_code: int) -> bool | dict[str, int]:
        if _END_OF_TABLES not in stdout.splitlines():  # sudo exits with 1 too, where it is not permitted
            raise ValueError("nft did not answer")
        if exit_code:
            return False
        return {"packets": sum(int(number) for number in _PACKETS.findall(stdout))}


FACT = NftRules()
