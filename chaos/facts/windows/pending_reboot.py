"""Updates that wait for a restart of Windows."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell

_MARKS = {"PackagesPending", "RebootInProgress", "RebootPending", "RebootRequired"}


class PendingReboot(HostFact):
    """Sorted list of the marks that are there.

    Of servicing: PackagesPending, RebootInProgress, RebootPending; of Windows Update: RebootRequired.
    """

    name = "pending-reboot"
    summary = "marks of updates that wait for a restart, which then takes minutes longer"
    command = HostCommand(powershell("read-pending-reboot"))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        rows = dict(line.split() for line in stdout.splitlines() if len(line.split()) == 2)
        if exit_code or rows.keys() != _MARKS or not set(rows.values()) <= {"True", "False"}:
            raise ValueError("the keys of pending updates were not read")
        return sorted(name for name, there in rows.items() if there == "True")


FACT = PendingReboot()
