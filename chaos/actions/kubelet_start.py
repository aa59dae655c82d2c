"""The kubelet started by systemd: the undo of kubelet-stop as a separate step."""

from __future__ import annotations

from chaos.actions._params import NoParams
from chaos.actions._service import ACTIVE, KubeletState, capture_kubelet_state, systemctl
from chaos.model.action import Action, Target, Undo, UndoKind
from chaos.model.command import Command
from chaos.model.evidence import fact_is


class KubeletStart(Action[NoParams, KubeletState]):
    """``systemctl start``; no effect on a kubelet that runs."""

    name = "kubelet-start"
    summary = "start the kubelet"
    example = "{name: start, action: kubelet-start, target: victim, after: stop + 60s}"
    params = NoParams
    state = KubeletState
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    proofs = (fact_is("kubelet-state", lambda v: v == ACTIVE, "systemd runs the kubelet"),)
    proof_facts = ("kubelet-state", "kubelet-process")

    def prepare(self, target: Target, params: NoParams) -> KubeletState:  # noqa: ARG002 - no parameters
        return capture_kubelet_state(target, "the step starts the kubelet's unit")

    def inject(self, state: KubeletState) -> tuple[Command, ...]:
        return (systemctl("start", state.unit),)

    def undo(self, state: KubeletState) -> Undo:  # noqa: ARG002 - a running kubelet needs no undo
        return Undo()


ACTION = KubeletStart()
