"""lsblk, dd that reads a disk, and timeout."""

from __future__ import annotations

import re

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.disk_limits import DISK, UNIT
from chaos.lab.hostshell.shell import execute

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


PROGRAMS: dict[str, Program] = {"dd": dd, "lsblk": lsblk, "timeout": timeout}
