"""Shutdowns by shutdown.exe: a power-off, a reboot, one with a countdown, and its cancellation.

Windows notifies its services first, the kubelet in its pre-shutdown phase: once the countdown is over, if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from chaos.core.action import (
    NODE_READY,
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
    UndoStep,
    failsafe_unit,
)
from chaos.core.api_fact import PseudoFact
from chaos.core.command import HostCommand
from chaos.core.duration import format_duration, parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import (
    BOOT_IDENTITY,
    fact_is,
    no_proof,
    readings_after,
    step_entries,
)
from chaos.core.fact import FactRef
from chaos.core.machine_evidence import MACHINE_OFF
from chaos.core.node_mark import RunName, Tag
from chaos.core.recording import ActionPhase
from chaos.core.timeline import Timeline
from chaos.core.windows import system_program, windows_form
from chaos.faults.actions import power, reboot, shutdown
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    POWER_ON,
    MachineState,
    capture_power_state,
    disable_auto_restart,
    is_up_checks,
    kubelet_reporting_checks,
    power_on_again,
    power_on_steps,
    require_power_control,
    restore_rebooted,
)
from chaos.faults.actions.power import PoweroffParams
from chaos.faults.actions.shutdown import (
    CANCEL_LEAD_SECONDS,
    ScheduleParams,
    require_power_if_it_fires,
    went_down,
)
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED
from chaos.faults.readings.windows.shutdown_requests import abort_own_words, comment_for

_NONE_PENDING = FactCheck("scheduled-shutdown", NO_SHUTDOWN_SCHEDULED)
_REASON = "p:4:1"  # Application: Maintenance (Planned); shutdown.exe refuses codes that do not exist
_ACCESS_DENIED, _NO_PRIVILEGE = 5, 1314
_IN_PROGRESS, _NOT_IN_PROGRESS, _ALREADY_SCHEDULED, _NO_SUCH_INTERFACE = 1115, 1116, 1190, 1717
_GOING_DOWN = "the machine is already shutting down, which this step has not requested"
_NO_RIGHT = "its user may not shut the machine down; use one of its administrators"
_TOO_LATE = (
    "Windows cancels a shutdown only until its countdown is over: from then on it notifies its services, the kubelet"
    " among them, and that cannot be undone"
)
_REFUSALS = (
    (_IN_PROGRESS, _GOING_DOWN),
    (_NO_SUCH_INTERFACE, _GOING_DOWN),  # late in a shutdown, its service has ended
    (_ALREADY_SCHEDULED, "somebody else has scheduled a shutdown, which this step neither replaces nor cancels"),
    (_ACCESS_DENIED, _NO_RIGHT),
    (_NO_PRIVILEGE, _NO_RIGHT),
)
_CANCEL_REFUSALS = (
    (_IN_PROGRESS, _TOO_LATE),
    (_NOT_IN_PROGRESS, f"no countdown runs. {_TOO_LATE}"),
    (_NO_SUCH_INTERFACE, _TOO_LATE),
    (_ACCESS_DENIED, _NO_RIGHT),
    (_NO_PRIVILEGE, _NO_RIGHT),
)
CANCEL = HostCommand((system_program("shutdown"), "/a"), refusals=_CANCEL_REFUSALS)


class ShutdownState(Struct, frozen=True):
    """The machine before its shutdown; ``tag`` is in the comment that identifies the shutdown."""

    tag: Tag
    machine: MachineState


def _capture_shutdown(target: Target) -> ShutdownState:
    """The state of a machine before its shutdown. Raises Unsupported if a shutdown is already pending."""
    pending = target.require_fact("scheduled-shutdown", "Windows refuses a second shutdown")
    if pending != NO_SHUTDOWN_SCHEDULED:
        raise Unsupported(
            f"{target.node} has a shutdown pending ({pending}), and Windows refuses a second one",
            hint="let it happen, or run `shutdown /a` there; if that answers 1116, only the next boot ends its record",
        )
    return ShutdownState(target.tag, capture_power_state(target))


def shut_down(option: str, seconds: int, tag: Tag) -> HostCommand:
    """``shutdown.exe`` with ``/s`` or ``/r``, which returns immediately; ``seconds`` of its countdown.

    ``/f`` is explicit because only a countdown implies it: without it, a program with a prompt stops the shutdown.
    """
    return HostCommand(
        (
            *(system_program("shutdown"), option, "/f", "/t", str(seconds)),
            *("/d", _REASON, "/c", comment_for(tag)),
        ),
        ends_session=seconds == 0,
        refusals=_REFUSALS,
    )


def _is_own_pending(tag: Tag, *, pending: bool) -> FactCheck:
    """Whether a shutdown of the step with ``tag`` is pending."""
    return FactCheck(str(FactRef("nodefall-shutdown", {"tag": tag})), pending)


def _prepare_poweroff(target: Target, params: PoweroffParams) -> ShutdownState:
    if params.force:
        raise Unsupported(
            f"{target.node} runs Windows, which powers off only after it has notified its services (force)",
            hint="leave force out, or use power-cut",
        )
    if params.wake != PoweroffParams.model_fields["wake"].default:
        raise Unsupported(
            f"{target.node} runs Windows: no alarm of its clock is set to wake it (wake)",
            hint="leave wake out, and give its host a power control in the inventory",
        )
    require_power_control(target, "could not be powered on again after poweroff")
    return _capture_shutdown(target)


POWEROFF = windows_form(
    power.POWEROFF,
    summary="power the machine off by a shutdown (graceful if the kubelet takes part in it)",
    description="Runs ``shutdown.exe /s /f /t 0``. Only a power control can power the machine on again.",
    state=ShutdownState,
    proofs=(MACHINE_OFF, BOOT_IDENTITY),
    needs=Needs(
        ("scheduled-shutdown", *KUBELET_REPORTING_FACTS),
        (PseudoFact.MACHINE, "boot-id", "last-stop", "scheduled-shutdown"),
    ),
    prepare=_prepare_poweroff,
    program=lambda state: Program(
        (*disable_auto_restart(state.machine), shut_down("/s", 0, state.tag)),
        power_on_again(state.machine),
        preconditions=(_NONE_PENDING,),
    ),
)
REBOOT = windows_form(
    reboot.REBOOT,
    summary="reboot the machine by a shutdown (graceful if the kubelet takes part in it)",
    description="""
    Runs ``shutdown.exe /r /f /t 0``. The machine boots without a power control, unless an update holds it up.
    """,
    state=ShutdownState,
    needs=Needs(
        ("scheduled-shutdown", *KUBELET_REPORTING_FACTS),
        ("boot-id", "last-stop", "scheduled-shutdown", PseudoFact.MACHINE),
    ),
    prepare=lambda target, _: _capture_shutdown(target),
    program=lambda state: Program(
        (shut_down("/r", 0, state.tag),), restore_rebooted(state.machine), preconditions=(_NONE_PENDING,)
    ),
)


def _check_scheduled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a reading in which the step's own shutdown is pending; other shutdowns prove nothing.

    A machine that went off or booted proves nothing either: someone else may have shut it down.
    """
    own = _own_comment(timeline, step)
    for reading in readings_after(timeline, step, "scheduled-shutdown"):
        if str(reading.value).endswith(f": {own}"):
            because = f"the System log has it pending (scheduled-shutdown = {reading.value})"
            return ProofResult(ProofStatus.PROVEN, because, (reading.seq,))
    return no_proof(f"no reading of scheduled-shutdown on {step.node} shows this step's shutdown")


def _own_comment(timeline: Timeline, step: StepRun) -> str:
    """The step's shutdown comment, with names from the recording, because a judging experiment may rename the step."""
    begun = (record.step for entry, record in step_entries(timeline, step, ActionPhase.BEGIN) if entry.t == step.begin)
    return comment_for(f"{timeline.meta.get('run', '')}-{next(begun, step.step)}")


class ScheduleState(ShutdownState, frozen=True):
    """Seconds until the shutdown, and whether it may happen."""

    seconds: int
    fires: bool


def _prepare_schedule(target: Target, params: ScheduleParams) -> ScheduleState:
    require_power_if_it_fires(target, params)
    state = _capture_shutdown(target)
    return ScheduleState(state.tag, state.machine, round(parse_duration(params.in_)), params.fires)


def _schedule(state: ScheduleState) -> Program:
    machine, gone = state.machine, _is_own_pending(state.tag, pending=False)
    schedule = shut_down("/s", state.seconds, state.tag)
    cancel = UndoStep(CANCEL, unless=gone, when=(_is_own_pending(state.tag, pending=True),))
    if state.fires:
        undo = Undo((*power_on_steps(machine), cancel), (gone, *is_up_checks(machine)))
        return Program((*disable_auto_restart(machine), schedule), undo, preconditions=(_NONE_PENDING,))
    on = (POWER_ON,) if machine.can_read_power else ()
    seconds = state.seconds - CANCEL_LEAD_SECONDS
    return Program(
        (schedule,),
        Undo((*on, cancel), (gone, *kubelet_reporting_checks(machine.reporting_facts))),
        preconditions=(_NONE_PENDING,),
        failsafe=FailsafeTimer(failsafe_unit(state.tag), seconds, abort_own_words(state.tag)),
    )


SCHEDULE_SHUTDOWN = windows_form(
    shutdown.SCHEDULE_SHUTDOWN,
    description="""
    Runs ``shutdown.exe /s /f /t SECONDS``, after arming a task that cancels the shutdown if nodefall does not. The
    task and the undo cancel only the shutdown with the step's own comment, never the shutdown of somebody else.
    """,
    state=ScheduleState,
    proofs=(Proof("scheduled-shutdown", _check_scheduled),),
    needs=Needs(
        ("scheduled-shutdown", *KUBELET_REPORTING_FACTS),
        ("scheduled-shutdown", PseudoFact.MACHINE, "boot-id", "last-stop"),
    ),
    prepare=_prepare_schedule,
    program=_schedule,
)
_SHUTDOWNS = ("poweroff", "reboot", "schedule-shutdown")
_NOTHING_SCHEDULED = fact_is("scheduled-shutdown", lambda v: v == NO_SHUTDOWN_SCHEDULED, "Windows has none pending")


def _check_cancelled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Disproven if the machine is off or has booted; proven by the record of the abort."""
    return went_down(timeline, step) or _NOTHING_SCHEDULED.check(timeline, step)


class CancelState(Struct, frozen=True):
    """The ``run`` whose own shutdown is cancelled."""

    run: RunName


def _check_order(action: str, params: Mapping[str, Any], seconds: float) -> None:
    countdown = parse_duration(params["in"]) if action == "schedule-shutdown" else 0.0
    if action in _SHUTDOWNS and seconds >= countdown:
        raise Unsupported(
            f"it would come {format_duration(seconds)} after a shutdown ({action}) with a countdown of "
            f"{format_duration(countdown)}, and Windows cancels none whose countdown is over: its services have "
            "been notified by then",
            hint="use schedule-shutdown, with more time (in) than this step leaves it (after)",
        )


CANCEL_SHUTDOWN = windows_form(
    shutdown.CANCEL_SHUTDOWN,
    summary="cancel the shutdown that a step of the run has scheduled",
    description="""
    Runs ``shutdown.exe /a``. This works only during the countdown. Once Windows notifies its services, nothing
    cancels a shutdown.
    """,
    state=CancelState,
    check_order=_check_order,
    proofs=(Proof("not-shutting-down", _check_cancelled),),
    needs=Needs(proof_facts=("scheduled-shutdown", PseudoFact.MACHINE, "boot-id")),
    prepare=lambda target, _: CancelState(target.run),
    program=lambda state: Program(  # the cancelled shutdown is not scheduled again; the kubelet has not heard of it
        (CANCEL,),
        Undo(proof=(NODE_READY,)),
        preconditions=(FactCheck(str(FactRef("nodefall-shutdown", {"run": state.run})), True),),
    ),
)
