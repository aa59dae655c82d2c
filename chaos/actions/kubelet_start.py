"""The kubelet started by systemd: the way back of kubelet-stop as a step of its own."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import ACTIVE, capture_kubelet_state, systemctl
from chaos.model.action import Action, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command
from chaos.model.evidence import fact_is
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class KubeletStart(Action):
    """``systemctl start``; nothing happens where it runs already."""

    name = "kubelet-start"
    summary = "start the kubelet"
    example = "{name: start, action: kubelet-start, target: victim, after: stop + 60s}"
    params = Params
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    proofs = (fact_is("kubelet-state", lambda v: v == ACTIVE, "systemd runs the kubelet"),)
    proof_facts = ("kubelet-state", "kubelet-process")

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        return capture_kubelet_state(target, "the kubelet's unit is what is started")

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (systemctl("start", memory["unit"]),)

    def undo(self, memory: UndoState) -> Undo:  # noqa: ARG002 - a kubelet that runs is how it should be
        return Undo()


ACTION = KubeletStart()
