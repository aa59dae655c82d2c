"""Power on by the power control: how a dead machine comes back."""

from __future__ import annotations

from typing import Any

from chaos.actions._machine import require_power_control
from chaos.model.action import Action, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command, PowerCommand
from chaos.model.evidence import SAME_BOOT_SECONDS, is_number, no_proof, readings_after
from chaos.model.experiment import Model
from chaos.model.timeline import Timeline


class Params(Model):
    """None."""


def _check_machine_on(timeline: Timeline, step: StepRun) -> ProofResult:
    """The power control says on, or PID 1 is younger than the step."""
    last = readings_after(timeline, step, "machine")[-1:]
    if last and last[0].value == "on":
        return ProofResult(
            ProofStatus.PROVEN, f"{step.node} was on {last[0].t - step.begin:+.1f}s after it", (last[0].seq,)
        )
    for start in readings_after(timeline, step, "pid1-start"):
        if is_number(start.value) and start.value >= step.begin - SAME_BOOT_SECONDS:
            return ProofResult(ProofStatus.PROVEN, f"PID 1 of {step.node} was started after it", (start.seq,))
    if last:
        return ProofResult(ProofStatus.DISPROVEN, f"{step.node} was still off {last[0].t - step.begin:+.1f}s after it")
    return no_proof(f"nothing was seen to say that {step.node} is on")


class PowerOn(Action):
    """The power control's ``on``; nothing is sent to the host, which cannot answer."""

    name = "power-on"
    summary = "power the machine on with its power control"
    example = "{name: power-on, action: power-on, target: victim, after: power-off + 90s}"
    params = Params
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    proofs = (Proof("machine-on", _check_machine_on),)
    proof_facts = ("machine", "pid1-start", "boot-id", "inhibitors")

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        require_power_control(target, "has no power control to power it on with")
        return {"node": target.node}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (PowerCommand("on"),)

    def undo(self, memory: UndoState) -> Undo:  # noqa: ARG002 - a machine that runs is how it should be
        return Undo()


ACTION = PowerOn()
