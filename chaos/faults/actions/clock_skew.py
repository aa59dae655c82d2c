"""A host clock that is set wrong, with its synchronisation stopped."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import (
    Action,
    FactCheck,
    FailsafeTimer,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_unit,
)
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.errors import Unsupported
from chaos.core.node_mark import Tag, UnitName
from chaos.faults.actions._clock import CLOCK_IS_WRONG, Params, signed_seconds
from chaos.faults.readings.clocks import BOOT_TIME_SCRIPT, MARK_FILE
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED

_SET_SCRIPT = (
    f"test -e {MARK_FILE} || {{ {BOOT_TIME_SCRIPT} > {MARK_FILE}.new && mv {MARK_FILE}.new {MARK_FILE}; }}"
    ' && date --set="$1 seconds"'
)
# Computed from the machine's uptime: correct when run twice, and after other changes of the clock.
_TRUE_TIME_SCRIPT = f"cat {MARK_FILE} /proc/uptime | awk '{{ now += $1 }} END {{ printf \"@%.2f\", now }}'"
_RESTORE_SCRIPT = f'! test -e {MARK_FILE} || {{ date --set="$({_TRUE_TIME_SCRIPT})" && rm {MARK_FILE}; }}'


class ClockState(Struct, frozen=True):
    """``skew`` in seconds; the unit that synchronises the clock, and whether it was active; the failsafe timer."""

    skew: int
    sync_unit: UnitName
    sync_active: bool
    tag: Tag
    seconds: float


class ClockSkew(Action[Params, ClockState]):
    """The clock jumps by ``by`` at once, and the host evaluates Leases, certificates and tokens with a wrong clock.

    Relative timers of PID 1 (OnActiveSec, nodefall's failsafe timers) use another clock and do not move; calendar
    timers (OnCalendar, cron) fire at once or late. Refused while logind has a shutdown scheduled, which uses the clock
    that is set, and beside a step that arms a timer on the same node: the start of PID 1, which identifies a boot,
    moves with the clock.
    """

    name = "clock-skew"
    summary = "set the host's clock wrong, with its synchronisation stopped"
    example = "{name: skew, action: clock-skew, target: victim, with: {by: 60s, direction: ahead}}"
    params = Params
    state = ClockState
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    exclusive_timer_reason = "it sets the clock, which identifies boots and starts logind's scheduled shutdown"
    proofs = (CLOCK_IS_WRONG,)
    proof_facts = ("clock-skew", "time-sync-state")
    facts = ("shared-kernel", "time-sync-unit", "time-sync-state", "clock-skew")

    def prepare(self, target: Target, params: Params) -> ClockState:
        if target.require_fact("shared-kernel", "others' clock must not be set"):
            raise Unsupported(
                f"{target.node} is a container: it shares its machine's clock", hint="use a dedicated machine"
            )
        timers = target.require_fact("failsafe-timers", "a clock must not be set beside them")
        if timers or target.require_fact("scheduled-shutdown", "it depends on the clock") != NO_SHUTDOWN_SCHEDULED:
            found = ", ".join(timers) or "a shutdown that is scheduled"
            raise Unsupported(
                f"{target.node}: there is {found}, beside which the clock is not set", hint="undo it first"
            )
        if target.require_fact("clock-skew", "the clock must be right before"):
            raise Unsupported(
                f"{target.node}: its clock is set wrong already", hint="run `nodefall undo` for the run that did it"
            )
        unit = target.require_fact("time-sync-unit", "it would correct the clock at once, and must do so afterwards")
        active = target.require_fact("time-sync-state", "undo restores it") == "active"
        return ClockState(signed_seconds(params), unit, active, target.tag, target.max_duration)

    def inject(self, state: ClockState) -> tuple[Command, ...]:
        stop = HostCommand(("systemctl", "stop", state.sync_unit))
        return (stop, HostCommand(("sh", "-c", _SET_SCRIPT, "nodefall", f"{state.skew:+d}")))

    def failsafe_timer(self, state: ClockState) -> FailsafeTimer:
        start = f"; systemctl start {state.sync_unit}" if state.sync_active else ""
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, ("sh", "-c", _RESTORE_SCRIPT + start))

    def undo(self, state: ClockState) -> Undo:
        right = FactCheck("clock-skew", 0)
        steps = [UndoStep(HostCommand(("sh", "-c", _RESTORE_SCRIPT)), unless=right)]
        proof = [right, FactCheck(PseudoFact.NODE_READY, True)]
        if state.sync_active:
            synced = FactCheck("time-sync-state", "active")
            steps.append(UndoStep(HostCommand(("systemctl", "start", state.sync_unit)), unless=synced))
            proof.insert(1, synced)
        return Undo(tuple(steps), tuple(proof), disarm=failsafe_unit(state.tag))


ACTION = ClockSkew()
