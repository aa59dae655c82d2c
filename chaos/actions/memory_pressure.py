"""The host's memory taken up to half of the kubelet's threshold."""

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

_MIN_BYTES = 48 << 20  # bytes that are always left
_OVERHEAD_BYTES = 64 << 20  # of the unit's limit, for the shell and its pages
# tail keeps what has no line end. Half of what is too much at a time, as taking memory costs memory.
_SCRIPT = """taken=0
while :; do
  available=$(awk '/^MemFree:|^Inactive.file.:/ { kib += $2 } END { print kib }' "$1")
  more=$(((available - $2) / 2))
  [ "$more" -gt $(($3 - taken)) ] && more=$(($3 - taken))
  if [ "$more" -gt 1024 ]; then head -c "$more"K /dev/zero; taken=$((taken + more)); else sleep 1; fi
done | tail > /dev/null"""


class MemoryPressure(Action):
    """A unit of PID 1 takes memory, down to half of the kubelet's threshold, never more than was there at plan time.

    Pods are evicted. If the kernel runs out all the same, that unit is the first to be killed (OOMScoreAdjust=1000);
    other processes may be slow before that, as their files are read anew. Refused with swap, which would go first.
    """

    name = "memory-pressure"
    summary = "take the host's memory until the kubelet reports MemoryPressure"
    example = "{name: fill, action: memory-pressure, target: victim, with: {duration: 5m}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (prove_condition("MemoryPressure"), prove_eviction("memory"))
    proof_facts = ("memory", "memory-filler")
    facts = ("shared-kernel", "memory", "swap", "cgroup-version", "memory-filler")

    def prepare(self, target: Target, params: Params) -> UndoState:
        require_own_kernel(target)
        if target.require_fact("cgroup-version", "the unit must be bounded by MemoryMax and MemorySwapMax") != 2:
            raise Unsupported(f"{target.node} has cgroup v1, which cannot bound memory and swap of a unit")
        if target.require_fact("swap", "others' memory would be swapped out first"):
            raise Unsupported(
                f"{target.node} has swap: others' memory would be swapped out first", hint="`swapoff -a` there"
            )
        memory = target.require_fact("memory", "it is what is taken")
        keep = remaining(target, "memory.available", memory["total"])
        most = memory["available"] - keep
        if keep < _MIN_BYTES or most <= 0:
            raise Unsupported(
                f"{target.node}: half of the kubelet's threshold is {keep >> 20} MiB of "
                f"{memory['available'] >> 20} MiB available; at least {_MIN_BYTES >> 20} MiB must be left",
                hint="raise evictionHard memory.available",
            )
        return capture_state(target, params, keep=keep, most=most)

    def preconditions(self, memory: UndoState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("memory-filler", "inactive"),)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        arguments = ("/proc/meminfo", str(memory["keep"] >> 10), str(memory["most"] >> 10))
        # A hundredth more for what tail needs to keep its buffers.
        limit = memory["most"] + memory["most"] // 100 + _OVERHEAD_BYTES
        limits = (f"MemoryMax={limit}", "MemorySwapMax=0", "TasksMax=16")
        return (start_filler(memory, "memory", _SCRIPT, arguments, limits),)

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer:
        return filler_failsafe(memory, "memory")

    def undo(self, memory: UndoState) -> Undo:
        return stop_filler(memory, "memory")


ACTION = MemoryPressure()
