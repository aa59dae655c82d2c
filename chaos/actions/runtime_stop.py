"""The container runtime stopped by systemd: containers run on, the kubelet cannot ask for anything."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import ACTIVE, start_failsafe, systemctl, timer_unit
from chaos.model.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind, UndoState, UndoStep
from chaos.model.command import Command
from chaos.model.evidence import holds_until
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class RuntimeStop(Action):
    """The node's Ready turns False 30 s later ("container runtime is down"); pods cannot be started or ended."""

    name = "runtime-stop"
    summary = "stop the container runtime; containers run on"
    example = "{name: stop, action: runtime-stop, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (holds_until("runtime-state", lambda v: v in ("inactive", "failed"), "systemd does not run the runtime"),)
    proof_facts = ("runtime-state",)
    facts = ("runtime-unit",)

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        unit = target.require_fact("runtime-unit", "the container runtime's unit is what is stopped")
        return {"unit": unit, "tag": target.tag, "seconds": target.max_duration}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (systemctl("stop", memory["unit"]),)

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer:
        return start_failsafe(memory, memory["seconds"])

    def undo(self, memory: UndoState) -> Undo:
        active = FactCheck("runtime-state", ACTIVE)
        steps = (UndoStep(systemctl("start", memory["unit"]), unless=active),)
        return Undo(steps, (active, FactCheck("node-ready", True)), disarm=timer_unit(memory))


ACTION = RuntimeStop()
