"""The kubelet started by systemd: the undo of kubelet-stop as a separate step."""

from __future__ import annotations

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.command import Command
from chaos.core.evidence import fact_is
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import ACTIVE, KubeletState, capture_kubelet_state, systemctl


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
