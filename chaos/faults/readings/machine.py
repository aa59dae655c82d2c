"""Memory, CPUs, process IDs and parameters of the kernel.

Clocks of the host.
"""

from __future__ import annotations

import re
import shlex
from typing import Annotated

from pydantic import AfterValidator, Field

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact, lines
from chaos.core.field_types import Model
from chaos.faults.readings.identity import COUNTERS

# proc_swaps(5)
SWAPS = r"Filename\s[^\n]*\n" + lines(r"\S+[^\n]*\s(?:file|partition)\s+\d+\s+\d+\s+-?\d+")


@host_fact(
    "memory",
    "memory of the host, and the available part",
    HostCommand(("cat", "/proc/meminfo"), sudo=False),
    form=lines(r"[\w()]+: +\d+(?: kB)?"),
)
def memory(stdout: str, exit_code: int) -> dict[str, int]:
    """Mapping ``{"total": BYTES, "available": BYTES}``; available by the kubelet's count: free, inactive file cache."""
    values = {name: int(kib) * 1024 for name, kib in re.findall(r"^(\S+):\s+(\d+) kB$", stdout, re.MULTILINE)}
    if exit_code or not {"MemTotal", "MemFree", "Inactive(file)"} <= values.keys():
        raise ValueError("cannot parse /proc/meminfo")
    return {"total": values["MemTotal"], "available": values["MemFree"] + values["Inactive(file)"]}


@host_fact("swap", "swap of the host, in bytes", HostCommand(("cat", "/proc/swaps"), sudo=False), form=SWAPS)
def swap(stdout: str, exit_code: int) -> int:
    """Whole number: bytes, 0 if swap is off."""
    if exit_code or not re.fullmatch(SWAPS, stdout):
        raise ValueError("cannot parse /proc/swaps")
    _, *rows = stdout.splitlines()
    return sum(int(row.split()[2]) * 1024 for row in rows)


@host_fact(
    "pids",
    "limit of process IDs, and those in use",
    HostCommand(("cat", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max", "/proc/loadavg"), sudo=False),
    form=r"\d+\n\d+\n[\d.]+ [\d.]+ [\d.]+ \d+/\d+ \d+\n",
)
def pids(stdout: str, exit_code: int) -> dict[str, int]:
    """Mapping ``{"max": 32768, "running": 412}``: threads at most and at present, as counted by the kubelet."""
    words = stdout.split()
    if exit_code or len(words) != 7 or "/" not in words[5]:
        raise ValueError("cannot parse the limits in /proc")
    return {"max": min(int(words[0]), int(words[1])), "running": int(words[5].partition("/")[2])}


_USER_HZ = 100  # units of /proc/stat a second, on every architecture with systemd: include/asm-generic/param.h
_CPU_STAT = "/sys/fs/cgroup/system.slice/nodefall-cpu-filler.service/cpu.stat"
_TOTAL = re.compile(r"^cpu +((?:\d+ ?){8,10})$", re.MULTILINE)
_CPU = re.compile(r"^cpu\d+ ", re.MULTILINE)
_USED = re.compile(r"^usage_usec (\d+)$", re.MULTILINE)  # Documentation/admin-guide/cgroup-v2.rst, cpu.stat


@host_fact(
    "cpu-time",
    "seconds for which the host's CPUs were busy and idle, and those of nodefall's unit",
    HostCommand(("cat", "/proc/stat", _CPU_STAT), accept=(0, 1), sudo=False),
    form=lines(COUNTERS, r"[a-z_.]+ \d+"),
)
def cpu_time(stdout: str, exit_code: int) -> dict[str, float]:
    """Mapping ``{"cpus": 2, "busy": 812.4, "idle": 9020.1, "filler": 0.0}``: seconds since the boot, over all CPUs.

    ``idle`` includes the wait for disks. ``filler``: CPU seconds of nodefall's unit, 0.0 while it is not loaded.
    """
    total, cpus = _TOTAL.search(stdout), len(_CPU.findall(stdout))
    if exit_code not in (0, 1) or not total or not cpus:
        raise ValueError("cannot parse /proc/stat")
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, total[1].split()[:8])  # proc_stat(5)
    busy, waiting = user + nice + system + irq + softirq + steal, idle + iowait
    used = _USED.search(stdout)
    return {
        "cpus": cpus,
        "busy": busy / _USER_HZ,
        "idle": waiting / _USER_HZ,
        "filler": int(used[1]) / 1e6 if used else 0.0,
    }


_CGROUP_VERSIONS = {"cgroup2fs": 2, "tmpfs": 1}


@host_fact(
    "cgroup-version",
    "version of the control groups",
    HostCommand(("stat", "--file-system", "--format=%T", "/sys/fs/cgroup"), sudo=False),
    form=r"\w+\n",
)
def cgroup_version(stdout: str, exit_code: int) -> int:
    """Whole number: 2 or 1; hybrid counts as 1."""
    if exit_code or stdout.strip() not in _CGROUP_VERSIONS:
        raise ValueError("/sys/fs/cgroup is of an unknown type")
    return _CGROUP_VERSIONS[stdout.strip()]


@host_fact(
    "panic-timeout",
    "kernel.panic, the seconds from a panic to the next boot (0: never)",
    HostCommand(("cat", "/proc/sys/kernel/panic"), sudo=False),
    form=r"-?\d+\n",
)
def panic_timeout(stdout: str, exit_code: int) -> int:
    """Whole number, kernel.panic: seconds until a reboot; 0: never, negative: at once."""
    if exit_code:
        raise ValueError("there is no /proc/sys/kernel/panic")
    return int(stdout)


_SWAP = str.maketrans("./", "/.")


def _key(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_:@-]+)+", text):
        raise ValueError(f"{text!r} is not a kernel parameter; write vm.swappiness")
    return text


class SysctlParams(Model):
    key: Annotated[str, AfterValidator(_key)] = Field(description="The name of the parameter, such as vm.swappiness.")


def sysctl_path(key: str) -> str:
    """File of a parameter. As in sysctl(8), the first separator decides which of ``.`` and ``/`` separates."""
    dotted = re.search(r"[./]", key)
    return f"/proc/sys/{key.translate(_SWAP) if dotted and dotted[0] == '.' else key}"


@host_fact(
    "sysctl",
    "value of a kernel parameter",
    lambda _, options: HostCommand(("cat", sysctl_path(options.key))),
    params=SysctlParams,
    form=r"[^\n]*\n",
)
def sysctl(stdout: str, exit_code: int, options: SysctlParams) -> str:
    """Text: value of the parameter ``key``, a text for numbers too; several numbers are separated by one space."""
    if exit_code:
        raise ValueError(f"there is no kernel parameter {options.key} on the host")
    return " ".join(stdout.split())


def _require_words(text: str) -> str:
    if not shlex.split(text):
        raise ValueError("argv is empty")
    return text


class CommandExitParams(Model):
    argv: Annotated[str, AfterValidator(_require_words)] = Field(
        description="The program and its arguments, quoted as for a shell. It runs without a shell."
    )


@host_fact(
    "command-exit",
    "exit code of a read-only program",
    lambda _, options: HostCommand(tuple(shlex.split(options.argv)), timeout=10.0),
    params=CommandExitParams,
    form=None,
)
def command_exit(_stdout: str, exit_code: int, _options: CommandExitParams) -> int:  # only the exit code counts
    """Whole number: exit code of ``argv``, run as root without a shell; 127 for a program that does not exist."""
    return exit_code


@host_fact(
    "host-time",
    "time by the host's clock, in seconds since the epoch",
    HostCommand(("date", "+%s.%N"), sudo=False, timeout=5.0),
    form=r"\d+(?:\.(?:\d+|%?N))?\n",
)
def host_time(stdout: str, exit_code: int) -> float:
    """Number: seconds since the epoch, with a fraction."""
    # Busybox does not support %N: its whole seconds become their middle.
    whole, _, fraction = stdout.strip().partition(".")
    if exit_code or not (whole.isascii() and whole.isdigit()):
        raise ValueError("cannot parse the output of date")
    return int(whole) + (float(f"0.{fraction}") if fraction.isascii() and fraction.isdigit() else 0.5)


# Boot time by the unchanged clock, written before the clock is set. Uptime does not depend on the clock.
MARK_FILE = "/run/nodefall-clock"
# Prints the boot time by the present clock. Starting a program takes time: the uptimes before and after are averaged.
BOOT_TIME_SCRIPT = (
    "{ cat /proc/uptime; date +%s.%N; cat /proc/uptime; } | "
    "awk 'NF == 1 { now = $1 } NF == 2 { up += $1 / 2 } END { printf \"%.2f\\n\", now - up }'"
)


@host_fact(
    "clock-skew",
    "seconds by which nodefall has set the clock ahead",
    HostCommand(("sh", "-c", f"{BOOT_TIME_SCRIPT} && if test -e {MARK_FILE}; then cat {MARK_FILE}; fi"), sudo=False),
    form=r"(?:-?\d+(?:\.\d+)?\n){1,2}",
)
def clock_skew(stdout: str, exit_code: int) -> int:
    """Whole number: seconds, 0 for an unchanged clock."""
    boot_times = [float(word) for word in stdout.split()]
    if exit_code or len(boot_times) not in (1, 2):
        raise ValueError("the boot time was not printed")
    return round(boot_times[0] - boot_times[-1])


# Real-time clock with an alarm: it can power on a host without power control.
@host_fact(
    "rtc",
    "whether the host has a real-time clock with an alarm, and rtcwake (util-linux) to set it",
    HostCommand(("rtcwake", "-m", "show"), accept=(0, 1, 127)),
    form=r"(?:rtcwake: [^\n]+\n)*(?:alarm: [^\n]+\n)?",
)
def rtc(stdout: str, exit_code: int) -> bool:
    """True or false: true if rtcwake reads an alarm; ``-m show`` changes nothing."""
    if exit_code not in (0, 1, 127):
        raise ValueError("rtcwake did not answer")
    return exit_code == 0 and any(line.startswith("alarm:") for line in stdout.splitlines())
