"""A Windows host's clock that is set wrong, with the services that would correct it stopped."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import (
    NODE_READY,
    FactCheck,
    FailsafeTimer,
    Needs,
    Program,
    Target,
    Undo,
    UndoStep,
    failsafe_unit,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.node_mark import Tag, WindowsService
from chaos.core.windows import powershell, windows_form
from chaos.faults.actions import clock_skew
from chaos.faults.actions._service import ACTIVE
from chaos.faults.actions.clock_skew import CLOCK_IS_WRONG, Params, require_right_clock, signed_seconds
from chaos.faults.actions.windows.services import stop_services_and_wait

# The hypervisor's first: it corrects the clock within seconds.
_SYNC_SERVICES = {name: f"service-state?service={name}" for name in ("vmictimesync", "w32time")}
_KERBEROS_LIMIT = 300  # seconds by which Kerberos lets clocks differ


class ClockState(Struct, frozen=True):
    """``skew`` in seconds; the services that were stopped; the failsafe task."""

    skew: int
    services: tuple[WindowsService, ...]
    tag: Tag
    seconds: float


def _prepare(target: Target, params: Params) -> ClockState:
    if timers := target.require_fact("failsafe-timers", "a clock must not be set beside them"):
        raise Unsupported(
            f"{target.node}: there is {', '.join(timers)}, beside which the clock is not set", hint="undo it first"
        )
    require_right_clock(target)
    seconds = signed_seconds(params)
    if abs(seconds) >= _KERBEROS_LIMIT:
        why = f"a clock that is {abs(seconds)} s wrong ends logins by Kerberos, nodefall's among them"
        raise Unsupported(f"{target.node}: {why}", hint=f"use by: {_KERBEROS_LIMIT - 1}s or less")
    running = tuple(name for name, fact in _SYNC_SERVICES.items() if target.facts.get(fact) == ACTIVE)
    return ClockState(seconds, running, target.tag, target.max_duration)


def _program(state: ClockState) -> Program:
    """The undo sets the clock first: a service that starts with a wrong clock may wait for hours to correct it."""
    stop = (stop_services_and_wait(*state.services),) if state.services else ()
    right = FactCheck("clock-skew", 0)
    checks = {name: FactCheck(_SYNC_SERVICES[name], ACTIVE) for name in state.services if name in _SYNC_SERVICES}
    restore = HostCommand(powershell("restore-clock", services=(), until_right=False))
    starts = {name: HostCommand(powershell("start-service", service=name)) for name in checks}
    steps = (
        UndoStep(restore, unless=right),
        *(UndoStep(starts[name], unless=check) for name, check in checks.items()),
    )
    script = powershell("restore-clock", services=state.services, until_right=True)
    return Program(
        (*stop, HostCommand(powershell("set-clock", seconds=state.skew))),
        Undo(steps, (right, *checks.values(), NODE_READY)),
        failsafe=FailsafeTimer(failsafe_unit(state.tag), state.seconds, script, by_uptime=True),
    )


ACTION = windows_form(
    clock_skew.ACTION,
    description="""
    The host evaluates Leases, certificates and tokens with a wrong clock.

    Scheduled tasks follow the clock, nodefall's failsafe tasks too: the one of this step waits by itself, and others
    on the node are refused.
    """,
    state=ClockState,
    exclusive_timer_reason="it sets the clock, which scheduled tasks follow",
    proofs=(CLOCK_IS_WRONG,),
    needs=Needs(("clock-skew", *_SYNC_SERVICES.values()), ("clock-skew",)),
    prepare=_prepare,
    program=_program,
)
