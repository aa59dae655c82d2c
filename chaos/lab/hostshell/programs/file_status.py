"""readlink, sha256sum and stat."""

from __future__ import annotations

import hashlib

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.files import read_file
from chaos.lab.hostshell.programs.mounts import DIRECTORIES, device_number
from chaos.lab.node.kubelet.client_certificate import FILE, TARGET


async def readlink(process: Process, argv: list[str]) -> int:
    """``readlink [--canonicalize] FILE``: the kubelet's client certificate is the only symbolic link."""
    if argv[1:] not in ([FILE], ["--canonicalize", FILE]) or process.host.machine.kubelet_identity != "certificate":
        return 1
    process.out(f"{TARGET}\n")
    return 0


async def sha256sum(process: Process, argv: list[str]) -> int:
    """``sha256sum FILE``."""
    text, why = read_file(process, argv[-1])
    if text is None:
        return process.fail(f"sha256sum: {argv[-1]}: {why}")
    process.out(f"{hashlib.sha256(text.encode()).hexdigest()}  {argv[-1]}\n")
    return 0


async def stat(process: Process, argv: list[str]) -> int:
    """``stat [--dereference] --format=FORMAT FILE``; all files are root's alone. Also the type of /sys/fs/cgroup."""
    if argv[1:] == ["--file-system", "--format=%T", "/sys/fs/cgroup"]:
        process.out("cgroup2fs\n")
        return 0
    options, path = argv[1:-1], argv[-1]
    if options == ["--dereference", "--format=device=%d"]:
        return _device(process, path)
    if not options or not options[-1].startswith("--format=") or options[:-1] not in ([], ["--dereference"]):
        return process.fail("stat: the lab simulates only stat [--dereference] --format=FORMAT FILE")
    text, why = read_file(process, path)
    if text is None:
        return process.fail(f"stat: cannot statx '{path}': {why}")
    line = options[-1].removeprefix("--format=")
    for directive, value in {"%a": "600", "%u": "0", "%g": "0", "%n": path}.items():
        line = line.replace(directive, value)
    process.out(f"{line}\n")
    return 0


def _device(process: Process, path: str) -> int:
    """Number of the device, as of makedev(3), of the file system that has a directory."""
    if path not in DIRECTORIES:
        return process.fail(f"stat: cannot statx '{path}': No such file or directory")
    major, minor = map(int, device_number(path).split(":"))
    process.out(f"device={major << 8 | minor}\n")
    return 0


PROGRAMS: dict[str, Program] = {"readlink": readlink, "sha256sum": sha256sum, "stat": stat}
