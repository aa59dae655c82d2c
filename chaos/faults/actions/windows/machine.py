"""A machine that stops immediately: by a power cut, a reset by the power control, or a bug check."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import (
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoStep,
)
from chaos.core.api_fact import PseudoFact
from chaos.core.command import HostCommand, PowerCapability, PowerCommand, PowerVerb
from chaos.core.errors import Unsupported
from chaos.core.evidence import boot_changed, no_proof, readings_after
from chaos.core.node_mark import CrashTool
from chaos.core.timeline import Timeline
from chaos.core.windows import windows_form
from chaos.faults.actions import power, reboot
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    NO_SHUTDOWN_IN_PROGRESS,
    MachineState,
    RebootState,
    can_read_power_state,
    capture_power_state,
    disable_auto_restart,
    kubelet_reporting_checks,
    kubelet_reporting_facts,
    power_on_again,
    power_on_steps,
    refuse_unusable_power_control,
    require_power_control,
)
from chaos.faults.actions._params import NoParams
from chaos.faults.actions.power import PowerCutParams
from chaos.faults.readings.windows.restarts import BUG_CHECK

# In which a machine that boots by itself has written its dump and answers again, and another has written it.
_REBOOT_SECONDS, _DUMP_SECONDS = 150.0, 30.0


def _prepare_cut(target: Target, params: PowerCutParams) -> MachineState:
    if params.how != "power-control":
        raise Unsupported(
            f"{target.node} runs Windows, which has no SysRq: nothing on the machine cuts its power",
            hint="use how: power-control",
        )
    require_power_control(target, "has no power control to cut its power with, nor to come back by")
    require_power_control(target, "has no power control to cut its power with", needed=PowerCapability.OFF)
    return capture_power_state(target)


POWER_CUT = windows_form(
    power.POWER_CUT,
    description="""
    The machine is off at once, as if the power cord were pulled, and writes nothing more to its disk. Windows has no
    SysRq.
    """,
    state=MachineState,
    needs=Needs(KUBELET_REPORTING_FACTS, (PseudoFact.MACHINE, "boot-id", "last-stop")),
    prepare=_prepare_cut,
    program=lambda state: Program((*disable_auto_restart(state), PowerCommand(PowerVerb.OFF)), power_on_again(state)),
)


def _prepare_reboot(target: Target, _: NoParams) -> RebootState:
    why = "runs Windows, which reboots without a shutdown only by a power control"
    require_power_control(target, why)
    require_power_control(target, why, needed=PowerCapability.OFF)
    return RebootState(can_read_power_state(target), kubelet_reporting_facts(target))


def _reboot(state: RebootState) -> Program:
    """Reset the machine. The undo needs a power control: if the run ends between off and on, nothing else wakes it."""
    on = power_on_steps(MachineState(state.can_read_power, "", state.reporting_facts))
    return Program(
        (PowerCommand(PowerVerb.OFF), PowerCommand(PowerVerb.ON)),
        Undo(on, kubelet_reporting_checks(state.reporting_facts)),
    )


HARD_REBOOT = windows_form(
    reboot.HARD_REBOOT,
    description="""
    Powers the machine off and on, because Windows itself reboots only with a shutdown. The step begins when the power
    comes back.
    """,
    state=RebootState,
    needs=Needs(KUBELET_REPORTING_FACTS, ("boot-id", "last-stop", PseudoFact.MACHINE)),
    prepare=_prepare_reboot,
    program=_reboot,
)


def _check_crashed(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a new boot whose log has the bug check; disproven by one whose log has none."""
    booted = boot_changed(timeline, step)
    if booted.status is not ProofStatus.PROVEN:
        return booted
    since = timeline.entries.time(booted.evidence[-1])
    reading = next((r for r in readings_after(timeline, step, "last-stop", timeline.end) if r.t >= since), None)
    if reading is None:
        return no_proof(f"{booted.because}, but last-stop was not read since")
    if reading.value != BUG_CHECK:
        because = f"{step.node} booted again without a bug check (last-stop = {reading.value})"
        return ProofResult(ProofStatus.DISPROVEN, because, (*booted.evidence, reading.seq))
    because = f"{booted.because}, and it stopped by a bug check"
    return ProofResult(ProofStatus.PROVEN, because, (*booted.evidence, reading.seq))


class CrashState(Struct, frozen=True):
    """The program that crashes Windows; whether the machine boots by itself, or the power control resets it."""

    tool: CrashTool
    reboots: bool
    can_reset: bool
    reporting_facts: list[str]
    can_read_power: bool = True


def _prepare_crash(target: Target, _: NoParams) -> CrashState:
    if not target.crash_tool:
        raise Unsupported(
            f"{target.node} runs Windows, which has no command that crashes it",
            hint=r"install NotMyFault and give the host crashTool: C:\Tools\notmyfault64.exe; or use power-cut",
        )
    reboots = target.require_fact("crash-auto-reboot", "it determines whether the machine boots again by itself")
    can_reset = bool(target.power) and {PowerCapability.ON, PowerCapability.OFF} <= target.power_capabilities
    if not reboots and not can_reset:
        refuse_unusable_power_control(target)
        raise Unsupported(
            f"{target.node} would not boot again after a bug check (AutoReboot of CrashControl is 0)",
            hint="set AutoReboot to 1 there, or give its host a power control in the inventory",
        )
    reporting = kubelet_reporting_facts(target)
    return CrashState(target.crash_tool, bool(reboots), can_reset, reporting, can_read_power_state(target))


def _crash(state: CrashState) -> Program:
    """Crash the machine. The undo powers a hanging machine off once, then on."""
    off = UndoStep(
        PowerCommand(PowerVerb.OFF),
        unless=NO_SHUTDOWN_IN_PROGRESS,
        grace_seconds=_REBOOT_SECONDS if state.reboots else _DUMP_SECONDS,
        max_attempts=1,
    )
    on = power_on_steps(MachineState(state.can_read_power, "", state.reporting_facts))
    crash = HostCommand((state.tool, "/accepteula", "/crash"), ends_session=True, timeout=10.0)
    undo = Undo((off, *on) if state.can_reset else (), kubelet_reporting_checks(state.reporting_facts))
    return Program((crash,), undo)


KERNEL_CRASH = windows_form(
    reboot.KERNEL_CRASH,
    summary="crash the kernel with the program that the inventory names (crashTool)",
    description="""
    NotMyFault's ``/crash``, a program that Windows does not include: the inventory names it (crashTool).

    The machine boots again by itself (AutoReboot of CrashControl), or is reset through its power control. A dump of the
    memory delays both.
    """,
    state=CrashState,
    proofs=(Proof("bug-check", _check_crashed),),
    needs=Needs(("crash-auto-reboot", *KUBELET_REPORTING_FACTS), ("boot-id", "last-stop", PseudoFact.MACHINE)),
    prepare=_prepare_crash,
    program=_crash,
)
