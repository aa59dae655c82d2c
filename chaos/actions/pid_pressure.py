"""Process IDs used up to half of the kubelet's threshold."""

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

_MAX_PROCESSES = 30_000  # processes; each costs memory of the kernel, about 200 KiB in all
_BYTES_PER_PROCESS = 200 << 10
# Once the kernel has been through all IDs it gives out none below 300 again (RESERVED_PIDS): with fewer left than those
# nothing could be started any more, no shell and no undo.
_MIN_PIDS = 400
# Each is the shell itself, forked, and reads what nobody writes: no program is started so often.
_SCRIPT = """sleep infinity | {
exec 3<&0
IFS=" /" read -r _ _ _ _ threads _ < /proc/loadavg
more=$(($1 - threads - $2))
while [ "$more" -gt 0 ]; do read -r _ <&3 & more=$((more - 1)); done
exec sleep infinity
}"""


class PidPressure(Action):
    """As many sleeping processes as it takes, in a unit of PID 1 that may have no more.

    The kubelet has no threshold for process IDs unless one is set (evictionHard pid.available).
    Evicting pods frees few of them, so the kubelet may evict one after another.
    """

    name = "pid-pressure"
    summary = "use process IDs up until the kubelet reports PIDPressure"
    example = "{name: fill, action: pid-pressure, target: victim, with: {duration: 5m}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (prove_condition("PIDPressure"), prove_eviction("pids"))
    proof_facts = ("pids", "pid-filler")
    facts = ("shared-kernel", "pids", "memory", "pid-filler")

    def prepare(self, target: Target, params: Params) -> UndoState:
        require_own_kernel(target)
        pids = target.require_fact("pids", "they are what is used up")
        keep = remaining(target, "pid.available", pids["max"])
        if keep < _MIN_PIDS:
            raise Unsupported(
                f"{target.node}: half of the kubelet's threshold is {keep} process IDs; at least {_MIN_PIDS} must be left",
                hint=f"set evictionHard pid.available to {2 * _MIN_PIDS} or more",
            )
        most = pids["max"] - pids["running"] - keep
        room = target.require_fact("memory", "processes need memory")["available"] // 2
        if not 0 < most <= _MAX_PROCESSES or most * _BYTES_PER_PROCESS > room:
            raise Unsupported(
                f"{target.node}: it would take {most} processes; at most {min(_MAX_PROCESSES, room // _BYTES_PER_PROCESS)} are started there",
                hint="lower kernel.pid_max, or raise evictionHard pid.available",
            )
        return capture_state(target, params, max=pids["max"], keep=keep, most=most)

    def preconditions(self, memory: UndoState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("pid-filler", "inactive"),)

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        arguments = (str(memory["max"]), str(memory["keep"]))
        return (start_filler(memory, "pid", _SCRIPT, arguments, (f"TasksMax={memory['most'] + 16}",)),)

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer:
        return filler_failsafe(memory, "pid")

    def undo(self, memory: UndoState) -> Undo:
        return stop_filler(memory, "pid")


ACTION = PidPressure()
