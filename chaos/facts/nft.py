"""The nft(8) program."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class Nft(HostFact):
    """Text: the version, as ``1.0.6``."""

    name = "nft"
    summary = "version of nft(8)"
    command = HostCommand(("nft", "--version"))

    def parse(self, stdout: str, exit_code: int) -> str:
        match = re.search(r"v(\d+(?:\.\d+)+)", stdout)
        if exit_code or not match:
            raise ValueError("there is no nft on the host (package nftables)")
        return match[1]


FACT = Nft()
