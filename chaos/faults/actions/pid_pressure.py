"""Process IDs used until half of the kubelet's eviction threshold is left."""

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

_MAX_PROCESSES = 30_000  # about 200 KiB of kernel memory each
_BYTES_PER_PROCESS = 200 << 10
# After a wrap-around the kernel assigns no ID below 300 (RESERVED_PIDS): with fewer IDs left no process could be
# started, neither a shell nor undo.
_MIN_PIDS = 400
# Each process is a fork of the shell that reads from a silent pipe: no program is executed that often.
_SCRIPT = """sleep infinity | {
exec 3<&0
IFS=" /" read -r _ _ _ _ threads _ < /proc/loadavg
more=$(($1 - threads - $2))
while [ "$more" -gt 0 ]; do read -r _ <&3 & more=$((more - 1)); done
exec sleep infinity
}"""


class PidState(FillerState, frozen=True):
    """``remaining`` process IDs, the host's maximum, and how many processes the unit starts."""

    pid_max: int
    limit: int


class PidPressure(Action[Params, PidState]):
    """A unit of PID 1 starts sleeping processes, up to its TasksMax.

    The kubelet has no threshold for process IDs by default (evictionHard pid.available). Evicting pods frees few of
    them, so the kubelet may evict one pod after another.
    """

    name = "pid-pressure"
    summary = "use process IDs up until the kubelet reports PIDPressure"
    example = "{name: fill, action: pid-pressure, target: victim, with: {duration: 5m}}"
    params = Params
    state = PidState
    no_windows_reason = "a kubelet on Windows does not watch process IDs"
    undo_kind = UndoKind.RESTORES
    may_crash = True
    proofs = (prove_condition("PIDPressure"), prove_eviction("pids"))
    proof_facts = ("pids", "pid-filler")
    facts = ("shared-kernel", "pids", "memory", "pid-filler")

    def prepare(self, target: Target, params: Params) -> PidState:
        require_own_kernel(target)
        pids = target.require_fact("pids", "the action uses them up")
        left = remaining(target, "pid.available", pids["max"])
        if left < _MIN_PIDS:
            raise Unsupported(
                f"{target.node}: half of the kubelet's threshold is {left} process IDs; "
                f"at least {_MIN_PIDS} must be left",
                hint=f"set evictionHard pid.available to {2 * _MIN_PIDS} or more",
            )
        limit = pids["max"] - pids["running"] - left
        room = target.require_fact("memory", "processes need memory")["available"] // 2
        most = min(_MAX_PROCESSES, room // _BYTES_PER_PROCESS)
        if not 0 < limit <= _MAX_PROCESSES or limit * _BYTES_PER_PROCESS > room:
            raise Unsupported(
                f"{target.node}: it would take {limit} processes; at most {most} are started there",
                hint="lower kernel.pid_max, or raise evictionHard pid.available",
            )
        return PidState(filler_seconds(target, params), target.tag, left, pids["max"], limit)

    def preconditions(self, state: PidState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (FactCheck("pid-filler", "inactive"),)

    def inject(self, state: PidState) -> tuple[Command, ...]:
        arguments = (str(state.pid_max), str(state.remaining))
        return (start_filler(state, "pid", _SCRIPT, arguments, (f"TasksMax={state.limit + 16}",)),)

    def failsafe_timer(self, state: PidState) -> FailsafeTimer:
        return filler_failsafe(state, "pid")

    def undo(self, state: PidState) -> Undo:
        return stop_filler(state, "pid")


ACTION = PidPressure()
