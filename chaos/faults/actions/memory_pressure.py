"""The host's memory used until half of the kubelet's eviction threshold is left."""

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

_MIN_BYTES = 48 << 20  # always left
_OVERHEAD_BYTES = 64 << 20  # of the unit's limit, for the shell and its pages
# tail buffers input without a line end. Half of the excess at a time, as allocating memory costs memory.
_SCRIPT = """taken=0
while :; do
  available=$(awk '/^MemFree:|^Inactive.file.:/ { kib += $2 } END { print kib }' "$1")
  more=$(((available - $2) / 2))
  [ "$more" -gt $(($3 - taken)) ] && more=$(($3 - taken))
  if [ "$more" -gt 1024 ]; then head -c "$more"K /dev/zero; taken=$((taken + more)); else sleep 1; fi
done | tail > /dev/null"""


class MemoryState(FillerState, frozen=True):
    """``remaining`` and ``limit``, the most that the unit uses, in bytes."""

    limit: int


class MemoryPressure(Action[Params, MemoryState]):
    """A unit of PID 1 uses memory until half of the kubelet's threshold is left, at most what was available before.

    Pods are evicted. If the kernel still runs out of memory, its OOM killer ends that unit first (OOMScoreAdjust=1000);
    other processes may be slow before that, as their files are read again. Refused with swap, which would fill first.
    """

    name = "memory-pressure"
    summary = "take the host's memory until the kubelet reports MemoryPressure"
    example = "{name: fill, action: memory-pressure, target: victim, with: {duration: 5m}}"
    params = Params
    state = MemoryState
    undo_kind = UndoKind.RESTORES
    may_crash = True
    proofs = (prove_condition("MemoryPressure"), prove_eviction("memory"))
    proof_facts = ("memory", "memory-filler")
    facts = ("shared-kernel", "memory", "swap", "cgroup-version", "memory-filler")

    def prepare(self, target: Target, params: Params) -> MemoryState:
        require_own_kernel(target)
        if target.require_fact("cgroup-version", "the unit must be bounded by MemoryMax and MemorySwapMax") != 2:
            raise Unsupported(f"{target.node} has cgroup v1, which cannot bound memory and swap of a unit")
        if target.require_fact("swap", "others' memory would be swapped out first"):
            raise Unsupported(
                f"{target.node} has swap: others' memory would be swapped out first", hint="`swapoff -a` there"
            )
        memory = target.require_fact("memory", "the action uses it up")
        left = remaining(target, "memory.available", memory["total"])
        limit = memory["available"] - left
        if left < _MIN_BYTES or limit <= 0:
            raise Unsupported(
                f"{target.node}: half of the kubelet's threshold is {left >> 20} MiB of "
                f"{memory['available'] >> 20} MiB available; at least {_MIN_BYTES >> 20} MiB must be left",
                hint="raise evictionHard memory.available",
            )
        return MemoryState(filler_seconds(target, params), target.tag, left, limit)

    def preconditions(self, state: MemoryState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("memory-filler", "inactive"),)

    def inject(self, state: MemoryState) -> tuple[Command, ...]:
        arguments = ("/proc/meminfo", str(state.remaining >> 10), str(state.limit >> 10))
        # 1 % more for the bookkeeping of tail's buffers.
        memory_max = state.limit + state.limit // 100 + _OVERHEAD_BYTES
        limits = (f"MemoryMax={memory_max}", "MemorySwapMax=0", "TasksMax=16")
        return (start_filler(state, "memory", _SCRIPT, arguments, limits),)

    def failsafe_timer(self, state: MemoryState) -> FailsafeTimer:
        return filler_failsafe(state, "memory")

    def undo(self, state: MemoryState) -> Undo:
        return stop_filler(state, "memory")


ACTION = MemoryPressure()
