"""CPU time of a simulated host: /proc/stat, and cpu.stat of the unit that keeps CPUs busy."""

from __future__ import annotations

import re

from chaos.lab.hostshell.process import HostSystem
from chaos.lab.node.kubelet.node_status import CAPACITY
from chaos.lab.objects.accessors import parse_quantity

TICKS = 100  # of the kernel's clock, per second
CPU_STAT = "/sys/fs/cgroup/system.slice/nodefall-cpu-filler.service/cpu.stat"
_USUAL = 0.05  # of each CPU


def cpu_count(host: HostSystem) -> int:
    """Number of CPUs."""
    return max(1, int(parse_quantity((CAPACITY | host.machine.spec.capacity)["cpu"])))


def busy_cpus(host: HostSystem, command: list[str], quota: str) -> float:
    """CPUs that the loops of the command keep busy; ``quota`` as of CPUQuota, "" without one."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", quota)
    return min(int(command[-1]), cpu_count(host), float(match[1]) / 100 if match else cpu_count(host))


def _filler(host: HostSystem) -> float:
    """CPU seconds of the fillers that run."""
    return sum((host.sim.now - service.since) * service.cpus for service in host.services.values())


def stat(host: HostSystem) -> str:
    """proc_stat(5); the start of PID 1 is that of the kernel."""
    cpus = cpu_count(host)
    total, filler = host.uptime * cpus, sum(host.ended_fillers) + _filler(host)
    busy = min(total, total * _USUAL + filler)
    line = f"{round(busy * TICKS)} 0 0 {round((total - busy) * TICKS)} 0 0 0 0 0 0"
    each = "".join(f"cpu{number} 0 0 0 0 0 0 0 0 0 0\n" for number in range(cpus))
    return f"cpu  {line}\n{each}btime {int(host.machine.pid1_start)}\nprocesses 1000\n"


def cpu_stat(host: HostSystem) -> str | None:
    """Content of the unit's cpu.stat; None while it is not loaded."""
    if "nodefall-cpu-filler" not in host.services:
        return None
    used = round(_filler(host) * 1e6)
    return f"usage_usec {used}\nuser_usec {used}\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"
