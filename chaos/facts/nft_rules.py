"""The rules of nodefall's own table in the host's packet filter."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

TABLE = "inet nodefall"
_END_OF_TABLES = "listed"
_PACKETS = re.compile(r"counter packets (\d+) ")


class NftRules(HostFact):
    """False where there is no such table, else ``{"packets": N}``: how many packets its rules have dropped."""

    name = "nft-rules"
    summary = "whether nodefall's packet filter table is there, and what it has dropped"
    command = HostCommand(
        ("sh", "-c", f"nft list tables && echo {_END_OF_TABLES} && nft list table {TABLE}"), accept=(0, 1)
    )

    def parse(self, stdout: str, exit_code: int) -> bool | dict[str, int]:
        if _END_OF_TABLES not in stdout.splitlines():  # exit code 1 is also that of a sudo that is not allowed
            raise ValueError("nft did not answer")
        if exit_code:
            return False
        return {"packets": sum(int(number) for number in _PACKETS.findall(stdout))}


FACT = NftRules()
