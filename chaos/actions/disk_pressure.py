"""The kubelet's file system filled up to half of its threshold."""

from __future__ import annotations

from chaos.actions._pressure import Params, condition, evicted, fill, free, heal, left, own_kernel, remember
from chaos.model.action import Action, Check, Memory, SelfHeal, Target, Undo, UndoKind
from chaos.model.command import Command
from chaos.model.errors import Unsupported

_LEAST = 0.02  # share of the file system that is always left
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
    proofs = (condition("DiskPressure"), evicted("ephemeral-storage"))
    probes = ("disk-filler",)
    facts = ("shared-kernel", "disk", "disk-filler")

    def prepare(self, target: Target, params: Params) -> Memory:
        own_kernel(target)
        disk = target.need("disk", "it is what is filled")
        keep = left(target, "nodefs.available", disk["total"])
        if keep < disk["total"] * _LEAST:
            raise Unsupported(
                f"{target.node}: the kubelet's threshold leaves under {_LEAST:.0%} of {disk['mount']}",
                hint="raise evictionHard nodefs.available",
            )
        return remember(target, params, root=disk["root"], keep=keep)

    def before(self, memory: Memory) -> tuple[Check, ...]:  # noqa: ARG002 - the same on every node
        return (Check("disk-filler", "inactive"),)

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (fill(memory, "disk", _SCRIPT, (memory["root"], str(memory["keep"] // 1024)), ()),)

    def self_heal(self, memory: Memory) -> SelfHeal:
        return heal(memory, "disk")

    def undo(self, memory: Memory) -> Undo:
        return free(memory, "disk")


ACTION = DiskPressure()
