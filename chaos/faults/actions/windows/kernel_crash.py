"""A bug check: every process stops, and the power stays on."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import Action, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind, UndoStep
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand, PowerCapability, PowerCommand, PowerVerb
from chaos.core.errors import Unsupported
from chaos.core.evidence import boot_changed, no_proof, readings_after
from chaos.core.node_mark import CrashTool
from chaos.core.timeline import Timeline
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    NO_SHUTDOWN_IN_PROGRESS,
    MachineState,
    can_read_power_state,
    kubelet_reporting_checks,
    kubelet_reporting_facts,
    power_on_steps,
    refuse_unusable_power_control,
)
from chaos.faults.actions._params import NoParams
from chaos.faults.readings.windows.restarts import BUG_CHECK

# In which a machine that boots by itself has written its dump and answers again, and another has written it.
_REBOOT_SECONDS, _DUMP_SECONDS = 150.0, 30.0


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


class KernelCrash(Action[NoParams, CrashState]):
    """NotMyFault's ``/crash``, a program that Windows does not include: the inventory names it (crashTool).

    The machine boots again by itself (AutoReboot of CrashControl), or is reset through its power control. A dump of the
    memory delays both.
    """

    name = "kernel-crash"
    summary = "crash the kernel with the program that the inventory names (crashTool)"
    example = "{name: crash, action: kernel-crash, target: victim}"
    params = NoParams
    state = CrashState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (Proof("bug-check", _check_crashed),)
    proof_facts = ("boot-id", "last-stop", PseudoFact.MACHINE)
    facts = ("crash-auto-reboot", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: NoParams) -> CrashState:  # noqa: ARG002 - no parameters
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

    def inject(self, state: CrashState) -> tuple[Command, ...]:
        return (HostCommand((state.tool, "/accepteula", "/crash"), ends_session=True, timeout=10.0),)

    def undo(self, state: CrashState) -> Undo:
        """Power a machine that hangs off once, then on."""
        off = UndoStep(
            PowerCommand(PowerVerb.OFF),
            unless=NO_SHUTDOWN_IN_PROGRESS,
            grace_seconds=_REBOOT_SECONDS if state.reboots else _DUMP_SECONDS,
            max_attempts=1,
        )
        machine = MachineState(state.can_read_power, "", state.reporting_facts)
        steps = (off, *power_on_steps(machine)) if state.can_reset else ()
        return Undo(steps, kubelet_reporting_checks(state.reporting_facts))


ACTION = KernelCrash()
