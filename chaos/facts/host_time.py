"""Time by the host's clock."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class HostTime(HostFact):
    """Number: seconds since the epoch, with a fraction."""

    name = "host-time"
    summary = "time by the host's clock, in seconds since the epoch"
    command = HostCommand(("date", "+%s.%N"), sudo=False, timeout=5.0)

    def parse(self, stdout: str, exit_code: int) -> float:
        """Seconds with a fraction. Busybox does not support ``%N``: its whole seconds become their middle."""
        whole, _, fraction = stdout.strip().partition(".")
        if exit_code or not (whole.isascii() and whole.isdigit()):
            raise ValueError("date is not understood")
        return int(whole) + (float(f"0.{fraction}") if fraction.isascii() and fraction.isdigit() else 0.5)


FACT = HostTime()
