"""A shutdown with a countdown, which the kubelet is notified of only when it is over."""

from __future__ import annotations

from chaos.core.action import (
    Action,
    FactCheck,
    FailsafeTimer,
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
from chaos.core.command import Command
from chaos.core.duration import parse_duration
from chaos.core.evidence import no_proof, readings_after, step_entries
from chaos.core.recording import ActionPhase
from chaos.core.timeline import Timeline
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    POWER_ON,
    MachineState,
    disable_auto_restart,
    is_up_checks,
    kubelet_reporting_checks,
    power_on_steps,
    require_power_control,
)
from chaos.faults.actions.schedule_shutdown import CANCEL_LEAD_SECONDS, Params
from chaos.faults.actions.windows._shutdown import (
    CANCEL,
    NO_SHUTDOWN_PENDING,
    ShutdownState,
    capture_shutdown,
    is_own_pending,
    shut_down,
)
from chaos.faults.readings.windows.shutdown_requests import abort_own_words, comment_for


def _check_scheduled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a reading that has the step's own shutdown pending; another's proves nothing.

    Nor does a machine that went off or booted: somebody else may have shut it down.
    """
    own = _own_comment(timeline, step)
    for reading in readings_after(timeline, step, "scheduled-shutdown"):
        if str(reading.value).endswith(f": {own}"):
            because = f"the System log has it pending (scheduled-shutdown = {reading.value})"
            return ProofResult(ProofStatus.PROVEN, because, (reading.seq,))
    return no_proof(f"no reading of scheduled-shutdown on {step.node} shows this step's shutdown")


def _own_comment(timeline: Timeline, step: StepRun) -> str:
    """With the names of the recording: an experiment that judges it may have another name for the step."""
    begun = (record.step for entry, record in step_entries(timeline, step, ActionPhase.BEGIN) if entry.t == step.begin)
    return comment_for(f"{timeline.meta.get('run', '')}-{next(begun, step.step)}")


class ScheduleState(ShutdownState, frozen=True):
    """Seconds until the shutdown, and whether it may happen."""

    seconds: int
    fires: bool


class ScheduleShutdown(Action[Params, ScheduleState]):
    """``shutdown.exe /s /f /t SECONDS``, after arming a task that cancels it if nodefall does not.

    Task and undo cancel only the shutdown with the step's own comment, never one of somebody else.
    """

    name = "schedule-shutdown"
    summary = "schedule a power-off; unless fires is true, the host cancels it 5 s before"
    example = "{name: schedule, action: schedule-shutdown, target: victim, with: {in: 60s}}"
    params = Params
    state = ScheduleState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (Proof("scheduled-shutdown", _check_scheduled),)
    proof_facts = ("scheduled-shutdown", PseudoFact.MACHINE, "boot-id", "last-stop")
    facts = ("scheduled-shutdown", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: Params) -> ScheduleState:
        if params.fires:
            require_power_control(
                target,
                "could not be powered on again after the shutdown",
                hint="give its host a power control in the inventory, or leave fires out",
            )
        state = capture_shutdown(target)
        return ScheduleState(state.tag, state.machine, round(parse_duration(params.in_)), params.fires)

    def inject(self, state: ScheduleState) -> tuple[Command, ...]:
        ahead = disable_auto_restart(state.machine) if state.fires else ()
        return (*ahead, shut_down("/s", state.seconds, state.tag))

    def preconditions(self, state: ScheduleState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - the same on every node
        return (NO_SHUTDOWN_PENDING,)

    def failsafe_timer(self, state: ScheduleState) -> FailsafeTimer | None:
        if state.fires:
            return None
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds - CANCEL_LEAD_SECONDS, abort_own_words(state.tag))

    def undo(self, state: ScheduleState) -> Undo:
        gone = is_own_pending(state.tag, pending=False)
        cancel = UndoStep(CANCEL, unless=gone, when=(is_own_pending(state.tag, pending=True),))
        if state.fires:
            return Undo((*power_on_steps(state.machine), cancel), (gone, *is_up_checks(state.machine)))
        return Undo((*_on(state.machine), cancel), (gone, *_reports(state.machine)), disarm=failsafe_unit(state.tag))


def _on(machine: MachineState) -> tuple[UndoStep, ...]:
    return (POWER_ON,) if machine.can_read_power else ()


def _reports(machine: MachineState) -> tuple[FactCheck, ...]:
    return kubelet_reporting_checks(machine.reporting_facts)


ACTION = ScheduleShutdown()
