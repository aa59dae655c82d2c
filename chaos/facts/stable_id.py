"""The ID by which a host is recognized after a boot."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.stable_id import REPORT, stable_id


class StableId(HostFact):
    """Text: ``container ID``, ``machine ID`` or ``system UUID``; "" where none of them is known to last over a boot."""

    name = "stable-id"
    summary = "ID that is the same after each boot: of the container, the installation or the firmware"
    command = HostCommand(REPORT, accept=(0, 1, 2), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        if exit_code not in (0, 1, 2):  # 2: some files are missing
            raise ValueError("grep failed")
        return stable_id(stdout)


FACT = StableId()
