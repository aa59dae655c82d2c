"""The kubelet's file system filled up to half of its threshold."""

from __future__ import annotations

from chaos.actions._pressure import (
    Params,
    capture_state,
    filler_failsafe,
    prove_condition,
    prove_eviction,
    remaining,
    require_own_kernel,
    start_filler,
    stop_filler,
)
from chaos.model.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command
from chaos.model.errors import Unsupported

_MIN_SHARE = 0.02  # share of the file system that is always left
# The file has no name any more when it grows: it is gone with the process, with a crash, with the power.
_SCRIPT = """exec 3>"$1/.nodefall-fill" && rm -f "$1/.nodefall-fill" || exit 1
available=$(df -P -k "$1" | awk 'NR == 2 { print $4 }')
more=$((available - $2))
[ "$more" -gt 0 ] && fallocate --length "$more"KiB /proc/self/fd/3
exec sleep infinity"""


class DiskPressure(Action):
    """A file without a name takes the space of the kubelet's directory (nodefs), down to half of its threshold.

    Pods are evicted, images and dead containers are deleted by the kubelet, and nothing takes that back.
    Whatever else writes to this file system has only that half left.
    """

    name = "disk-pressure"
    summary = "fill the kubelet's file system until the kubelet reports DiskPressure"
    example = "{name: fill, action: disk-pressure, target: victim, with: {duration: 5m}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (prove_condition("DiskPressure"), prove_eviction("ephemeral-storage"))
    proof_facts = ("disk-filler",)
    facts = ("shared-kernel", "disk", "disk-filler")

    def prepare(self, target: Target, params: Params) -> UndoState:
        require_own_kernel(target)
        disk = target.require_fact("disk", "it is what is filled")
        keep = remaining(target, "nodefs.available", disk["total"])
        if keep < disk["total"] * _MIN_SHARE:
            raise Unsupported(
                f"{target.node}: the kubelet's threshold leaves under {_MIN_SHARE:.0%} of {disk['mount']}",
                hint="raise evictionHard nodefs.available",
            )
        return capture_state(target, params, root=disk["root"], keep=keep)

    def preconditions(self, memory: UndoState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("disk-filler", "inactive"),)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (start_filler(memory, "disk", _SCRIPT, (memory["root"], str(memory["keep"] // 1024)), ()),)

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer:
        return filler_failsafe(memory, "disk")

    def undo(self, memory: UndoState) -> Undo:
        return stop_filler(memory, "disk")


ACTION = DiskPressure()
