"""CPU quota of the kubelet's unit: ``systemctl set-property --runtime``, its drop-in, and cpu.stat.

CPU time of a simulated host: /proc/stat, and cpu.stat of the unit that keeps CPUs busy.
sysctl(8), for the kernel parameters that the simulation has: their values matter to no mechanism of the lab.
"""

from __future__ import annotations

import re

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.node.kubelet.pod_worker import CAPACITY
from chaos.lab.objects import parse_quantity

UNIT = "kubelet.service"
CGROUP = f"/system.slice/{UNIT}"
CPU_STAT = f"/sys/fs/cgroup{CGROUP}/cpu.stat"
_DROP_IN = f"/run/systemd/system.control/{UNIT}.d/50-CPUQuota.conf"
_ASSIGNMENT = re.compile(r"CPUQuota=(\d+(?:\.\d{1,2})?)%")


def set_property(process: Process, unit: str, assignment: str) -> int:
    """``set-property --runtime kubelet.service CPUQuota=PERCENT%``."""
    match = _ASSIGNMENT.fullmatch(assignment)
    if unit != UNIT or not match:
        return process.fail(f"the lab simulates only systemctl set-property --runtime {UNIT} CPUQuota=PERCENT%")
    process.host.machine.kubelet.cpu.limit(float(match[1]) / 100)
    process.host.run_files[_DROP_IN] = f"[Service]\n{assignment}\n"
    return 0


def reload(host: HostSystem) -> None:
    """Load the unit's files, as daemon-reload, which also applies them."""
    if _DROP_IN not in host.run_files:
        host.machine.kubelet.cpu.limit(None)


def properties(host: HostSystem) -> dict[str, str]:
    """Those of ``systemctl show`` that concern the quota."""
    share = host.machine.kubelet.cpu.share
    is_stale = share is not None and _DROP_IN not in host.run_files
    return {
        "CPUQuotaPerSecUSec": "infinity" if share is None else _format_span(round(share * 1e6)),
        "ControlGroup": CGROUP if host.machine.kubelet.is_running else "",
        "DropInPaths": "" if share is None else _DROP_IN,
        "NeedDaemonReload": "yes" if is_stale else "no",
    }


def _format_span(micros: int) -> str:
    """format_timespan of systemd, for up to a second."""
    if micros >= 10**6:
        return f"{micros // 10**6}s"
    text = f"{micros / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{text}ms" if micros >= 1000 else f"{micros}us"


def cpu_stat(host: HostSystem) -> str | None:
    """Content of cpu.stat; None without a process."""
    if not host.machine.kubelet.is_running:
        return None
    used, throttled = host.machine.kubelet.cpu.usage()
    return (
        f"usage_usec {round(used * 1e6)}\nuser_usec {round(used * 1e6)}\nsystem_usec 0\n"
        f"nr_periods 0\nnr_throttled 0\nthrottled_usec {round(throttled * 1e6)}\n"
    )


async def rm(process: Process, argv: list[str]) -> int:
    """``rm --force FILE...`` in /run."""
    if argv[1:2] != ["--force"] or not all(path.startswith("/run/") for path in argv[2:]):
        return process.fail("rm: the lab simulates only rm --force of files in /run")
    logind = process.host.machine.logind
    for path in argv[2:]:
        if path == "/run/nologin" and process.is_root:
            logind.refuses_logins = False
        if path in process.host.run_files and not process.is_root:
            return process.fail(f"rm: cannot remove '{path}': Permission denied")
        process.host.run_files.pop(path, None)
    return 0


TICKS = 100  # of the kernel's clock, per second
FILLER_CPU_STAT = "/sys/fs/cgroup/system.slice/nodefall-cpu-filler.service/cpu.stat"
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


def proc_stat(host: HostSystem) -> str:
    """proc_stat(5); the start of PID 1 is that of the kernel."""
    cpus = cpu_count(host)
    total, filler = host.uptime * cpus, sum(host.ended_fillers) + _filler(host)
    busy = min(total, total * _USUAL + filler)
    line = f"{round(busy * TICKS)} 0 0 {round((total - busy) * TICKS)} 0 0 0 0 0 0"
    each = "".join(f"cpu{number} 0 0 0 0 0 0 0 0 0 0\n" for number in range(cpus))
    return f"cpu  {line}\n{each}btime {int(host.machine.pid1_start)}\nprocesses 1000\n"


def filler_cpu_stat(host: HostSystem) -> str | None:
    """Content of the unit's cpu.stat; None while it is not loaded."""
    if "nodefall-cpu-filler" not in host.services:
        return None
    used = round(_filler(host) * 1e6)
    return f"usage_usec {used}\nuser_usec {used}\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"


# Defaults of a Debian 12 kernel; a boot restores them.
PARAMETERS = {
    "fs.file-max": "9223372036854775807",
    "net.core.default_qdisc": "pfifo_fast",
    "net.core.somaxconn": "4096",
    "net.ipv4.ip_forward": "1",
    "net.ipv4.tcp_keepalive_time": "7200",
    "vm.max_map_count": "65530",
    "vm.overcommit_memory": "1",
    "vm.swappiness": "60",
}


def parameter_file(name: str) -> str:
    """Its file in /proc."""
    return "/proc/sys/" + name.replace(".", "/")


def read_parameter(name: str, host: HostSystem) -> str:
    """Content of its file."""
    return host.parameters.get(name, PARAMETERS[name]) + "\n"


async def sysctl(process: Process, argv: list[str]) -> int:
    """``sysctl [-n] NAME...`` and ``sysctl -w NAME=VALUE...``."""
    options = [word for word in argv[1:] if word.startswith("-")]
    words = [word for word in argv[1:] if not word.startswith("-")]
    if not words or not {"-n", "-w", "--values", "--write"}.issuperset(options):
        return process.fail("sysctl: the lab simulates only sysctl [-n] NAME... and sysctl -w NAME=VALUE...")
    return max([_apply(process, word, quiet={"-n", "--values"}.intersection(options) != set()) for word in words])


def _apply(process: Process, word: str, *, quiet: bool) -> int:
    name, assigned, value = word.partition("=")
    if name not in PARAMETERS:
        return process.fail(f"sysctl: cannot stat {parameter_file(name)}: No such file or directory", 255)
    if assigned and process.user != "root":
        return process.fail(f'sysctl: permission denied on key "{name}"', 255)
    if assigned:
        process.host.parameters[name] = value
    shown = read_parameter(name, process.host)
    process.out(shown if quiet else f"{name} = {shown}")
    return 0


PROGRAMS: dict[str, Program] = {
    "rm": rm,
    "sysctl": sysctl,
}
