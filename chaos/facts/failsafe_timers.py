"""Fail-safe timers that nodefall has armed on a host and that are still loaded."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class FailsafeTimers(HostFact):
    """Sorted list of unit names, as ``["nodefall-run-1a2b3c-stop.timer"]``."""

    name = "failsafe-timers"
    summary = "timers of nodefall that are still loaded"
    command = HostCommand(
        ("systemctl", "list-units", "--all", "--plain", "--no-legend", "--type=timer", "nodefall-*"), sudo=False
    )

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code:
            raise ValueError("systemd did not answer")
        return sorted(line.split()[0] for line in stdout.splitlines() if line.strip())


FACT = FailsafeTimers()
