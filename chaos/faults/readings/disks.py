"""File systems and disks, and how much of a disk a unit may use."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from chaos.core.command import HostCommand
from chaos.core.fact import FactRef, Known, host_fact, lines
from chaos.core.field_types import DISK_UNIT, DiskUnit, Model, MountPath

MOUNT = r"\d+ \d+ \d+:\d+ [^\n]* - \S+ [^\n]*"  # proc_pid_mountinfo(5)


KUBELET_ROOT = "/var/lib/kubelet"


def _disk_command(known: Known) -> HostCommand:
    root = known["kubelet-flags"].get("root-dir", KUBELET_ROOT)
    # The directory is part of the value, so print it too.
    return HostCommand(("sh", "-c", 'echo "$1" && df -P -k "$1"', "nodefall", root))


# File system of the kubelet's directory, called nodefs by the kubelet.
@host_fact(
    "disk",
    "file system of the kubelet's directory, and the available part",
    _disk_command,
    needs=("kubelet-flags",),
    form=r"/[^\n]*\n[^\n]+\n[^\n]+? +\d+ +\S+ +\d+ +\S+ +/[^\n]*\n",  # the second line is translated
)
def disk(stdout: str, exit_code: int) -> dict[str, int | str]:
    """Mapping ``{"root": "/var/lib/kubelet", "total": BYTES, "available": BYTES, "mount": "/"}``."""
    lines = stdout.splitlines()
    fields = lines[2].split() if len(lines) == 3 else []
    if exit_code or len(fields) < 6 or not fields[1].isdecimal() or not fields[3].isdecimal():
        raise ValueError("cannot parse the output of df")
    total, available = int(fields[1]) * 1024, int(fields[3]) * 1024
    return {"root": lines[0], "total": total, "available": available, "mount": fields[5]}


_MOUNT_LINE = re.compile(  # proc_pid_mountinfo(5)
    r"\d+ \d+ (?P<device>\d+:\d+) (?P<root>\S+) (?P<path>\S+) (?P<options>\S+)(?: \S+:\d+| unbindable)*"
    r" - (?P<type>\S+) (?P<source>\S+) \S+"
)
# rmdir(2) asks the kernel for a write before it looks for the name (fs/namei.c, mnt_want_write in do_rmdir): it fails
# with EROFS on a file system that is read-only and with ENOENT on others, and changes neither.
_MOUNT_SCRIPT = 'LC_ALL=C rmdir "$1/.nodefall-absent" 2>&1; cat /proc/self/mountinfo'
_WRITE_ERRORS = {"No such file or directory": True, "Read-only file system": False}


class MountParams(Model):
    path: MountPath = Field(description="The mount point, such as /var/lib/data.")


@host_fact(
    "mount",
    "file system that is mounted at a path, and whether it can be changed",
    lambda _, options: HostCommand(("sh", "-c", _MOUNT_SCRIPT, "nodefall", options.path)),
    params=MountParams,
    form=r"[^\n]*: [^\n]+\n" + lines(MOUNT),
)
def mount(stdout: str, exit_code: int, options: MountParams) -> dict[str, str | bool]:
    """Mapping ``{"source": "/dev/vdb1", "type": "ext4", "options": "rw,relatime", "whole": true, "with-root": false,
    "writable": true}``, or {} if nothing is mounted at ``path``.

    ``options`` of this mount, without those of the file system. ``whole``: not a directory or subvolume of it.
    ``with-root``: the file system is that of /. ``writable``: by an attempt to change it.
    """
    rows = [match for line in stdout.splitlines() if (match := _MOUNT_LINE.fullmatch(line))]
    top = {row["path"]: row for row in rows}  # a later mount hides an earlier one
    if exit_code or "/" not in top:
        raise ValueError("cannot parse mountinfo")
    found = top.get(options.path)
    if found is None:
        return {}
    error = stdout.partition("\n")[0].rpartition(": ")[2]
    if error not in _WRITE_ERRORS:
        raise ValueError(f"the attempt to change the file system failed: {error}")
    return {
        "source": found["source"],
        "type": found["type"],
        "options": found["options"],
        "whole": found["root"] == "/",
        "with-root": found["device"] == top["/"]["device"],
        "writable": _WRITE_ERRORS[error],
    }


PROPERTIES = ("IOReadBandwidthMax", "IOWriteBandwidthMax", "IOReadIOPSMax", "IOWriteIOPSMax")
# systemd writes drop-ins of a transient unit, as the kubelet's kubepods.slice, to the second (core/unit.c,
# unit_drop_in_dir).
DIRECTORIES = ("/run/systemd/system.control", "/run/systemd/transient")


class DiskLimitParams(Model):
    unit: DiskUnit = Field(description="The unit whose control group is limited, such as kubepods.slice.")
    path: MountPath | None = Field(
        None, description="A path on the disk, such as /var/lib/kubelet. By default, no disk."
    )


def cgroup_of(unit: str) -> str:
    """The directory of the unit's control group; services are in system.slice."""
    return f"/sys/fs/cgroup/{unit}" if unit.endswith(".slice") else f"/sys/fs/cgroup/system.slice/{unit}"


def limit_files(unit: str) -> tuple[str, ...]:
    """The files that ``systemctl set-property --runtime`` writes for the properties."""
    return tuple(f"{directory}/{unit}.d/50-{name}.conf" for directory in DIRECTORIES for name in PROPERTIES)


_FILE = re.compile(rf"(?:{'|'.join(DIRECTORIES)})/(?:{DISK_UNIT})\.d/50-IO(?:Read|Write)(?:Bandwidth|IOPS)Max\.conf")


# Files by which systemd limits what pods, kubelets and container runtimes may use of a disk until the next boot.
@host_fact(
    "disk-limit-files",
    "files of limits of the disk that systemctl set-property has written until the next boot",
    HostCommand(("find", *DIRECTORIES, "-name", "50-IO*Max.conf"), accept=(0, 1), sudo=False),
    form=lines("/[^\\n]+"),
)
def disk_limit_files(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of paths, as ``/run/systemd/transient/kubepods.slice.d/50-IOReadIOPSMax.conf``."""
    if exit_code not in (0, 1):  # 1: there is no directory of transient units
        raise ValueError("find did not answer")
    return sorted(line for line in stdout.splitlines() if _FILE.fullmatch(line))


_UNIT = 'systemctl show --property=ControlGroup,DropInPaths,NeedDaemonReload "$1"; '
_DISK = (
    'stat --dereference --format=device=%d "$3"; lsblk --raw --noheadings --paths --output=NAME,MAJ:MIN,TYPE,PKNAME; '
)
_GROUP = 'cat /sys/fs/cgroup/cgroup.controllers "$2"'
_DEVICE = re.compile(r"(?P<name>/dev/\S+) (?P<number>\d+:\d+) (?P<type>\S+) ?(?P<parent>\S*)")
_LIMIT = re.compile(r"(?P<number>\d+:\d+) (?P<limits>rbps=\w+ wbps=\w+ riops=\w+ wiops=\w+)")
_CONTROLLERS = re.compile(r"[a-z_]+(?: [a-z_]+)*")  # Documentation/admin-guide/cgroup-v2.rst, cgroup.controllers


def _disk_limits_command(_: Known, options: DiskLimitParams) -> HostCommand:
    words, path = (options.unit, f"{cgroup_of(options.unit)}/io.max"), options.path
    script, given = (_UNIT + _DISK + _GROUP, (*words, path)) if path else (_UNIT + _GROUP, words)
    return HostCommand(("sh", "-c", script, "nodefall", *given), accept=(0, 1))  # 1: there is no io.max


@host_fact(
    "disk-limits",
    "disk of a path, and how much of it a unit may use (io.max)",
    _disk_limits_command,
    params=DiskLimitParams,
    form=lines(
        r"(?:ControlGroup|DropInPaths|NeedDaemonReload)=[^\n]*",
        r"device=\d+",
        *(_DEVICE, _LIMIT, _CONTROLLERS),
    ),
)
def disk_limits(stdout: str, exit_code: int, options: DiskLimitParams) -> dict[str, Any]:
    """Mapping ``{"active": true, "io": true, "disk": "/dev/vda", "number": "254:0", "limits": {"254:0":
    "rbps=1000000 wbps=1000000 riops=100 wiops=100"}, "runtime": true, "stale": false}``.

    ``active``: the unit has a control group. ``io``: the kernel has the controller. ``disk``: the whole of the only
    block device that the path's file system is on, "" if there is none or more than one; ``number`` is its own.
    ``limits``: the control group's io.max by number. ``runtime``: systemd has loaded limits that were set until the
    next boot. ``stale``: the unit's files have changed since systemd loaded them. Without a path no
    ``disk`` and ``number``.
    """
    lines = stdout.splitlines()
    fields = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    if exit_code not in (0, 1) or "ControlGroup" not in fields:
        raise ValueError("systemd did not answer")
    cgroup = cgroup_of(options.unit)
    if fields["ControlGroup"] and f"/sys/fs/cgroup{fields['ControlGroup']}" != cgroup:
        raise ValueError(f"the control group of {options.unit} is {fields['ControlGroup']}")
    controllers = [line for line in lines if _CONTROLLERS.fullmatch(line)]
    files = set(limit_files(options.unit))
    found = {
        "active": bool(fields["ControlGroup"]),
        "io": any("io" in line.split() for line in controllers),
        "limits": {row["number"]: row["limits"] for line in lines if (row := _LIMIT.fullmatch(line))},
        "runtime": not files.isdisjoint(fields.get("DropInPaths", "").split()),
        "stale": fields.get("NeedDaemonReload") == "yes",
    }
    if options.path is None:
        return found
    if not fields.get("device", "").isdecimal():
        raise ValueError(f"{options.path} does not exist")
    disk, number = _whole_disk(int(fields["device"]), [row for line in lines if (row := _DEVICE.fullmatch(line))])
    return found | {"disk": disk, "number": number}


def _whole_disk(device: int, rows: list[re.Match[str]]) -> tuple[str, str]:
    """The device without a parent that the device with this number (makedev(3)) is on; ("", "") without a single one.

    As systemd's lookup_block_device (core/cgroup.c) finds it; file systems without a device have the major number 0.
    """
    major, minor = device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00
    names = {row["name"] for row in rows if row["number"] == f"{major}:{minor}"}
    while parents := {row["parent"] for row in rows if row["name"] in names and row["parent"]}:
        names = parents
    found = {(row["name"], row["number"]) for row in rows if row["name"] in names}
    return found.pop() if len(found) == 1 else ("", "")


READ_BYTES = 16384
_READ_SECONDS = 20  # seconds after which fewer reads are enough
_DD = f'timeout --signal=INT {_READ_SECONDS} dd if="$2" of=/dev/null bs={READ_BYTES} count="$3" iflag=direct 2>&1'
# A slice has no processes: systemd makes a scope in it. A service has processes, and this one for a moment.
_IN_SLICE = f'export LC_ALL=C; systemd-run --scope --quiet --slice="$1" -- {_DD}'
_IN_SERVICE = f'export LC_ALL=C; echo $$ > "$1/cgroup.procs" && {_DD}'
_RESULT = re.compile(r"^(\d+) bytes .*copied, ([\d.e+-]+) s,", re.MULTILINE)


class DiskReadsParams(DiskLimitParams):
    path: MountPath = Field(description="A path on the disk, such as /var/lib/kubelet.")
    count: int = Field(ge=1, le=1000, description="The maximum number of reads of 16 KiB.")


def _disk_reads_needs(options: DiskReadsParams | None) -> tuple[str, ...]:
    return (str(FactRef("disk-limits", {"unit": options.unit, "path": options.path})),) if options else ()


def _disk_reads_command(known: Known, options: DiskReadsParams) -> HostCommand:
    (limits,) = _disk_reads_needs(options)
    disk = known[limits]["disk"]
    if not disk:
        raise ValueError(f"{options.path} is not on a single disk")
    unit = options.unit
    form = (_IN_SLICE, unit) if unit.endswith(".slice") else (_IN_SERVICE, cgroup_of(unit))
    argv = ("sh", "-c", form[0], "nodefall", form[1], disk, str(options.count))
    return HostCommand(argv, timeout=_READ_SECONDS + 25.0, accept=(0, 124))  # 124: timeout(1) has ended dd


@host_fact(
    "disk-reads",
    "seconds that reads from the disk of a path take to a process of a unit",
    _disk_reads_command,
    needs=_disk_reads_needs,
    params=DiskReadsParams,
    form=r"(?:Running scope as unit: [^\n]+\n)?" + lines(r"\d+[^\n]*"),
)
def disk_reads(stdout: str, exit_code: int, _options: DiskReadsParams) -> dict[str, float]:
    """Mapping ``{"bytes": 1048576, "seconds": 1.03}``, of reads that pass the page cache, one after the other.

    They are from the start of the whole disk that has the path; nothing is written.
    """
    found = _RESULT.search(stdout)
    if exit_code not in (0, 124) or not found or found[1] == "0":
        raise ValueError(f"dd could not read: {stdout.strip().rpartition(chr(10))[2][:200]}")
    return {"bytes": int(found[1]), "seconds": float(found[2])}
