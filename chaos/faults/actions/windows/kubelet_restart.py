"""The kubelet's service restarted."""

from __future__ import annotations

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.command import Command
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._process_proof import PROCESS_REPLACED
from chaos.faults.actions.windows._services import ServiceState, capture_kubelet_state, restart_service, restore_kubelet


class KubeletRestart(Action[NoParams, ServiceState]):
    """``Restart-Service``, which waits for the stop. A kubelet that has begun a graceful shutdown accepts no stop."""

    name = "kubelet-restart"
    summary = "restart the kubelet"
    example = "{name: restart, action: kubelet-restart, target: victim}"
    params = NoParams
    state = ServiceState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.SELF_RESTORING
    keeps_pods_running = True
    proofs = (PROCESS_REPLACED,)
    proof_facts = ("kubelet-state", "kubelet-process")

    def prepare(self, target: Target, params: NoParams) -> ServiceState:  # noqa: ARG002 - no parameters
        return capture_kubelet_state(target, "the step restarts the kubelet's service")

    def inject(self, state: ServiceState) -> tuple[Command, ...]:
        return (restart_service(state.service),)

    def undo(self, state: ServiceState) -> Undo:
        return restore_kubelet(state)


ACTION = KubeletRestart()
