"""Parameters that facts about limits of a disk share, and the control group of their unit."""

from __future__ import annotations

from pydantic import Field

from chaos.model.document import Model
from chaos.model.field_types import DiskUnit, MountPath

PROPERTIES = ("IOReadBandwidthMax", "IOWriteBandwidthMax", "IOReadIOPSMax", "IOWriteIOPSMax")
# systemd writes drop-ins of a transient unit, as the kubelet's kubepods.slice, to the second (core/unit.c,
# unit_drop_in_dir).
DIRECTORIES = ("/run/systemd/system.control", "/run/systemd/transient")


class DiskLimitParams(Model):
    unit: DiskUnit = Field(description="unit whose control group is limited, as kubepods.slice")
    path: MountPath | None = Field(None, description="a path on the disk, as /var/lib/kubelet; default: no disk")


def cgroup_of(unit: str) -> str:
    """Directory of the unit's control group; services are in system.slice."""
    return f"/sys/fs/cgroup/{unit}" if unit.endswith(".slice") else f"/sys/fs/cgroup/system.slice/{unit}"


def limit_files(unit: str) -> tuple[str, ...]:
    """What ``systemctl set-property --runtime`` writes for the properties."""
    return tuple(f"{directory}/{unit}.d/50-{name}.conf" for directory in DIRECTORIES for name in PROPERTIES)
