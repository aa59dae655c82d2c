"""Start of PID 1: together with the boot ID the identity of a boot, also in containers, which share a boot ID."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_TICKS = 100  # USER_HZ of every Linux architecture that Kubernetes runs on (proc(5), field 22 of stat)


class Pid1Start(HostFact):
    """Whole number: seconds since the epoch, +-1, as the kernel rounds boot time and start time."""

    name = "pid1-start"
    summary = "start of PID 1, in seconds since the epoch"
    command = HostCommand(("cat", "/proc/1/stat", "/proc/stat"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> int:
        first, _, rest = stdout.partition("\n")
        boot_time = re.search(r"^btime (\d+)$", rest, re.MULTILINE)
        fields = first.rpartition(")")[2].split()  # the command's name may contain spaces and brackets
        if exit_code or not boot_time or len(fields) < 20:
            raise ValueError("no start time of PID 1")
        return int(boot_time[1]) + int(fields[19]) // _TICKS


FACT = Pid1Start()
