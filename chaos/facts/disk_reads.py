"""How long reads from a disk take to a process of a unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field

from chaos.facts._disk_limits import DiskLimitParams, cgroup_of
from chaos.model.command import HostCommand
from chaos.model.fact import FactRef, HostFact
from chaos.model.field_types import MountPath

READ_BYTES = 16384
_LIMIT = 20  # seconds after which fewer reads are enough
_DD = f'timeout --signal=INT {_LIMIT} dd if="$2" of=/dev/null bs={READ_BYTES} count="$3" iflag=direct 2>&1'
# A slice has no processes: systemd makes a scope in it. A service has processes, and this one for a moment.
_IN_SLICE = f'export LC_ALL=C; systemd-run --scope --quiet --slice="$1" -- {_DD}'
_IN_SERVICE = f'export LC_ALL=C; echo $$ > "$1/cgroup.procs" && {_DD}'
_RESULT = re.compile(r"^(\d+) bytes .*copied, ([\d.e+-]+) s,", re.MULTILINE)


class DiskReadsParams(DiskLimitParams):
    path: MountPath = Field(description="a path on the disk, as /var/lib/kubelet")
    count: int = Field(ge=1, le=1000, description="reads of 16 KiB, at most")


class DiskReads(HostFact):
    """Mapping ``{"bytes": 1048576, "seconds": 1.03}``, of reads that pass the page cache, one after the other.

    They are from the start of the whole disk that has the path; nothing is written.
    """

    name = "disk-reads"
    summary = "seconds that reads from the disk of a path take to a process of a unit"
    params = DiskReadsParams
    options: DiskReadsParams

    def bind(self, params: Mapping[str, str]) -> Self:
        bound = super().bind(params)
        bound.needs = (str(FactRef("disk-limits", {name: params[name] for name in ("unit", "path")})),)
        return bound

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        disk = known[self.needs[0]]["disk"]
        if not disk:
            raise ValueError(f"{self.options.path} is not on a single disk")
        unit = self.options.unit
        form = (_IN_SLICE, unit) if unit.endswith(".slice") else (_IN_SERVICE, cgroup_of(unit))
        argv = ("sh", "-c", form[0], "nodefall", form[1], disk, str(self.options.count))
        return HostCommand(argv, timeout=_LIMIT + 25.0, accept=(0, 124))  # 124: timeout(1) has ended dd

    def parse(self, stdout: str, exit_code: int) -> dict[str, float]:
        found = _RESULT.search(stdout)
        if exit_code not in (0, 124) or not found or found[1] == "0":
            raise ValueError(f"dd could not read: {stdout.strip().rpartition(chr(10))[2][:200]}")
        return {"bytes": int(found[1]), "seconds": float(found[2])}


FACT = DiskReads()
