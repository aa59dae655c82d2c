"""What is mounted at a path, and whether the kernel lets it be changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact
from chaos.model.field_types import MountPath

_LINE = re.compile(  # proc_pid_mountinfo(5)
    r"\d+ \d+ (?P<device>\d+:\d+) (?P<root>\S+) (?P<path>\S+) (?P<options>\S+)(?: \S+:\d+| unbindable)*"
    r" - (?P<type>\S+) (?P<source>\S+) \S+"
)
# rmdir(2) asks the kernel for a write before it looks for the name (fs/namei.c, mnt_want_write in do_rmdir): it fails
# with EROFS on a file system that is read-only and with ENOENT on others, and changes neither.
_SCRIPT = 'LC_ALL=C rmdir "$1/.nodefall-absent" 2>&1; cat /proc/self/mountinfo'
_ERRORS = {"No such file or directory": True, "Read-only file system": False}


class MountParams(Model):
    path: MountPath = Field(description="where it is mounted, as /var/lib/data")


class Mount(HostFact):
    """Mapping ``{"source": "/dev/vdb1", "type": "ext4", "options": "rw,relatime", "whole": true, "with-root": false,
    "writable": true}``, or {} if nothing is mounted at ``path``.

    ``options`` of this mount, without those of the file system. ``whole``: not a directory or subvolume of it.
    ``with-root``: the file system is that of /. ``writable``: by an attempt to change it.
    """

    name = "mount"
    summary = "file system that is mounted at a path, and whether it can be changed"
    params = MountParams
    options: MountParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        return HostCommand(("sh", "-c", _SCRIPT, "nodefall", self.options.path))

    def parse(self, stdout: str, exit_code: int) -> dict[str, str | bool]:
        rows = [match for line in stdout.splitlines() if (match := _LINE.fullmatch(line))]
        top = {row["path"]: row for row in rows}  # a later mount hides an earlier one
        if exit_code or "/" not in top:
            raise ValueError("mountinfo is not understood")
        mount = top.get(self.options.path)
        if mount is None:
            return {}
        error = stdout.partition("\n")[0].rpartition(": ")[2]
        if error not in _ERRORS:
            raise ValueError(f"the attempt to change the file system failed: {error}")
        return {
            "source": mount["source"],
            "type": mount["type"],
            "options": mount["options"],
            "whole": mount["root"] == "/",
            "with-root": mount["device"] == top["/"]["device"],
            "writable": _ERRORS[error],
        }


FACT = Mount()
