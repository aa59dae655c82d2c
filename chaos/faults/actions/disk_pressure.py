"""The kubelet's file system filled to half of its eviction threshold."""

from __future__ import annotations

from chaos.core.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind
from chaos.core.command import Command
from chaos.core.errors import Unsupported
from chaos.faults.actions._pressure import (
    FillerState,
    Params,
    filler_failsafe,
    filler_seconds,
    prove_condition,
    prove_eviction,
    remaining,
    require_own_kernel,
    start_filler,
    stop_filler,
)

_MIN_SHARE = 0.02  # of the file system, always left
# The file is unlinked before it grows: it disappears with the process, a crash or a power cut.
_SCRIPT = """exec 3>"$1/.nodefall-fill" && rm -f "$1/.nodefall-fill" || exit 1
available=$(df -P -k "$1" | awk 'NR == 2 { print $4 }')
more=$((available - $2))
[ "$more" -gt 0 ] && fallocate --length "$more"KiB /proc/self/fd/3
exec sleep infinity"""


class DiskState(FillerState, frozen=True):
    """The kubelet's directory; ``remaining`` in bytes."""

    directory: str


class DiskPressure(Action[Params, DiskState]):
    """An unlinked file fills the file system of the kubelet's directory (nodefs) to half of its eviction threshold.

    The kubelet evicts pods and deletes images and dead containers, which undo does not restore.
    Other writers to this file system have only the remaining half.
    """

    name = "disk-pressure"
    summary = "fill the kubelet's file system until the kubelet reports DiskPressure"
    example = "{name: fill, action: disk-pressure, target: victim, with: {duration: 5m}}"
    params = Params
    state = DiskState
    undo_kind = UndoKind.RESTORES
    proofs = (prove_condition("DiskPressure"), prove_eviction("ephemeral-storage"))
    proof_facts = ("disk-filler",)
    facts = ("shared-kernel", "disk", "disk-filler")

    def prepare(self, target: Target, params: Params) -> DiskState:
        require_own_kernel(target)
        disk = target.require_fact("disk", "the action fills it")
        free = remaining(target, "nodefs.available", disk["total"])
        if free < disk["total"] * _MIN_SHARE:
            raise Unsupported(
                f"{target.node}: the kubelet's threshold leaves under {_MIN_SHARE:.0%} of {disk['mount']}",
                hint="raise evictionHard nodefs.available",
            )
        return DiskState(filler_seconds(target, params), target.tag, free, disk["root"])

    def preconditions(self, state: DiskState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("disk-filler", "inactive"),)

    def inject(self, state: DiskState) -> tuple[Command, ...]:
        return (start_filler(state, "disk", _SCRIPT, (state.directory, str(state.remaining // 1024)), ()),)

    def failsafe_timer(self, state: DiskState) -> FailsafeTimer:
        return filler_failsafe(state, "disk")

    def undo(self, state: DiskState) -> Undo:
        return stop_filler(state, "disk")


ACTION = DiskPressure()
