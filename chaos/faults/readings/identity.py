"""Identity of a machine and of its boot, and the rights of commands there."""

from __future__ import annotations

import re

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact, lines
from chaos.core.identity import REPORT, REPORT_LINES
from chaos.core.identity import stable_id as find_stable_id

_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"


# Boot ID of the kernel; a container has that of its host.
@host_fact(
    "boot-id",
    "boot ID of the kernel",
    HostCommand(("cat", "/proc/sys/kernel/random/boot_id"), sudo=False),
    form=rf"{_UUID}\n",
)
def boot_id(stdout: str, exit_code: int) -> str:
    """Text: a UUID in lower case."""
    text = stdout.strip()
    if exit_code or not text:
        raise ValueError("no boot ID")
    return text


COUNTERS = r"[a-z_]+\d*(?: +\d+)+ *"  # lines of /proc/stat and of cpu.stat
_TICKS = 100  # USER_HZ of every Linux architecture that Kubernetes runs on (proc(5), field 22 of stat)


# Start of PID 1: together with the boot ID the identity of a boot, also in containers, which share a boot ID.
@host_fact(
    "pid1-start",
    "start of PID 1, in seconds since the epoch",
    HostCommand(("cat", "/proc/1/stat", "/proc/stat"), sudo=False),
    form=r"1 \([^\n]*\) \S(?: -?\d+)+\n" + lines(COUNTERS),
)
def pid1_start(stdout: str, exit_code: int) -> int:
    """Whole number: seconds since the epoch, +-1, as the kernel rounds boot time and start time."""
    first, _, rest = stdout.partition("\n")
    boot_time = re.search(r"^btime (\d+)$", rest, re.MULTILINE)
    fields = first.rpartition(")")[2].split()  # the command's name may contain spaces and brackets
    if exit_code or not boot_time or len(fields) < 20:
        raise ValueError("no start time of PID 1")
    return int(boot_time[1]) + int(fields[19]) // _TICKS


# Machine ID, by which nodefall recognizes the machine that it runs on.
@host_fact(
    "machine-id",
    "identity of the installation",
    HostCommand(("cat", "/etc/machine-id"), sudo=False),
    form=r"(?:[0-9A-Fa-f-]{32,36}|uninitialized) *\n",
)
def machine_id(stdout: str, exit_code: int) -> str:
    """Text: 32 hexadecimal digits."""
    text = stdout.strip()
    if exit_code or not text:
        raise ValueError("no machine ID")
    return text


@host_fact(
    "stable-id",
    "ID that is the same after each boot: of the container, the installation or the firmware",
    HostCommand(REPORT, accept=(0, 1, 2), sudo=False),  # 2: some files are missing
    form=lines(*REPORT_LINES),
)
def stable_id(stdout: str, exit_code: int) -> str:
    """Text: ``container ID``, ``machine ID`` or ``system UUID``; "" where none of them is known to last over a boot."""
    if exit_code not in (0, 1, 2):
        raise ValueError("grep failed")
    return find_stable_id(stdout)


@host_fact(
    "system-uuid",
    "UUID of the machine (DMI)",
    HostCommand(("cat", "/sys/class/dmi/id/product_uuid")),
    form=rf"{_UUID} *\n",
)
def system_uuid(stdout: str, exit_code: int) -> str:
    """Text: DMI product UUID, which a kubelet reports as ``systemUUID``; unknown where there is no DMI."""
    uuid = stdout.strip().lower()
    if exit_code or not uuid:
        raise ValueError("the host has no DMI product UUID")
    return uuid


# systemd-detect-virt(1)
_CONTAINERS = (
    *("none", "openvz", "lxc", "lxc-libvirt", "systemd-nspawn", "docker", "podman", "rkt", "wsl", "proot", "pouch"),
    "container-other",
)


@host_fact(
    "shared-kernel",
    "whether the host is a container, which shares its kernel",
    HostCommand(("systemd-detect-virt", "--container"), accept=(0, 1), sudo=False),
    form=rf"(?:{'|'.join(_CONTAINERS)})\n",
)
def shared_kernel(stdout: str, exit_code: int) -> bool:
    """True or false: true in a container: a fault of the kernel affects all of its users."""
    if exit_code not in (0, 1) or not stdout.strip():
        raise ValueError("systemd-detect-virt did not answer")
    return stdout.strip() != "none"


@host_fact(
    "root",
    "whether commands run as root, through sudo unless the login user is root",
    HostCommand(("id", "-u")),
    form=r"\d+\n",
)
def root(stdout: str, exit_code: int) -> bool:
    """True or false: true if commands run as root: the login user is root, or sudo permits it."""
    if exit_code or not stdout.strip().isdecimal():
        raise ValueError("cannot parse the output of id")
    return stdout.strip() == "0"
