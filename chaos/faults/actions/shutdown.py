"""A shutdown scheduled with logind, and cancelled before or after it has begun.

Cancelled after its start, while delay locks hold it up, systemd 257 and later sends no PrepareForShutdown false, so a
kubelet that received "true" stays "node is shutting down" until it is restarted (facts 18, recording 27). Before 257
``shutdown -c`` answers 0 and the machine still goes down.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct
from pydantic import AfterValidator, Field

from chaos.core.action import (
    Action,
    FactCheck,
    FailsafeTimer,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_unit,
)
from chaos.core.api_fact import PseudoFact
from chaos.core.command import HostCommand
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import (
    BOOT_IDENTITY,
    boot_seen,
    fact_is,
    last_reading_before,
    no_proof,
    readings_after,
)
from chaos.core.field_types import DurationText, Flag, Model
from chaos.core.machine_evidence import MACHINE_OFF, machine_off
from chaos.core.node_mark import Tag
from chaos.core.timeline import Timeline
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    POWER_ON,
    MachineState,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    kubelet_reporting_checks,
    power_on_steps,
    require_power_control,
)
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import (
    KubeletState,
    capture_kubelet_state,
    kubelet_state,
    restore_kubelet_after_cancel,
)
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED, NOLOGIN_FILE, NOT_PREPARING

CANCEL_LEAD_SECONDS = 5.0  # before its time the failsafe timer cancels the shutdown
_CANCEL = HostCommand(("shutdown", "-c"))
# A logind that was restarted meanwhile leaves the file of the shutdown behind, and then only root can log in.
_ADMIT_LOGINS = HostCommand(("rm", "--force", NOLOGIN_FILE))
_LOGINS_ADMITTED = FactCheck("nologin", False)
_MIN_SYSTEMD = 257  # the first systemd that cancels a delayed shutdown


def _validate_whole_minutes(text: str) -> str:
    if parse_duration(text) % 60 or parse_duration(text) < 60:
        raise ValueError(f"{text!r} is not a whole number of minutes; shutdown(8) counts in minutes")
    return text


class ScheduleParams(Model):
    """The time of the shutdown, and whether it may happen."""

    in_: Annotated[DurationText, AfterValidator(_validate_whole_minutes)] = Field("60s", alias="in")
    fires: Flag = Field(
        False, description="Let the shutdown happen: arm no failsafe timer that would cancel it in time."
    )


class ScheduleState(Struct, frozen=True):
    """Seconds until the shutdown, whether it may happen, the machine before it, and whether it refused logins then."""

    seconds: float
    fires: bool
    machine: MachineState
    tag: Tag
    had_nologin: bool = True  # or it is unknown: then the file is left alone


def require_power_if_it_fires(target: Target, params: ScheduleParams) -> None:
    """Raises Unsupported if the shutdown may happen and nothing powers the machine on again."""
    if params.fires:
        require_power_control(
            target,
            "could not be powered on again after the shutdown",
            hint="give its host a power control in the inventory, or leave fires out",
        )


def _prepare_schedule(target: Target, params: ScheduleParams) -> ScheduleState:
    require_power_if_it_fires(target, params)
    had_nologin = target.facts.get("nologin") is not False
    return ScheduleState(parse_duration(params.in_), params.fires, capture_power_state(target), target.tag, had_nologin)


def _schedule(state: ScheduleState) -> Program:
    machine, nothing = state.machine, FactCheck("scheduled-shutdown", NO_SHUTDOWN_SCHEDULED)
    schedule = HostCommand(("shutdown", "-P", f"+{int(state.seconds // 60)}"))
    cancel = UndoStep(_CANCEL, unless=nothing)
    if state.fires:
        undo = Undo((*power_on_steps(machine), cancel), (nothing, *is_up_checks(machine)))
        return Program((*disable_auto_restart(machine), schedule), undo)
    on = (POWER_ON,) if machine.can_read_power else ()
    admit = () if state.had_nologin else (UndoStep(_ADMIT_LOGINS, unless=_LOGINS_ADMITTED),)
    admitted = () if state.had_nologin else (_LOGINS_ADMITTED,)
    return Program(
        (schedule,),
        Undo((*on, cancel, *admit), (nothing, *admitted, *kubelet_reporting_checks(machine.reporting_facts))),
        failsafe=FailsafeTimer(failsafe_unit(state.tag), state.seconds - CANCEL_LEAD_SECONDS, _CANCEL.argv),
    )


SCHEDULE_SHUTDOWN = Action(
    name="schedule-shutdown",
    summary="schedule a power-off; unless fires is true, the host cancels it 5 s before",
    description="""
    Runs ``shutdown -P +N``, after arming a systemd timer that cancels the shutdown if nodefall does not.
    """,
    example="{name: schedule, action: schedule-shutdown, target: victim, with: {in: 60s}}",
    params=ScheduleParams,
    state=ScheduleState,
    undo_kind=UndoKind.RESTORES,
    may_disconnect=True,
    takes_down=True,
    proofs=(
        fact_is("scheduled-shutdown", lambda v: '"poweroff"' in str(v), "logind has it scheduled"),
        MACHINE_OFF,
        BOOT_IDENTITY,
    ),
    needs=Needs(
        (*KUBELET_REPORTING_FACTS, "nologin"),
        ("scheduled-shutdown", PseudoFact.MACHINE, "pid1-start", "boot-id"),
        logind=True,
    ),
    prepare=_prepare_schedule,
    program=_schedule,
)
_NOT_IN_PROGRESS = fact_is("preparing-for-shutdown", lambda v: v == NOT_PREPARING, "logind is not shutting down")
_NOT_SCHEDULED = fact_is("scheduled-shutdown", lambda v: v == NO_SHUTDOWN_SCHEDULED, "logind has nothing scheduled")
_NO_LONGER_IN_PROGRESS = fact_is(
    "preparing-for-shutdown", lambda v: v == NOT_PREPARING, "logind is not shutting down any more"
)


def went_down(timeline: Timeline, step: StepRun, after: str = "") -> ProofResult | None:
    """Disproves a cancellation if the machine is off or has booted; ``after``: text to add if it is off."""
    off = machine_off(timeline, step)
    if off.status is ProofStatus.PROVEN:
        return ProofResult(ProofStatus.DISPROVEN, f"{step.node} still powered off{after}", off.evidence)
    return boot_seen(timeline, step, "it still went down")


def _in_flight(timeline: Timeline, step: StepRun) -> str:
    """Text to add if the shutdown had begun before it was cancelled."""
    begun = last_reading_before(timeline, step, "preparing-for-shutdown")
    if begun is None or begun.value == NOT_PREPARING:
        return ""
    return "; the shutdown had begun, and systemd cancels that only from version 257 on (cancel-shutdown-in-flight)"


def _check_cancelled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Disproven if the machine is off; proven by logind's own state."""
    if down := went_down(timeline, step, _in_flight(timeline, step)):
        return down
    found = _NOT_IN_PROGRESS.check(timeline, step)
    if found.status is ProofStatus.UNPROVEN:
        found = _NOT_SCHEDULED.check(timeline, step)
    return _check_logins(timeline, step, found) if found.status is ProofStatus.PROVEN else found


def _check_logins(timeline: Timeline, step: StepRun, found: ProofResult) -> ProofResult:
    """Returns ``found`` if the host admits logins again. Recordings of 0.2 do not show this."""
    later = list(readings_after(timeline, step, "nologin"))
    if not later and last_reading_before(timeline, step, "nologin") is None:
        return found
    admitted = next((reading for reading in later if reading.value is False), None)
    if admitted is None:
        return no_proof(f"{NOLOGIN_FILE} of {step.node} is still there: only root can log in")
    return ProofResult(found.status, f"{found.because}; logins are admitted", (*found.evidence, admitted.seq))


CANCEL_SHUTDOWN = Action(
    name="cancel-shutdown",
    summary="cancel a scheduled shutdown",
    description="""
    Runs ``shutdown -c``. While logind waits for locks, systemd before 257 exits with 0 and still shuts down. The step
    is proven once /run/nologin is gone, too, with which logind refuses logins before a shutdown.
    """,
    example="{name: cancel, action: cancel-shutdown, target: victim, after: schedule + 20s}",
    params=NoParams,
    state=KubeletState,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(Proof("not-shutting-down", _check_cancelled),),
    needs=Needs(
        proof_facts=(
            *("preparing-for-shutdown", "scheduled-shutdown", PseudoFact.MACHINE),
            *("inhibitor-locks", "inhibitor-kubelet", "nologin"),
        ),
        logind=True,
    ),
    prepare=lambda target, _: kubelet_state(target, target.facts.get("kubelet-unit") or "kubelet.service"),
    # The cancelled shutdown is not scheduled again. Inside the window systemd 257 does not notify the kubelet.
    program=lambda state: Program((_CANCEL,), restore_kubelet_after_cancel(state)),
)


def _check_cancelled_in_flight(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by logind's own state in the same boot."""
    return boot_seen(timeline, step, "it still went down") or _NO_LONGER_IN_PROGRESS.check(timeline, step)


def _prepare_in_flight(target: Target, _: NoParams) -> KubeletState:
    version = target.require_fact("systemd-version", "only some systemds can cancel a shutdown that has begun")
    if version < _MIN_SYSTEMD:
        raise Unsupported(
            f"{target.node} has systemd {version}, which exits with 0 but still shuts down",
            hint=f"use systemd {_MIN_SYSTEMD} or later; cancel-shutdown shows what {version} does",
        )
    return capture_kubelet_state(target, "the kubelet must be restarted afterwards")


CANCEL_SHUTDOWN_IN_FLIGHT = Action(
    name="cancel-shutdown-in-flight",
    summary="cancel a shutdown that has begun and waits for locks (systemd 257 and later)",
    description="Runs ``shutdown -c`` while logind waits for locks. Undo restarts a kubelet that missed it.",
    example="{name: cancel, action: cancel-shutdown-in-flight, target: victim, after: power-off + 4s}",
    params=NoParams,
    state=KubeletState,
    no_windows_reason="Windows cannot cancel a shutdown that has begun",
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,
    keeps_pods_running=True,
    proofs=(Proof("not-shutting-down", _check_cancelled_in_flight),),
    needs=Needs(
        ("systemd-version",),
        ("preparing-for-shutdown", PseudoFact.MACHINE, "inhibitor-locks", "inhibitor-kubelet", "pid1-start"),
        logind=True,
    ),
    prepare=_prepare_in_flight,
    program=lambda state: Program(
        (_CANCEL,),
        restore_kubelet_after_cancel(state),
        preconditions=(FactCheck("preparing-for-shutdown", "b true"),),
    ),
)
