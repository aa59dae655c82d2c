"""Limits of the pods' disk: ``systemctl set-property --runtime kubepods.slice``, its drop-ins, and io.max.

The kubelet makes kubepods.slice, a transient unit. As systemd does (core/cgroup.c, cgroup_context_apply), a reload
writes only limits that are in the unit's files: those that it no longer knows stay in the kernel, as on a host where
another unit uses the io controller.
"""

from __future__ import annotations

import math
import re

from chaos.lab.hostshell.process import HostSystem, Process
from chaos.lab.node.kubelet.runtime import DiskLimit

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
