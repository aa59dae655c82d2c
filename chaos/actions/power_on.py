"""Power on through the power control: restores a machine that is off."""

from __future__ import annotations

from chaos.actions._machine import require_power_control
from chaos.actions._params import NoParams
from chaos.model.action import Action, NoState, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind
from chaos.model.api_fact import PseudoFact
from chaos.model.command import Command, PowerCommand, PowerVerb
from chaos.model.evidence import SAME_BOOT_SECONDS, is_number, no_proof, readings_after
from chaos.model.timeline import Timeline


def _check_machine_on(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven when the power control reports on, or PID 1 is younger than the step."""
    last = readings_after(timeline, step, PseudoFact.MACHINE)[-1:]
    if last and last[0].value == "on":
        return ProofResult(
            ProofStatus.PROVEN, f"{step.node} was on {last[0].t - step.begin:.1f} s after the step", (last[0].seq,)
        )
    for start in readings_after(timeline, step, "pid1-start"):
        if is_number(start.value) and start.value >= step.begin - SAME_BOOT_SECONDS:
            return ProofResult(ProofStatus.PROVEN, f"PID 1 of {step.node} was started after the step", (start.seq,))
    if last:
        return ProofResult(
            ProofStatus.DISPROVEN, f"{step.node} was still off {last[0].t - step.begin:.1f} s after the step"
        )
    return no_proof(f"no reading showed that {step.node} is on")


class PowerOn(Action[NoParams, NoState]):
    """The power control's ``on``; no command is sent to the host, which cannot respond."""

    name = "power-on"
    summary = "power the machine on with its power control"
    example = "{name: power-on, action: power-on, target: victim, after: power-off + 90s}"
    params = NoParams
    state = NoState
    undo_kind = UndoKind.RESTORES
    powers_on = True
    keeps_pods_running = True
    proofs = (Proof("machine-on", _check_machine_on),)
    proof_facts = (PseudoFact.MACHINE, "pid1-start", "boot-id", "inhibitor-locks")

    def prepare(self, target: Target, params: NoParams) -> NoState:  # noqa: ARG002 - no parameters
        require_power_control(target, "has no power control to power it on with")
        return NoState()

    def inject(self, state: NoState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (PowerCommand(PowerVerb.ON),)

    def undo(self, state: NoState) -> Undo:  # noqa: ARG002 - a running machine needs no undo
        return Undo()


ACTION = PowerOn()
