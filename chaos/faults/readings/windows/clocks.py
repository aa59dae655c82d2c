"""The clock of a Windows host."""

from __future__ import annotations

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact
from chaos.core.windows import powershell


@host_fact(
    "host-time",
    "time by the host's clock, in seconds since the epoch",
    HostCommand(powershell("read-time"), timeout=10.0),
)
def host_time(stdout: str, exit_code: int) -> float:
    """Number: seconds since the epoch, with milliseconds."""
    text = stdout.strip()
    if exit_code or not (text.isascii() and text.isdigit()):
        raise ValueError("cannot parse the time")
    return int(text) / 1000


@host_fact(
    "clock-skew",
    "seconds by which nodefall has set the clock ahead",
    HostCommand(powershell("read-clock")),
)
def clock_skew(stdout: str, exit_code: int) -> int:
    """Whole number: seconds, 0 for a clock that nodefall has not set.

    After a boot with a wrong clock it is what was set: the hardware's clock keeps it until the synchronisation is back.
    """
    numbers = [int(word) for word in stdout.split()]
    if exit_code or len(numbers) not in (2, 5):
        raise ValueError("the boot time was not printed")
    boot, now = numbers[:2]
    if len(numbers) == 2:
        return 0
    marked_boot, before, skew = numbers[2:]
    return round((now - before) / 1000) if boot == marked_boot else skew
