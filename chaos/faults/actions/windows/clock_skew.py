"""A Windows host's clock that is set wrong, with the services that would correct it stopped."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind, UndoStep, failsafe_unit
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.errors import Unsupported
from chaos.core.node_mark import Tag, WindowsService
from chaos.core.windows import powershell
from chaos.faults.actions._clock import CLOCK_IS_WRONG, Params, signed_seconds
from chaos.faults.actions._service import ACTIVE
from chaos.faults.actions.windows._services import stop_services_and_wait

# The hypervisor's first: it corrects the clock within seconds.
_SYNC_SERVICES = {name: f"service-state?service={name}" for name in ("vmictimesync", "w32time")}
_KERBEROS_LIMIT = 300  # seconds by which Kerberos lets clocks differ


class ClockState(Struct, frozen=True):
    """``skew`` in seconds; the services that were stopped; the failsafe task."""

    skew: int
    services: tuple[WindowsService, ...]
    tag: Tag
    seconds: float


class ClockSkew(Action[Params, ClockState]):
    """The host evaluates Leases, certificates and tokens with a wrong clock.

    Scheduled tasks follow the clock, nodefall's failsafe tasks too: the one of this step waits by itself, and others
    on the node are refused.
    """

    name = "clock-skew"
    summary = "set the host's clock wrong, with its synchronisation stopped"
    example = "{name: skew, action: clock-skew, target: victim, with: {by: 60s, direction: ahead}}"
    params = Params
    state = ClockState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    exclusive_timer_reason = "it sets the clock, which scheduled tasks follow"
    proofs = (CLOCK_IS_WRONG,)
    proof_facts = ("clock-skew",)
    facts = ("clock-skew", *_SYNC_SERVICES.values())

    def prepare(self, target: Target, params: Params) -> ClockState:
        if timers := target.require_fact("failsafe-timers", "a clock must not be set beside them"):
            raise Unsupported(
                f"{target.node}: there is {', '.join(timers)}, beside which the clock is not set", hint="undo it first"
            )
        if target.require_fact("clock-skew", "the clock must be right before"):
            raise Unsupported(
                f"{target.node}: its clock is set wrong already", hint="run `nodefall undo` for the run that did it"
            )
        seconds = signed_seconds(params)
        if abs(seconds) >= _KERBEROS_LIMIT:
            why = f"a clock that is {abs(seconds)} s wrong ends logins by Kerberos, nodefall's among them"
            raise Unsupported(f"{target.node}: {why}", hint=f"use by: {_KERBEROS_LIMIT - 1}s or less")
        running = tuple(name for name, fact in _SYNC_SERVICES.items() if target.facts.get(fact) == ACTIVE)
        return ClockState(seconds, running, target.tag, target.max_duration)

    def inject(self, state: ClockState) -> tuple[Command, ...]:
        stop = (stop_services_and_wait(*state.services),) if state.services else ()
        return (*stop, HostCommand(powershell("set-clock", seconds=state.skew)))

    def failsafe_timer(self, state: ClockState) -> FailsafeTimer:
        script = powershell("restore-clock", services=state.services, until_right=True)
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, script, by_uptime=True)

    def undo(self, state: ClockState) -> Undo:
        """The clock first: a service that starts while it is wrong may wait for hours until its next correction."""
        right = FactCheck("clock-skew", 0)
        checks = {name: FactCheck(_SYNC_SERVICES[name], ACTIVE) for name in state.services if name in _SYNC_SERVICES}
        restore = powershell("restore-clock", services=(), until_right=False)
        starts = {name: powershell("start-service", service=name) for name in checks}
        steps = (
            UndoStep(HostCommand(restore), unless=right),
            *(UndoStep(HostCommand(starts[name]), unless=check) for name, check in checks.items()),
        )
        proof = (right, *checks.values(), FactCheck(PseudoFact.NODE_READY, True))
        return Undo(steps, proof, disarm=failsafe_unit(state.tag))


ACTION = ClockSkew()
