"""Reaction of the kernel to a panic."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class PanicTimeout(HostFact):
    """Whole number, kernel.panic: seconds until a reboot; 0: never, negative: at once."""

    name = "panic-timeout"
    summary = "kernel.panic, the seconds from a panic to the next boot (0: never)"
    command = HostCommand(("cat", "/proc/sys/kernel/panic"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> int:
        if exit_code:
            raise ValueError("there is no /proc/sys/kernel/panic")
        return int(stdout)


FACT = PanicTimeout()
