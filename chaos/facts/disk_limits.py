"""Disk that has a path, and how much of it the processes of a unit may use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chaos.facts._disk_limits import DiskLimitParams, cgroup_of, limit_files
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_UNIT = 'systemctl show --property=ControlGroup,DropInPaths,NeedDaemonReload "$1"; '
_DISK = (
    'stat --dereference --format=device=%d "$3"; lsblk --raw --noheadings --paths --output=NAME,MAJ:MIN,TYPE,PKNAME; '
)
_GROUP = 'cat /sys/fs/cgroup/cgroup.controllers "$2"'
_DEVICE = re.compile(r"(?P<name>/dev/\S+) (?P<number>\d+:\d+) (?P<type>\S+) ?(?P<parent>\S*)")
_LIMIT = re.compile(r"(?P<number>\d+:\d+) (?P<limits>rbps=\w+ wbps=\w+ riops=\w+ wiops=\w+)")
_CONTROLLERS = re.compile(r"[a-z_]+(?: [a-z_]+)*")  # Documentation/admin-guide/cgroup-v2.rst, cgroup.controllers


class DiskLimits(HostFact):
    """Mapping ``{"active": true, "io": true, "disk": "/dev/vda", "number": "254:0", "limits": {"254:0":
    "rbps=1000000 wbps=1000000 riops=100 wiops=100"}, "runtime": true, "stale": false}``.

    ``active``: the unit has a control group. ``io``: the kernel has the controller. ``disk``: the whole of the only
    block device that the path's file system is on, "" if there is none or more than one; ``number`` is its own.
    ``limits``: the control group's io.max by number. ``runtime``: systemd has loaded limits that were set until the
    next boot. ``stale``: the unit's files have changed since systemd loaded them. Without a path no
    ``disk`` and ``number``.
    """

    name = "disk-limits"
    summary = "disk of a path, and how much of it a unit may use (io.max)"
    params = DiskLimitParams
    options: DiskLimitParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        words, path = (self.options.unit, f"{cgroup_of(self.options.unit)}/io.max"), self.options.path
        script, given = (_UNIT + _DISK + _GROUP, (*words, path)) if path else (_UNIT + _GROUP, words)
        return HostCommand(("sh", "-c", script, "nodefall", *given), accept=(0, 1))  # 1: there is no io.max

    def parse(self, stdout: str, exit_code: int) -> dict[str, Any]:
        lines = stdout.splitlines()
        fields = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
        if exit_code not in (0, 1) or "ControlGroup" not in fields:
            raise ValueError("systemd did not answer")
        cgroup = cgroup_of(self.options.unit)
        if fields["ControlGroup"] and f"/sys/fs/cgroup{fields['ControlGroup']}" != cgroup:
            raise ValueError(f"the control group of {self.options.unit} is {fields['ControlGroup']}")
        controllers = [line for line in lines if _CONTROLLERS.fullmatch(line)]
        files = set(limit_files(self.options.unit))
        found = {
            "active": bool(fields["ControlGroup"]),
            "io": any("io" in line.split() for line in controllers),
            "limits": {row["number"]: row["limits"] for line in lines if (row := _LIMIT.fullmatch(line))},
            "runtime": not files.isdisjoint(fields.get("DropInPaths", "").split()),
            "stale": fields.get("NeedDaemonReload") == "yes",
        }
        if self.options.path is None:
            return found
        if not fields.get("device", "").isdecimal():
            raise ValueError(f"{self.options.path} does not exist")
        disk, number = _disk(int(fields["device"]), [row for line in lines if (row := _DEVICE.fullmatch(line))])
        return found | {"disk": disk, "number": number}


def _disk(device: int, rows: list[re.Match[str]]) -> tuple[str, str]:
    """The device without a parent that the device with this number (makedev(3)) is on; ("", "") without a single one.

    As systemd's lookup_block_device (core/cgroup.c) finds it; file systems without a device have the major number 0.
    """
    major, minor = device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00
    names = {row["name"] for row in rows if row["number"] == f"{major}:{minor}"}
    while parents := {row["parent"] for row in rows if row["name"] in names and row["parent"]}:
        names = parents
    found = {(row["name"], row["number"]) for row in rows if row["name"] in names}
    return found.pop() if len(found) == 1 else ("", "")


FACT = DiskLimits()
