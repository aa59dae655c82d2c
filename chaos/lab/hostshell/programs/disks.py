"""Mounted file systems: /, a data disk on which no pod has files, and /run; what remounts and attempts to write do.

A file of /run can be mounted over the kubelet's client certificate, and /dev/null over a manifest of a static pod.
Limits of the pods' disk: ``systemctl set-property --runtime kubepods.slice``, its drop-ins, and io.max.
The kubelet makes kubepods.slice, a transient unit. As systemd does (core/cgroup.c, cgroup_context_apply), a reload
writes only limits that are in the unit's files: those that it no longer knows stay in the kernel, as on a host where
another unit uses the io controller.
lsblk, dd that reads a disk, and timeout.
"""

from __future__ import annotations

import math
import re

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.hostshell.shell import execute
from chaos.lab.node.kubelet.apiserver_link import TARGET
from chaos.lab.node.kubelet.runtime import DiskLimit
from chaos.lab.node.kubelet.static_pods import MANIFESTS

_MOUNTS = {  # device number, source, type, options after a boot
    "/": ("254:1", "/dev/vda1", "ext4", "rw,relatime"),
    "/run": ("0:22", "tmpfs", "tmpfs", "rw,nosuid,nodev,noexec,relatime"),
    "/var/lib/data": ("254:17", "/dev/vdb1", "ext4", "rw,nosuid,relatime"),
}
DIRECTORIES = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/data", "/run/systemd")  # that programs look for
_FAILED = 32  # exit code of mount(8)


def _options(host: HostSystem, path: str) -> str:
    return host.mount_options.get(path, _MOUNTS[path][3])


def _is_read_only(host: HostSystem, path: str) -> bool:
    return "ro" in _options(host, path).split(",")


def _mount_point(path: str) -> str:
    return max((point for point in _MOUNTS if f"{path}/".startswith(point.rstrip("/") + "/")), key=len)


def device_number(path: str) -> str:
    """The device number of the path's file system, such as ``254:1``."""
    return _MOUNTS[_mount_point(path)][0]


def mountinfo(host: HostSystem) -> str:
    """proc_pid_mountinfo(5)."""
    rows = []
    for number, (path, (device, source, kind, _)) in enumerate(_MOUNTS.items(), start=22):
        state = "ro" if _is_read_only(host, path) else "rw"
        rows.append(f"{number} 1 {device} / {path} {_options(host, path)} shared:{number} - {kind} {source} {state}\n")
    if identity := host.machine.container_id:  # as docker mounts it
        row = f"38 22 254:1 /var/lib/docker/containers/{identity}/hostname /etc/hostname rw,relatime"
        rows.append(f"{row} - ext4 /dev/vda1 rw\n")
    if host.machine.mounted_certificate:
        device, source, kind, options = _MOUNTS["/run"]
        rows.append(f"40 22 {device} /nodefall.pem {TARGET} {options} shared:23 - {kind} {source} rw\n")
    for number, path in enumerate(sorted(host.machine.hidden_files), start=41):
        rows.append(f"{number} 22 0:5 /null {path} rw,nosuid,relatime shared:2 - devtmpfs udev rw,size=4096k\n")
    return "".join(rows)


async def mount(process: Process, argv: list[str]) -> int:
    """``mount -o remount,OPTIONS SOURCE TARGET`` and ``mount --bind FILE TARGET``."""
    if argv[1:2] == ["--bind"]:
        return _bind(process, argv[2:])
    if len(argv) != 5 or argv[1] != "-o" or not argv[2].startswith("remount,"):
        return process.fail("mount: the lab simulates only mount -o remount,OPTIONS SOURCE TARGET and mount --bind", 1)
    source, path = argv[3:]
    if not process.is_root:
        return process.fail(f"mount: {path}: must be superuser to use mount.")
    if path not in _MOUNTS or _MOUNTS[path][1] != source:
        return process.fail(f"mount: {path}: mount point not mounted or bad option.", _FAILED)
    options = argv[2].removeprefix("remount,")
    if path == "/" and "ro" in options.split(","):
        return process.fail(f"mount: {path}: mount point is busy.", _FAILED)
    process.host.mount_options[path] = options
    return 0


def _bind(process: Process, words: list[str]) -> int:
    if len(words) == 2 and words[0] == "/dev/null" and words[1].startswith(MANIFESTS):
        return _hide(process, words[1])
    if len(words) != 2 or words[1] != TARGET or not words[0].startswith("/run/"):
        return process.fail(f"mount: the lab simulates only mount --bind of a file of /run at {TARGET}")
    if not process.is_root:
        return process.fail(f"mount: {TARGET}: must be superuser to use mount.")
    if words[0] not in process.host.run_files:
        return process.fail(f"mount: {TARGET}: special device {words[0]} does not exist.", _FAILED)
    process.host.machine.mounted_certificate = process.host.run_files[words[0]]
    return 0


def _hide(process: Process, path: str) -> int:
    """Mount /dev/null over the manifest."""
    if not process.is_root:
        return process.fail(f"mount: {path}: must be superuser to use mount.")
    if path not in process.host.machine.files:
        return process.fail(f"mount: {path}: mount point does not exist.", _FAILED)
    process.host.machine.hidden_files.add(path)
    return 0


async def umount(process: Process, argv: list[str]) -> int:
    """``umount [--lazy] TARGET`` of what is mounted over the kubelet's client certificate, or over a manifest."""
    hidden, path = process.host.machine.hidden_files, argv[-1]
    if argv[1:] in ([path], ["--lazy", path]) and path.startswith(MANIFESTS):
        if process.is_root and path in hidden:
            hidden.remove(path)
            return 0
        why = "not mounted" if process.is_root else "must be superuser to unmount"
        return process.fail(f"umount: {path}: {why}.", _FAILED)
    if argv[1:] not in ([TARGET], ["--lazy", TARGET]):
        return process.fail(f"umount: the lab simulates only umount [--lazy] {TARGET}")
    if not process.is_root:
        return process.fail(f"umount: {TARGET}: must be superuser to unmount.", _FAILED)
    if not process.host.machine.mounted_certificate:
        return process.fail(f"umount: {TARGET}: not mounted.", _FAILED)
    process.host.machine.mounted_certificate = ""
    return 0


async def rmdir(process: Process, argv: list[str]) -> int:
    """``rmdir PATH`` of a directory that does not exist."""
    path = argv[-1]
    mounted = _mount_point(path)
    why = "Read-only file system" if _is_read_only(process.host, mounted) else "No such file or directory"
    return process.fail(f"rmdir: failed to remove '{path}': {why}")


UNIT = "kubepods.slice"
DISK, DISK_NUMBER = "/dev/vda", "254:0"
IO_MAX = f"/sys/fs/cgroup/{UNIT}/io.max"
_BYTES, _OPERATIONS = ("IOReadBandwidthMax", "IOWriteBandwidthMax"), ("IOReadIOPSMax", "IOWriteIOPSMax")
_NAMES = _BYTES + _OPERATIONS
_ASSIGNMENT = re.compile(rf"({'|'.join(_NAMES)})={DISK} (\d+|infinity)")


def _drop_in(name: str) -> str:
    return f"/run/systemd/transient/{UNIT}.d/50-{name}.conf"


def set_properties(process: Process, assignments: list[str]) -> int:
    """Assignments ``NAME=DISK NUMBER``, and ``NAME=DISK infinity`` for no limit."""
    host = process.host
    for text in assignments:
        match = _ASSIGNMENT.fullmatch(text)
        if not match:
            return process.fail(f"the lab simulates for {UNIT} only limits of {DISK}, as {_NAMES[0]}={DISK} 1000000")
        host.disk_properties[match[1]] = match[2]
        host.run_files[_drop_in(match[1])] = f"[Slice]\n{match[1]}=\n" + (f"{text}\n" if match[2] != "infinity" else "")
    _apply(host)
    return 0


def _apply(host: HostSystem) -> None:
    """As systemd writes io.max, if any of the unit's properties is about the disk; reads and writes have one limit."""
    if not host.disk_properties:
        return
    known = {name: float(value) for name, value in host.disk_properties.items()}
    size, operations = (min(known.get(name, math.inf) for name in names) for names in (_BYTES, _OPERATIONS))
    host.machine.runtime.disk_limit = None if size == operations == math.inf else DiskLimit(size, operations)


def reload(host: HostSystem) -> None:
    """Load the unit's files, as daemon-reload."""
    known = host.disk_properties
    host.disk_properties = {name: value for name, value in known.items() if _drop_in(name) in host.run_files}
    _apply(host)


def properties(host: HostSystem) -> dict[str, str]:
    """Those of ``systemctl show`` that concern the limits."""
    files = [_drop_in(name) for name in host.disk_properties]
    is_stale = any(file not in host.run_files for file in files)
    return {
        "ControlGroup": f"/{UNIT}",
        "DropInPaths": " ".join(files),
        "NeedDaemonReload": "yes" if is_stale else "no",
    }


def io_max(host: HostSystem) -> str | None:
    """Content of io.max; None without a limit: systemd then does not enable the controller."""
    limit = host.machine.runtime.disk_limit
    if limit is None:
        return None
    size, operations = (f"{value:.0f}".replace("inf", "max") for value in (limit.bytes, limit.operations))
    return f"{DISK_NUMBER} rbps={size} wbps={size} riops={operations} wiops={operations}\n"


_DEVICES = """/dev/vda 254:0 disk\x20
/dev/vda1 254:1 part /dev/vda
/dev/vda2 254:2 part /dev/vda
/dev/vdb 254:16 disk\x20
/dev/vdb1 254:17 part /dev/vdb
"""
_LSBLK = ["--raw", "--noheadings", "--paths", "--output=NAME,MAJ:MIN,TYPE,PKNAME"]
_DD = re.compile(r"if=(?P<disk>/dev/vd[ab]) of=/dev/null bs=(?P<kib>\d+)(?P<unit>k?) count=(?P<count>\d+) iflag=direct")
_READ_SECONDS, _BYTES_A_SECOND = 0.0001, 400e6  # of a disk without a limit


async def lsblk(process: Process, argv: list[str]) -> int:
    """``lsblk --raw --noheadings --paths --output=NAME,MAJ:MIN,TYPE,PKNAME``."""
    if argv[1:] != _LSBLK:
        return process.fail(f"lsblk: the lab simulates only lsblk {' '.join(_LSBLK)}")
    process.out(_DEVICES)
    return 0


async def dd(process: Process, argv: list[str]) -> int:
    """``dd if=DISK of=/dev/null bs=SIZE count=COUNT iflag=direct``."""
    match = _DD.fullmatch(" ".join(argv[1:]))
    if not match:
        return process.fail("dd: the lab simulates only dd if=DISK of=/dev/null bs=SIZE count=COUNT iflag=direct")
    if not process.is_root:
        return process.fail(f"dd: failed to open '{match['disk']}': Permission denied")
    count, size = int(match["count"]), int(match["kib"]) * (1024 if match["unit"] else 1)
    total, host = count * size, process.host
    seconds = count * _READ_SECONDS + total / _BYTES_A_SECOND
    limit = host.machine.runtime.disk_limit
    if limit and process.slice == UNIT and match["disk"] == DISK:
        seconds = max(seconds, limit.seconds(count, total))
    await host.lockstep.wait_until(host.sim.now + seconds)
    process.err(f"{count}+0 records in\n{count}+0 records out\n")
    process.err(f"{total} bytes ({total / 1e6:.1f} MB) copied, {seconds:.6g} s, {total / seconds / 1e6:.1f} MB/s\n")
    return 0


async def timeout(process: Process, argv: list[str]) -> int:
    """``timeout --signal=INT SECONDS COMMAND...``, of commands that end before."""
    if len(argv) < 4 or argv[1] != "--signal=INT" or not argv[2].isdecimal():
        return process.fail("timeout: the lab simulates only timeout --signal=INT SECONDS COMMAND...", 125)
    return await execute(process, argv[3:], "timeout")


PROGRAMS: dict[str, Program] = {
    "mount": mount,
    "rmdir": rmdir,
    "umount": umount,
    "dd": dd,
    "lsblk": lsblk,
    "timeout": timeout,
}
