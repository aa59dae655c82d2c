"""Files by which systemd limits what pods, kubelets and container runtimes may use of a disk until the next boot."""

from __future__ import annotations

import re

from chaos.facts._disk_limits import DIRECTORIES
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.field_types import DISK_UNIT

_FILE = re.compile(rf"(?:{'|'.join(DIRECTORIES)})/(?:{DISK_UNIT})\.d/50-IO(?:Read|Write)(?:Bandwidth|IOPS)Max\.conf")


class DiskLimitFiles(HostFact):
    """Sorted list of paths, as ``/run/systemd/transient/kubepods.slice.d/50-IOReadIOPSMax.conf``."""

    name = "disk-limit-files"
    summary = "files of limits of the disk that systemctl set-property has written until the next boot"
    command = HostCommand(("find", *DIRECTORIES, "-name", "50-IO*Max.conf"), accept=(0, 1), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code not in (0, 1):  # 1: there is no directory of transient units
            raise ValueError("find did not answer")
        return sorted(line for line in stdout.splitlines() if _FILE.fullmatch(line))


FACT = DiskLimitFiles()
