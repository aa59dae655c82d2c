"""Clock offset that nodefall has set on the host."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell


class ClockSkew(HostFact):
    """Whole number: seconds, 0 for a clock that nodefall has not set.

    After a boot with a wrong clock it is what was set: the hardware's clock keeps it until the synchronisation is back.
    """

    name = "clock-skew"
    summary = "seconds by which nodefall has set the clock ahead"
    command = HostCommand(powershell("read-clock"))

    def parse(self, stdout: str, exit_code: int) -> int:
        numbers = [int(word) for word in stdout.split()]
        if exit_code or len(numbers) not in (2, 5):
            raise ValueError("the boot time was not printed")
        boot, now = numbers[:2]
        if len(numbers) == 2:
            return 0
        marked_boot, before, skew = numbers[2:]
        return round((now - before) / 1000) if boot == marked_boot else skew


FACT = ClockSkew()
