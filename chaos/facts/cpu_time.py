"""CPU time of the host, and of the unit by which nodefall keeps CPUs busy."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_USER_HZ = 100  # units of /proc/stat a second, on every architecture with systemd: include/asm-generic/param.h
_CPU_STAT = "/sys/fs/cgroup/system.slice/nodefall-cpu-filler.service/cpu.stat"
_TOTAL = re.compile(r"^cpu +((?:\d+ ?){8,10})$", re.MULTILINE)
_CPU = re.compile(r"^cpu\d+ ", re.MULTILINE)
_USED = re.compile(r"^usage_usec (\d+)$", re.MULTILINE)  # Documentation/admin-guide/cgroup-v2.rst, cpu.stat


class CpuTime(HostFact):
    """Mapping ``{"cpus": 2, "busy": 812.4, "idle": 9020.1, "filler": 0.0}``: seconds since the boot, over all CPUs.

    ``idle`` includes the wait for disks. ``filler``: CPU seconds of nodefall's unit, 0.0 while it is not loaded.
    """

    name = "cpu-time"
    summary = "seconds for which the host's CPUs were busy and idle, and those of nodefall's unit"
    command = HostCommand(("cat", "/proc/stat", _CPU_STAT), accept=(0, 1), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, float]:
        total, cpus = _TOTAL.search(stdout), len(_CPU.findall(stdout))
        if exit_code not in (0, 1) or not total or not cpus:
            raise ValueError("/proc/stat is not understood")
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, total[1].split()[:8])  # proc_stat(5)
        busy, waiting = user + nice + system + irq + softirq + steal, idle + iowait
        used = _USED.search(stdout)
        return {
            "cpus": cpus,
            "busy": busy / _USER_HZ,
            "idle": waiting / _USER_HZ,
            "filler": int(used[1]) / 1e6 if used else 0.0,
        }


FACT = CpuTime()
