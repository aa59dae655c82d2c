"""The kubelet stopped by systemd: containers keep running, the Lease is no longer renewed."""

from __future__ import annotations

from chaos.core.action import Action, FailsafeTimer, Target, Undo, UndoKind, failsafe_unit
from chaos.core.command import Command
from chaos.core.evidence import holds_until
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import (
    KubeletState,
    capture_kubelet_state,
    restore_kubelet,
    start_failsafe,
    systemctl,
)


class KubeletStop(Action[NoParams, KubeletState]):
    """``systemctl stop`` of the unit that runs the kubelet; on k3s and rke2 servers that includes the control plane."""

    name = "kubelet-stop"
    summary = "stop the kubelet; its containers keep running unreported"
    example = "{name: stop, action: kubelet-stop, target: victim}"
    params = NoParams
    state = KubeletState
    undo_kind = UndoKind.RESTORES
    stops_exec = True
    proofs = (holds_until("kubelet-state", lambda v: v in ("inactive", "failed"), "systemd does not run the kubelet"),)
    proof_facts = ("kubelet-state", "kubelet-process")

    def prepare(self, target: Target, params: NoParams) -> KubeletState:  # noqa: ARG002 - no parameters
        return capture_kubelet_state(target, "the step stops the kubelet's unit")

    def inject(self, state: KubeletState) -> tuple[Command, ...]:
        return (systemctl("stop", state.unit),)

    def failsafe_timer(self, state: KubeletState) -> FailsafeTimer:
        return start_failsafe(state)

    def undo(self, state: KubeletState) -> Undo:
        return restore_kubelet(state, disarm=failsafe_unit(state.tag))


ACTION = KubeletStop()
