"""How far nodefall has set the clock wrong."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# Written before the clock is set: when the machine booted, by the clock as it was. Uptime goes on undisturbed.
MARK_FILE = "/run/nodefall-clock"
# A line with the boot time, as the clock says now. To start a program may take its time: uptime is that halfway.
BOOT_TIME_SCRIPT = (
    "{ cat /proc/uptime; date +%s.%N; cat /proc/uptime; } | "
    "awk 'NF == 1 { now = $1 } NF == 2 { up += $1 / 2 } END { printf \"%.2f\\n\", now - up }'"
)


class ClockSkew(HostFact):
    """Whole seconds, 0 where nobody has."""

    name = "clock-skew"
    summary = "seconds by which nodefall has set the clock ahead"
    command = HostCommand(
        ("sh", "-c", f"{BOOT_TIME_SCRIPT} && if test -e {MARK_FILE}; then cat {MARK_FILE}; fi"), sudo=False
    )

    def parse(self, stdout: str, exit_code: int) -> int:
        words = [float(word) for word in stdout.split()]
        if exit_code or len(words) not in (1, 2):
            raise ValueError("the host does not tell")
        return round(words[0] - words[-1])


FACT = ClockSkew()
