"""Version of the control groups."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_VERSIONS = {"cgroup2fs": 2, "tmpfs": 1}


class CgroupVersion(HostFact):
    """Whole number: 2 or 1; hybrid counts as 1."""

    name = "cgroup-version"
    summary = "version of the control groups"
    command = HostCommand(("stat", "--file-system", "--format=%T", "/sys/fs/cgroup"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> int:
        if exit_code or stdout.strip() not in _VERSIONS:
            raise ValueError("/sys/fs/cgroup is of an unknown type")
        return _VERSIONS[stdout.strip()]


FACT = CgroupVersion()
