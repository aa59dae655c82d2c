"""Time by the host's clock."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell


class HostTime(HostFact):
    """Number: seconds since the epoch, with milliseconds."""

    name = "host-time"
    summary = "time by the host's clock, in seconds since the epoch"
    command = HostCommand(powershell("read-time"), timeout=10.0)

    def parse(self, stdout: str, exit_code: int) -> float:
        text = stdout.strip()
        if exit_code or not (text.isascii() and text.isdigit()):
            raise ValueError("the time is not understood")
        return int(text) / 1000


FACT = HostTime()
