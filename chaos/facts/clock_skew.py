"""How far nodefall has set the clock wrong."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# Written before the clock is set: when the machine booted, by the clock as it was. Uptime goes on undisturbed.
MARK = "/run/nodefall-clock"
# On stdin of awk: a line with the boot time, as the clock says now.
BOOTED = "awk -v now=$(date +%s.%N) '{ printf \"%.2f\\n\", now - $1 }' /proc/uptime"


class ClockSkew(HostFact):
    """Whole seconds, 0 where nobody has."""

    name = "clock-skew"
    summary = "seconds by which nodefall has set the clock ahead"
    command = HostCommand(("sh", "-c", f"{BOOTED} && if test -e {MARK}; then cat {MARK}; fi"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> int:
        words = [float(word) for word in stdout.split()]
        if exit_code or len(words) not in (1, 2):
            raise ValueError("the host does not tell")
        return round(words[0] - words[-1])


FACT = ClockSkew()
