"""Clock offset that nodefall has set on the host."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# Boot time by the unchanged clock, written before the clock is set. Uptime does not depend on the clock.
MARK_FILE = "/run/nodefall-clock"
# Prints the boot time by the present clock. Starting a program takes time: the uptimes before and after are averaged.
BOOT_TIME_SCRIPT = (
    "{ cat /proc/uptime; date +%s.%N; cat /proc/uptime; } | "
    "awk 'NF == 1 { now = $1 } NF == 2 { up += $1 / 2 } END { printf \"%.2f\\n\", now - up }'"
)


class ClockSkew(HostFact):
    """Whole number: seconds, 0 for an unchanged clock."""

    name = "clock-skew"
    summary = "seconds by which nodefall has set the clock ahead"
    command = HostCommand(
        ("sh", "-c", f"{BOOT_TIME_SCRIPT} && if test -e {MARK_FILE}; then cat {MARK_FILE}; fi"), sudo=False
    )

    def parse(self, stdout: str, exit_code: int) -> int:
        boot_times = [float(word) for word in stdout.split()]
        if exit_code or len(boot_times) not in (1, 2):
            raise ValueError("the boot time was not printed")
        return round(boot_times[0] - boot_times[-1])


FACT = ClockSkew()
