"""Mounted file systems: /, a data disk on which no pod has files, and /run; what remounts and attempts to write do.

A file of /run can be mounted over the kubelet's client certificate, and /dev/null over a manifest of a static pod.
"""

from __future__ import annotations

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.node.kubelet.client_certificate import TARGET
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
    """Of the file system that has the path, as ``254:1``."""
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


PROGRAMS: dict[str, Program] = {"mount": mount, "rmdir": rmdir, "umount": umount}
