"""The kubelet stopped by systemd: containers run on, the Lease is not renewed any more."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import capture_kubelet_state, restore_kubelet, start_failsafe, systemctl, timer_unit
from chaos.model.action import Action, FailsafeTimer, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command
from chaos.model.evidence import holds_until
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class KubeletStop(Action):
    """``systemctl stop`` of whichever unit runs the kubelet; on k3s and rke2 servers that is the control plane too."""

    name = "kubelet-stop"
    summary = "stop the kubelet; its containers run on, nobody reports of them"
    example = "{name: stop, action: kubelet-stop, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (holds_until("kubelet-state", lambda v: v in ("inactive", "failed"), "systemd does not run the kubelet"),)
    proof_facts = ("kubelet-state", "kubelet-process")

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        return capture_kubelet_state(target, "the kubelet's unit is what is stopped") | {"seconds": target.max_duration}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (systemctl("stop", memory["unit"]),)

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer:
        return start_failsafe(memory, memory["seconds"])

    def undo(self, memory: UndoState) -> Undo:
        return restore_kubelet(memory, disarm=timer_unit(memory))


ACTION = KubeletStop()
