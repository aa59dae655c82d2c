"""Transient services of systemd-run that exhaust a resource, and the host's view of memory, disk and process IDs.

The simulated shell cannot run such scripts; the resource is recognised by their text. Other scripts are rejected.
"""

from __future__ import annotations

from chaos.lab.hostshell.process import HostSystem, Process, Program, TransientService
from chaos.lab.node.kubelet.machine_view import Resource
from chaos.lab.node.kubelet.node_status import CAPACITY
from chaos.lab.objects.accessors import parse_quantity

_KIB = 1024
PID_MAX, _THREADS_MAX, _THREADS = 16384, 63000, 400
_FREE = 0.75  # free share without a filler
# Half of the kubelet's eviction thresholds: what a filler leaves free.
_REMAINING = {"memory": 50 << 20, "disk": 0.05, "pid": PID_MAX // 20}
_SCRIPT_PATTERNS: dict[Resource, tuple[str, ...]] = {
    "memory": ("head -c", "/dev/zero", "| tail"),
    "disk": ("fallocate --length",),
    "pid": ("/proc/loadavg", "while", "&"),
    "cpu": ("while :; do :; done &", "wait"),
}


def resource_of(command: list[str]) -> Resource | None:
    """Resource that the command of a service exhausts; None for other commands."""
    script = command[2] if len(command) > 2 and command[:2] == ["sh", "-c"] else ""
    return next((kind for kind, patterns in _SCRIPT_PATTERNS.items() if all(text in script for text in patterns)), None)


def start_filler(host: HostSystem, name: str, resource: Resource, seconds: float | None, cpus: float = 0.0) -> None:
    """Start a filler, which runs until it is stopped, RuntimeMaxSec has passed, or power is lost."""
    timer = host.sim.at(host.sim.now + seconds, stop_filler, host, name) if seconds is not None else None
    host.services[name] = TransientService(resource, timer, host.sim.now, cpus)
    host.machine.pressure.add(resource)


def stop_filler(host: HostSystem, name: str) -> None:
    """Stop a filler, release its resource, and unload the unit, as of ``--collect``."""
    service = host.services.pop(name)
    host.ended_fillers.append((host.sim.now - service.since) * service.cpus)
    if service.timer is not None:
        service.timer.cancel()
    if all(other.resource != service.resource for other in host.services.values()):
        host.machine.pressure.discard(service.resource)


def _capacity(host: HostSystem, name: str) -> int:
    return int(parse_quantity((CAPACITY | host.machine.spec.capacity)[name]))


def meminfo(host: HostSystem) -> str:
    """proc_meminfo(5): the lines from which the kubelet computes memory.available."""
    total = _capacity(host, "memory")
    free = int(_REMAINING["memory"]) if "memory" in host.machine.pressure else int(total * _FREE)
    rows = {"MemTotal": total, "MemFree": free, "Inactive(file)": 0, "SwapTotal": host.machine.swap}
    return "".join(f"{name + ':':<16}{value // _KIB:>8} kB\n" for name, value in rows.items())


def loadavg(host: HostSystem) -> str:
    """proc_loadavg(5): the fourth field is running and existing threads."""
    threads = PID_MAX - int(_REMAINING["pid"]) if "pid" in host.machine.pressure else _THREADS
    return f"0.10 0.10 0.10 1/{threads} 4242\n"


def swaps(host: HostSystem) -> str:
    """proc_swaps(5)."""
    head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    swap = host.machine.swap // _KIB
    return f"{head}/dev/vda2{' ' * 31}partition\t{swap}\t\t0\t\t-2\n" if swap else head


FILES = {
    "/proc/loadavg": loadavg,
    "/proc/meminfo": meminfo,
    "/proc/swaps": swaps,
    "/proc/sys/kernel/pid_max": lambda _: f"{PID_MAX}\n",
    "/proc/sys/kernel/threads-max": lambda _: f"{_THREADS_MAX}\n",
}


async def df(process: Process, argv: list[str]) -> int:
    """``df -P -k PATH``: a single file system."""
    if len(argv) != 4 or set(argv[1:3]) != {"-P", "-k"}:
        return process.fail("df: the lab simulates only df -P -k PATH")
    host = process.host
    total = _capacity(host, "ephemeral-storage") // _KIB
    available = int(total * (_REMAINING["disk"] if "disk" in host.machine.pressure else _FREE))
    used = total - available
    process.out("Filesystem     1024-blocks      Used Available Capacity Mounted on\n")
    process.out(f"/dev/vda1 {total} {used} {available} {round(100 * used / total)}% /\n")
    return 0


PROGRAMS: dict[str, Program] = {"df": df}
