"""What time it is by the host's clock."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class HostTime(HostFact):
    """Seconds since the epoch."""

    name = "host-time"
    summary = "time by the host's clock, in seconds since the epoch"
    command = HostCommand(("date", "+%s.%N"), sudo=False, timeout=5.0)

    def parse(self, stdout: str, exit_code: int) -> float:
        """Busybox knows no ``%N``: whole seconds then, rounded to their middle."""
        whole, _, fraction = stdout.strip().partition(".")
        if exit_code or not (whole.isascii() and whole.isdigit()):
            raise ValueError("the host does not tell the time")
        return int(whole) + (float(f"0.{fraction}") if fraction.isascii() and fraction.isdigit() else 0.5)


FACT = HostTime()
