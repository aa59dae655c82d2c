"""Transient services of systemd-run that exhaust a resource, and the host's view of memory, disk and process IDs.

The simulated shell cannot run such scripts; the resource is recognised by their text. Other scripts are rejected.
Services of a simulated host: their states, and how they start and stop.
kill, pidof and pgrep for the kubelet's process only, and ps.
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.hostshell.process import HostSystem, Process, Program, TransientService
from chaos.lab.node.kubelet.pod_worker import CAPACITY
from chaos.lab.node.kubelet.process import Resource
from chaos.lab.node.machine import Machine
from chaos.lab.objects import parse_quantity

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


_SWAP = "/dev/vda2"


def swaps(host: HostSystem) -> str:
    """proc_swaps(5)."""
    head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    swap = host.machine.swap // _KIB
    return f"{head}{_SWAP}{' ' * 31}partition\t{swap}\t\t0\t\t-2\n" if swap else head


FILES = {
    "/proc/loadavg": loadavg,
    "/proc/meminfo": meminfo,
    "/proc/swaps": swaps,
    "/proc/sys/kernel/pid_max": lambda _: f"{PID_MAX}\n",
    "/proc/sys/kernel/threads-max": lambda _: f"{_THREADS_MAX}\n",
}


async def swapoff(process: Process, argv: list[str]) -> int:
    """``swapoff PATH``, or ``--all``."""
    host = process.host
    if argv[1:] == ["--all"]:
        host.machine.swap = 0
        return 0
    if argv[1:] != [_SWAP] or not host.machine.swap:
        return process.fail(f"swapoff: {' '.join(argv[1:])}: swapoff failed: Invalid argument", 4)
    host.machine.swap = 0
    return 0


async def swapon(process: Process, argv: list[str]) -> int:
    """``swapon --priority -1 PATH``, of what is in /etc/fstab, or ``--all`` of that."""
    host = process.host
    size = int(parse_quantity(host.machine.spec.swap or "0"))
    if argv[1:] == ["--all"]:
        host.machine.swap = size
        return 0
    if argv[1:] != ["--priority", "-1", _SWAP] or not size:
        return process.fail(f"swapon: cannot open {argv[-1]}: No such file or directory", 255)
    if host.machine.swap:
        return process.fail(f"swapon: {_SWAP}: swapon failed: Device or resource busy", 255)
    host.machine.swap = size
    return 0


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


_Operation = Callable[[Machine], object]


def _restart_runtime(machine: Machine) -> None:
    machine.runtime.stop_service()
    machine.runtime.start_service()


_OPERATIONS: dict[str, dict[str, _Operation]] = {
    "kubelet.service": {
        "start": lambda machine: machine.kubelet.start(),
        "stop": lambda machine: machine.kubelet.stop(),
        "restart": lambda machine: machine.kubelet.restart(),
    },
    "containerd.service": {
        "start": lambda machine: machine.runtime.start_service(),
        "stop": lambda machine: machine.runtime.stop_service(),
        "restart": _restart_runtime,
    },
    "dbus.service": {"start": lambda _: None, "restart": lambda machine: machine.logind.restart_bus()},
    "systemd-logind.service": {"start": lambda _: None, "restart": lambda machine: machine.logind.restart()},
}
# Services without effect on the cluster, active after a boot.
ORDINARY = ("cron.service",)
SIGNALS = {"STOP": "19", "CONT": "18", "KILL": "9", "TERM": "15"}


def is_active(host: HostSystem, unit: str) -> bool | None:
    """Whether a unit is active; None if the host does not have it."""
    machine = host.machine
    if unit.removesuffix(".service") in host.services:
        return True
    if unit in ORDINARY:
        return unit not in host.stopped
    if unit not in _OPERATIONS or (unit == "systemd-logind.service" and not machine.spec.logind):
        return None
    running = {"kubelet.service": machine.kubelet.is_running, "containerd.service": machine.runtime.is_available}
    return running.get(unit, True)


def main_pid(host: HostSystem, unit: str) -> int | None:
    """Main PID of a unit; 0 without a process, None if the lab does not simulate one."""
    logind = host.machine.logind
    pids = {"systemd-logind.service": logind.pid, "dbus.service": logind.bus_pid}
    return host.machine.kubelet.pid if unit == "kubelet.service" else pids.get(unit)


def control(host: HostSystem, verb: str, unit: str) -> bool:
    """Start, stop or restart a unit; False if that is not simulated."""
    if verb == "stop" and unit.removesuffix(".service") in host.services:
        stop_filler(host, unit.removesuffix(".service"))
        return True
    if unit in ORDINARY:
        (host.stopped.add if verb == "stop" else host.stopped.discard)(unit)
        return True
    operation = _OPERATIONS.get(unit, {}).get(verb)
    if operation is None:
        return False
    operation(host.machine)
    return True


def signal_kubelet(host: HostSystem, name: str) -> bool:
    """Send the kubelet a signal, by name, with ``SIG`` or by number; False for one that is not simulated."""
    short = name.removeprefix("SIG")
    signal = next((key for key, number in SIGNALS.items() if short in (key, number)), "")
    kubelet = host.machine.kubelet
    operations = {"STOP": kubelet.freeze, "CONT": kubelet.thaw, "KILL": kubelet.kill, "TERM": kubelet.kill}
    if signal not in operations:
        return False
    operations[signal]()
    return True


async def kill(process: Process, argv: list[str]) -> int:
    """``kill [-s SIGNAL | -SIGNAL] PID...``."""
    words, signal = argv[1:], "TERM"
    if words[:1] == ["-s"]:
        signal, words = (words[1] if len(words) > 1 else ""), words[2:]
    elif words and words[0].startswith("-"):
        signal, words = words[0][1:], words[1:]
    if not words:
        return process.fail("kill: not enough arguments")
    for word in words:
        if word != str(process.host.machine.kubelet.pid) or word == "0":
            return process.fail(f"kill: sending signal to {word} failed: No such process")
        if not process.is_root:
            return process.fail(f"kill: sending signal to {word} failed: Operation not permitted")
        if not signal_kubelet(process.host, signal):
            return process.fail(f"kill: the lab does not simulate the signal {signal}")
    return 0


async def pidof(process: Process, argv: list[str]) -> int:
    """``pidof NAME`` and ``pgrep -x NAME``."""
    words = [word for word in argv[1:] if word != "-x"]
    if len(words) != 1 or words[0].startswith("-"):
        return process.fail(f"{argv[0]}: the lab simulates only {argv[0]} [-x] NAME", 2)
    pid = process.host.machine.kubelet.pid if words == ["kubelet"] else 0
    if pid:
        process.out(f"{pid}\n")
    return 0 if pid else 1


def _commands(host: HostSystem) -> list[tuple[int, str]]:
    """Process IDs and command lines; the kubelet's as of kubeadm."""
    kubelet = "/usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf"
    kubelet += " --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml"
    if host.machine.kubelet_identity == "hostname-override":
        kubelet += f" --hostname-override={host.machine.name}"
    pid = host.machine.kubelet.pid
    return [(1, "/sbin/init"), *([(pid, kubelet)] if pid else [])]


async def ps(process: Process, argv: list[str]) -> int:
    """``ps -eo`` with ``pid=,stat=,comm=``, ``pid=,unit=`` or ``pid=,args=``, of the simulated processes."""
    if argv[1:] == ["-eo", "pid=,args="]:
        process.out("".join(f"{pid:>7} {line}\n" for pid, line in _commands(process.host)))
        return 0
    columns = {"pid=,stat=,comm=": (0, 1), "pid=,unit=": (2,)}.get(argv[2] if argv[1:2] == ["-eo"] else "")
    if columns is None or len(argv) != 3:
        return process.fail("ps: the lab simulates only ps -eo with pid=,stat=,comm= or pid=,unit= or pid=,args=")
    machine = process.host.machine
    rows = [
        (1, ("Ss", "systemd", "init.scope")),
        (machine.logind.bus_pid, ("Ss", "dbus-daemon", "dbus.service")),
        (machine.logind.pid, ("Ss", "systemd-logind", "systemd-logind.service")),
        (machine.kubelet.pid, ("Tsl" if machine.kubelet.is_frozen else "Ssl", "kubelet", "kubelet.service")),
    ]
    for pid, cells in rows:
        if pid:
            process.out(f"{pid:>7} " + " ".join(f"{cells[column]:<4}" for column in columns).rstrip() + "\n")
    return 0


PROGRAMS: dict[str, Program] = {
    "df": df,
    "kill": kill,
    "pgrep": pidof,
    "pidof": pidof,
    "ps": ps,
    "swapoff": swapoff,
    "swapon": swapon,
}
