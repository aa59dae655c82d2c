"""The files that programs of the simulated hosts can read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chaos.lab.hostshell.process import HostSystem, Process
from chaos.lab.hostshell.programs import cpu_time
from chaos.lab.hostshell.programs.cpu_quota import CPU_STAT, cpu_stat
from chaos.lab.hostshell.programs.cpu_time import TICKS
from chaos.lab.hostshell.programs.disk_limits import IO_MAX, io_max
from chaos.lab.hostshell.programs.mounts import mountinfo
from chaos.lab.hostshell.programs.sysctl import PARAMETERS, parameter_file, read_parameter
from chaos.lab.hostshell.programs.transient_units import FILES
from chaos.lab.node.kubelet.client_certificate import FILE as CLIENT_CERTIFICATE
from chaos.lab.node.kubelet.client_certificate import TARGET, client_certificate

_ROOT_ONLY = ("/sys/class/dmi/id/product_uuid", CLIENT_CERTIFICATE, TARGET)


def _stat_of_pid1(host: HostSystem) -> str:
    """proc(5): field 22 is the start in ticks since boot; the machine's kernel starts with PID 1 here."""
    fields = ["1", "(systemd)", "S", "0", "1", "1", "0", "-1", "4194560"]
    return " ".join(fields + ["0"] * 12 + [str(round(_pid1_delay(host) * TICKS))] + ["0"] * 30) + "\n"


def _pid1_delay(host: HostSystem) -> float:
    """Start of PID 1 after btime, which has whole seconds."""
    return host.machine.pid1_start - int(host.machine.pid1_start)


def _client_certificate(host: HostSystem) -> str | None:
    if host.machine.kubelet_identity != "certificate":
        return None
    return host.machine.mounted_certificate or client_certificate(host.machine.name)


_FILES: dict[str, Callable[[HostSystem], str | None]] = {  # None: the file does not exist
    "/etc/machine-id": lambda host: host.machine.machine_id + "\n",
    "/sys/class/dmi/id/product_uuid": lambda host: host.machine.system_uuid + "\n",
    CLIENT_CERTIFICATE: _client_certificate,
    TARGET: _client_certificate,
    "/run/systemd/container": lambda host: "docker" if host.machine.container_id else None,
    "/etc/hostname": lambda host: host.machine.name + "\n",
    "/proc/sys/kernel/panic": lambda host: f"{host.machine.spec.panic_timeout}\n",
    "/proc/sys/kernel/random/boot_id": lambda host: host.machine.boot_id + "\n",
    "/proc/1/stat": _stat_of_pid1,
    CPU_STAT: cpu_stat,
    IO_MAX: io_max,
    "/sys/fs/cgroup/cgroup.controllers": lambda _: "cpuset cpu io memory hugetlb pids rdma misc\n",
    "/proc/self/mountinfo": mountinfo,
    "/proc/1/comm": lambda _: "systemd\n",
    "/proc/stat": cpu_time.stat,
    cpu_time.CPU_STAT: cpu_time.cpu_stat,
    "/proc/uptime": lambda host: f"{host.uptime:.2f} {host.uptime:.2f}\n",
    **FILES,
    **{parameter_file(name): partial(read_parameter, name) for name in PARAMETERS},
}


def read_file(process: Process, path: str) -> tuple[str | None, str]:
    """The content; None and the reason if the file does not exist or is not readable by the user."""
    if path in _ROOT_ONLY and not process.is_root:
        return None, "Permission denied"
    known = _FILES.get(path)
    host = process.host
    if path in host.machine.hidden_files:
        return "", ""  # /dev/null
    text = known(host) if known else host.run_files.get(path, host.machine.files.get(path))
    return text, "" if text is not None else "No such file or directory"
